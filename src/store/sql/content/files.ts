import { isWaymarkError } from '../../../core/error.ts';
import { createSha256 } from '../../../core/platform.ts';
import { damagedFile, filePieceLength } from '../../rules/file-pieces.ts';
import { all, first, type Plan, type SqlValue, statement } from '../database/query.ts';
import { freeBytes, fromHex, hexOf } from '../values/bytes.ts';
import type { Cipher } from './cipher.ts';
import { bytesPlace, documentPlace } from './places.ts';

/*
 * A file is a row in `blobs` that names its pieces as a list of artifacts names its large parts, and a row with `bytes` for each piece. So
 * garbage collection, key rotation and backups treat it like any other document.
 */

/** The first byte of a stored piece: not that of an encrypted value, nor that of a packed text. */
export const pieceMark = 0xf0;

/** A file as its row describes it. */
export interface FileHead {
  readonly size: number;
  /** The digests of its pieces, in order. */
  readonly pieces: readonly string[];
}

const rowLength = 24_576;

const selectHead = statement<{ body: SqlValue }>(
  'file_head',
  'SELECT b.body FROM @blobs b WHERE b.hash = $1',
);
/**
 * The bytes of a piece, in one row or several. Postgres sends them as text, and its driver collects a long row in ever larger buffers: short rows
 * are collected as garbage before they pile up.
 */
const selectPiece = statement<{ bytes: Uint8Array | null }>('file_piece', (d) =>
  d.name === 'sqlite'
    ? 'SELECT b.bytes FROM @blobs b WHERE b.hash = $1'
    : `SELECT substring(b.bytes FROM n * ${rowLength} + 1 FOR ${rowLength}) AS bytes
       FROM @blobs b, generate_series(0, (length(b.bytes) - 1) / ${rowLength}) n WHERE b.hash = $1 ORDER BY n`,
);

export function fileDigest(hash: string, cipher: Cipher): Uint8Array {
  return cipher.digest('file', hash);
}

/** The content address of a node of a tree. */
export function nodeDigest(hash: string, cipher: Cipher): Uint8Array {
  return cipher.digest('node', hash);
}

export function pieceDigest(piece: Uint8Array, cipher: Cipher): Uint8Array {
  const sum = createSha256();
  sum.update(piece);
  return cipher.digest('piece', sum.hex());
}

/** The text of a file's row: garbage collection reads `parts` as it does those of a list of artifacts. */
export function headText({ size, pieces }: FileHead): string {
  return JSON.stringify([{ size, parts: pieces }]);
}

export function* readHead(hash: string, cipher: Cipher): Plan<FileHead | undefined> {
  const row = yield* first(selectHead, fileDigest(hash, cipher));
  return row && parseHead(hash, cipher.decrypt(row.body, documentPlace));
}

function parseHead(hash: string, text: string): FileHead {
  let found: { readonly size?: unknown; readonly parts?: unknown } | undefined;
  try {
    [found] = JSON.parse(text);
  } catch {
    found = undefined;
  }
  const { size, parts } = found ?? {};
  const isHead =
    typeof size === 'number' &&
    Array.isArray(parts) &&
    parts.length === Math.ceil(size / filePieceLength);
  if (!isHead) throw damagedFile(hash, 'its row is not what was written');
  return { size, pieces: parts };
}

/** Reads one piece of a file, and compares it with its digest. */
export function* readPiece(
  hash: string,
  { size, pieces }: FileHead,
  number: number,
  cipher: Cipher,
): Plan<Uint8Array> {
  const name = pieces[number] ?? '';
  const stored = joined(yield* all(selectPiece, fromHex(name)));
  if (stored === undefined) throw damagedFile(hash, `piece ${number} is missing`);
  const opened = cipher.decryptBytes(stored, bytesPlace);
  if (opened.buffer !== stored.buffer) freeBytes(stored);
  const piece = opened.subarray(1);
  const length = Math.min(filePieceLength, size - number * filePieceLength);
  if (piece.length !== length || hexOf(pieceDigest(piece, cipher)) !== name) {
    throw damagedFile(hash, `piece ${number} is not what was written`);
  }
  return piece;
}

function joined(rows: readonly { readonly bytes: Uint8Array | null }[]): Uint8Array | undefined {
  const parts = rows.flatMap(({ bytes }) => (bytes === null ? [] : bytes));
  if (parts.length <= 1) return parts[0];
  const whole = new Uint8Array(parts.reduce((sum, { length }) => sum + length, 0));
  let at = 0;
  for (const part of parts) {
    whole.set(part, at);
    at += part.length;
    freeBytes(part);
  }
  return whole;
}

/** The problem of a file; `undefined` when there is none. Reads all of it, one piece at a time. */
export function* checkFile(hash: string, cipher: Cipher): Plan<string | undefined> {
  try {
    const head = yield* readHead(hash, cipher);
    if (head === undefined) return damagedFile(hash, 'it is missing').message;
    const sum = createSha256();
    for (let number = 0; number < head.pieces.length; number++) {
      const piece = yield* readPiece(hash, head, number, cipher);
      sum.update(piece);
      // With the mark before it.
      if (piece.byteOffset === 1) freeBytes(new Uint8Array(piece.buffer, 0, 1 + piece.length));
    }
    if (sum.hex() === hash) return undefined;
    return damagedFile(hash, 'its content does not fit its hash').message;
  } catch (error) {
    if (isWaymarkError(error)) return error.message;
    throw error;
  }
}
