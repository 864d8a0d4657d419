import { missingFile } from '../../rules/file-pieces.ts';
import {
  all,
  insertion,
  locking,
  one,
  type Plan,
  run,
  type SqlValue,
  type Statement,
  statement,
} from '../database/query.ts';
import { hexOf } from '../values/bytes.ts';
import { type DocumentRef, type DocumentWrite, documentRef } from './document.ts';
import type { ManifestRef, ManifestWrite } from './manifest.ts';

const insertPatch = insertion('place_patch', 'INSERT INTO @blobs(prev, body) VALUES($1, $2)');
const findByHash = 'SELECT row_id FROM @blobs WHERE hash = $1';
// An update that changes nothing: the row is returned, and held, also when it was there.
const insertBlob: Statement<{ row_id: number }> = {
  name: 'place_blob',
  text: `INSERT INTO @blobs(hash, body) VALUES($1, $2)
   ON CONFLICT(hash) WHERE hash IS NOT NULL DO UPDATE SET hash = excluded.hash RETURNING row_id`,
  finds: findByHash,
};
const insertBytes: Statement<{ row_id: number }> = {
  name: 'place_bytes',
  text: `INSERT INTO @blobs(hash, body, bytes) VALUES($1, $2, $3)
   ON CONFLICT(hash) WHERE hash IS NOT NULL DO UPDATE SET hash = excluded.hash RETURNING row_id`,
  finds: findByHash,
};
const insertPart = statement(
  'place_part',
  'INSERT INTO @blob_parts(part, list) VALUES($1, $2) ON CONFLICT DO NOTHING',
);
/** The documents whose content addresses are in a JSON array. */
export const selectByHash = statement<{ row_id: number; hash: Uint8Array }>(
  'place_find',
  (d) => `SELECT b.row_id, b.hash FROM @blobs b WHERE b.hash ${d.bytes('$1')}`,
);
/** Keeps garbage collection from removing documents until the transaction ends. */
export const shareBlobs = locking('place_share_blobs', (d) => d.shareBlobs);

/** The statements that write documents, other than files. */
export const documentStatements = [insertPatch, insertBlob, insertBytes, insertPart, shareBlobs];

/** Writes the custom state and gives where it lies. */
export function* writeCustom(write: DocumentWrite): Plan<DocumentRef | undefined> {
  if (write.kind === 'none') return undefined;
  if (write.kind === 'same') return write.ref;
  const rowId =
    write.kind === 'patch'
      ? (yield* one(insertPatch, write.to.rowId, write.body)).row_id
      : yield* writeBlob(write.digest, write.body);
  return documentRef(write, rowId);
}

/** Writes the list of artifacts, and those of its large parts that are not stored yet. */
export function* writeArtifacts(write: ManifestWrite): Plan<ManifestRef | undefined> {
  if (write.kind === 'none') return undefined;
  if (write.kind === 'same') return write.ref;
  const parts = new Map(write.known);
  for (const { digest, body } of write.fresh) {
    parts.set(hexOf(digest), yield* writeBlob(digest, body));
  }
  const chunks = yield* writeChunks(write, parts);
  yield* findFiles(write.files, parts);
  const rowId = yield* writeBlob(write.digest, write.body);
  for (const part of parts.values()) yield* run(insertPart, part, rowId);
  return { rowId, parts, chunks };
}

/** Finds the rows of files, which were written before, and adds them to the parts. */
function* findFiles(
  files: Extract<ManifestWrite, { readonly kind: 'whole' }>['files'],
  parts: Map<string, number>,
): Plan<void> {
  if (files.size === 0) return;
  // So that none is removed before the list names it.
  yield* run(shareBlobs);
  const rows = yield* all(selectByHash, JSON.stringify([...files.keys()]));
  for (const { row_id: rowId, hash } of rows) parts.set(hexOf(hash), rowId);
  for (const [name, { hash, isNew }] of files) {
    // One that is lost is the business of `verify`, and must not hold up the session.
    if (isNew && !parts.has(name)) throw missingFile(hash);
  }
}

/** Writes what is new of long texts, and adds the lists of chunks to the parts. Gives the rows of the chunks by list. */
function* writeChunks(
  { chunks, lists, knownChunks }: Extract<ManifestWrite, { readonly kind: 'whole' }>,
  parts: Map<string, number>,
): Plan<ManifestRef['chunks']> {
  if (lists.length === 0) return knownChunks;
  const fresh = new Map<string, number>();
  for (const { digest, body } of chunks) {
    fresh.set(hexOf(digest), yield* writeBlob(digest, body));
  }
  const byList = new Map(knownChunks);
  for (const list of lists) {
    const rowId = yield* writeBlob(list.digest, list.body, list.bytes);
    const rows = new Map(list.known);
    for (const name of list.chunks) {
      const row = fresh.get(name);
      if (row !== undefined) rows.set(name, row);
    }
    for (const row of rows.values()) yield* run(insertPart, row, rowId);
    parts.set(hexOf(list.digest), rowId);
    byList.set(hexOf(list.digest), rows);
  }
  return byList;
}

/** Writes a document that may be stored already, and gives its row. */
export function* writeBlob(digest: Uint8Array, body: SqlValue, bytes?: Uint8Array): Plan<number> {
  yield* run(shareBlobs);
  const { row_id: rowId } =
    bytes === undefined
      ? yield* one(insertBlob, digest, body)
      : yield* one(insertBytes, digest, body, bytes);
  return rowId;
}
