import { maxNodeLength, namesOfNode } from '../../../session/tree-node.ts';
import type { RunRef, TreeWrite } from '../../contract/store.ts';
import { damagedFile, hashOfBytes } from '../../rules/file-pieces.ts';
import { treeProblems } from '../../rules/tree-problems.ts';
import { all, type Plan, run, statement } from '../database/query.ts';
import { freeBytes, fromHex, hexOf } from '../values/bytes.ts';
import type { Cipher } from './cipher.ts';
import { checkFile, fileDigest, headText, nodeDigest, pieceDigest, pieceMark } from './files.ts';
import { bytesPlace, documentPlace } from './places.ts';
import { hold, holdOf, insertParts } from './uploads.ts';
import { selectByHash, shareBlobs, writeBlob } from './write-documents.ts';

/*
 * A node of a tree is a row in `blobs` with `bytes`, and stands in `blob_parts` as the list of what it names. So garbage collection, key
 * rotation and backups treat it like any other document.
 */

/** The first byte of a stored node: that of no piece, no packed text and no encrypted value. */
const nodeMark = 0xf1;

/** The most bytes of a stored node, encrypted or not. */
export const maxStoredNode: number = maxNodeLength + 256;

const selectNodes = statement<{ hash: Uint8Array; bytes: Uint8Array | null }>(
  'node_read',
  (d) => `SELECT b.hash, b.bytes FROM @blobs b WHERE b.hash ${d.bytes('$1')}`,
);

/** The digests of what a node names; none if the stored bytes are those of something else. */
export function namesInNode(stored: Uint8Array, cipher: Cipher): readonly string[] {
  const bytes = cipher.decryptBytes(stored, bytesPlace);
  if (bytes[0] !== nodeMark) return [];
  return [...digestsIn(bytes.subarray(1), cipher).keys()];
}

/** The hashes that a node names, by the digests of their rows. */
function digestsIn(node: Uint8Array, cipher: Cipher): ReadonlyMap<string, string> {
  const { files, nodes } = namesOfNode(node);
  return new Map([
    ...files.map((hash) => [hexOf(fileDigest(hash, cipher)), hash] as const),
    ...nodes.map((hash) => [hexOf(nodeDigest(hash, cipher)), hash] as const),
  ]);
}

/** Writes nodes and contents under a run, unless something that they name is missing: gives its hashes. */
export function* writeTree(
  ref: RunRef | undefined,
  { nodes, contents }: TreeWrite,
  cipher: Cipher,
): Plan<readonly string[]> {
  const list = yield* holdOf(ref);
  const own = new Map(
    contents.map((bytes) => [hexOf(fileDigest(hashOfBytes(bytes), cipher)), bytes]),
  );
  const hashes = nodes.map(hashOfBytes);
  const ownNodes = new Set(hashes.map((hash) => hexOf(nodeDigest(hash, cipher))));
  const named = nodes.map((node) => digestsIn(node, cipher));
  const wanted = new Map(named.flatMap((each) => [...each]));
  const others = [...wanted.keys()].filter((name) => !own.has(name) && !ownNodes.has(name));
  // Held until the nodes name them.
  yield* run(shareBlobs);
  const found = others.length === 0 ? [] : yield* all(selectByHash, JSON.stringify(others));
  const rows = new Map(found.map((row) => [hexOf(row.hash), row.row_id]));
  const missing = others.filter((name) => !rows.has(name));
  if (missing.length > 0) return missing.flatMap((name) => wanted.get(name) ?? []);
  for (const [name, bytes] of own) {
    const row = yield* writeContent(bytes, cipher);
    rows.set(name, row);
    if (!wanted.has(name)) yield* hold(row, list);
  }
  for (const [at, node] of nodes.entries()) {
    const name = hexOf(nodeDigest(hashes[at] ?? '', cipher));
    const row = yield* writeNode(fromHex(name), node, cipher);
    const parts = [...(named[at]?.keys() ?? [])].flatMap((each) => rows.get(each) ?? []);
    if (parts.length > 0) yield* run(insertParts, JSON.stringify(parts), row);
    rows.set(name, row);
    if (!wanted.has(name)) yield* hold(row, list);
  }
  return [];
}

function* writeNode(digest: Uint8Array, node: Uint8Array, cipher: Cipher): Plan<number> {
  const marked = new Uint8Array(1 + node.length);
  marked[0] = nodeMark;
  marked.set(node, 1);
  const body = cipher.encrypt('[]', documentPlace);
  return yield* writeBlob(digest, body, cipher.encryptBytes(marked, bytesPlace));
}

/** A file of one piece. */
function* writeContent(bytes: Uint8Array, cipher: Cipher): Plan<number> {
  const size = bytes.length;
  const digest = fileDigest(hashOfBytes(bytes), cipher);
  const piece = pieceDigest(bytes, cipher);
  const pieces = size === 0 ? [] : [hexOf(piece)];
  const row = yield* writeBlob(digest, cipher.encrypt(headText({ size, pieces }), documentPlace));
  if (size === 0) return row;
  const marked = new Uint8Array(1 + size);
  marked[0] = pieceMark;
  marked.set(bytes, 1);
  const stored = cipher.encryptBytes(marked, bytesPlace);
  const part = yield* writeBlob(piece, cipher.encrypt('[]', documentPlace), stored);
  yield* run(insertParts, JSON.stringify([part]), row);
  freeBytes(marked);
  if (stored.buffer !== marked.buffer) freeBytes(stored);
  return row;
}

/** Reads nodes; `undefined` for one that is not there. */
export function* readNodes(
  hashes: readonly string[],
  cipher: Cipher,
): Plan<readonly (Uint8Array | undefined)[]> {
  const names = hashes.map((hash) => hexOf(nodeDigest(hash, cipher)));
  const rows = yield* all(selectNodes, JSON.stringify([...new Set(names)]));
  const byName = new Map(rows.map(({ hash, bytes }) => [hexOf(hash), bytes]));
  return names.map((name, at) => {
    const stored = byName.get(name);
    if (stored === undefined || stored === null) return undefined;
    const marked = cipher.decryptBytes(stored, bytesPlace);
    if (marked[0] === nodeMark) return marked.subarray(1);
    throw damagedFile(hashes[at] ?? '', 'it is no folder');
  });
}

/** The problems of a tree. `files` has those of files that were looked at before, `seen` those of nodes. */
export function checkTree(
  hash: string,
  files: Map<string, string | undefined>,
  seen: Map<string, readonly string[]>,
  cipher: Cipher,
): Plan<readonly string[]> {
  return treeProblems(hash, {
    *node(name) {
      return (yield* readNodes([name], cipher))[0];
    },
    *problemOfFile(name) {
      if (!files.has(name)) files.set(name, yield* checkFile(name, cipher));
      return files.get(name);
    },
    seen,
  });
}
