import { fromBase64, toBinary } from '../../core/base64.ts';
import { failedPrecondition, WaymarkError } from '../../core/error.ts';
import type { JsonObject } from '../../core/json/json.ts';
import { fileHashesIn, treeHashesIn } from '../../protocol/artifacts.ts';
import type { Artifact } from '../../protocol/state.ts';
import type { SessionExport } from '../../session/export-session.ts';
import { namesOfNode } from '../../session/tree-node.ts';
import type { FileSupport, MaintenanceSupport, Scope, Store } from '../contract/store.ts';
import { damagedFile, hashOfBytes } from './file-pieces.ts';

/** Bytes of files that one document may hold: it is one JSON value, so it is in memory as a whole. */
const maxBytes: number = 16 * 1024 * 1024;

/** Nodes that are stored at a time. */
const nodesAtOnce = 64;

/** Exports and imports that carry the files of a session, as base64 under `content.files`, and the folders of its workspace under `content.nodes`. */
export function withFiles(
  { exportSession, importSession }: MaintenanceSupport,
  files: Store['files'],
): Pick<MaintenanceSupport, 'exportSession' | 'importSession'> {
  return {
    async exportSession(scope, sessionId) {
      const document = await exportSession(scope, sessionId);
      if (document === undefined || files === undefined) return document;
      return await addFiles(document, files, scope);
    },
    async importSession(scope, document, options) {
      await storeFiles(document, files, scope);
      return await importSession(scope, document, options);
    },
  };
}

async function addFiles(
  document: SessionExport,
  files: FileSupport,
  scope: Scope,
): Promise<SessionExport> {
  const { sessionId } = document.session;
  const trees = treesIn(document);
  const hashes = new Set(hashesIn(document));
  if (hashes.size === 0 && trees.length === 0) return document;
  const table: Record<string, string> = {};
  const nodes: Record<string, string> = {};
  let total = 0;
  // Folders before what they name.
  for (let level = trees; level.length > 0; ) {
    const read = (await files.readTree?.({ scope, sessionId }, level)) ?? [];
    const next = new Set<string>();
    for (const [at, hash] of level.entries()) {
      const bytes = read[at];
      if (bytes === undefined) throw damagedFile(hash, 'it is missing');
      total += bytes.length;
      nodes[hash] = btoa(toBinary(bytes));
      const named = namesOfNode(bytes);
      for (const file of named.files) hashes.add(file);
      for (const node of named.nodes) if (!Object.hasOwn(nodes, node)) next.add(node);
    }
    level = [...next];
  }
  for (const hash of hashes) {
    const file = await files.open({ scope, sessionId }, hash);
    if (file === undefined) throw damagedFile(hash, 'it is missing');
    total += file.size;
    if (total > maxBytes) throw tooLarge(sessionId);
    const texts: string[] = [];
    for await (const piece of file.read(0, file.size)) texts.push(toBinary(piece));
    table[hash] = btoa(texts.join(''));
  }
  const hasTrees = trees.length > 0;
  const content = { ...document.content, files: table, ...(hasTrees && { nodes }) };
  return { ...document, format: hasTrees ? 4 : 3, content };
}

async function storeFiles(
  document: SessionExport,
  files: Store['files'],
  scope: Scope,
): Promise<void> {
  const trees = treesIn(document);
  const nodes = nodesOf(trees, document);
  const hashes = new Set([...hashesIn(document), ...nodes.flatMap(({ files: named }) => named)]);
  if (hashes.size === 0 && nodes.length === 0) return;
  if (files === undefined || (nodes.length > 0 && files.writeTree === undefined)) {
    throw failedPrecondition(
      'The session has files, and this store cannot keep files. Import it into another one, such as sqliteStore.',
    );
  }
  const table = document.content.files as JsonObject | undefined;
  for (const hash of hashes) {
    const text = Object.hasOwn(table ?? {}, hash) ? table?.[hash] : undefined;
    const bytes = typeof text === 'string' ? fromBase64(text) : undefined;
    if (bytes === undefined) throw notInside(hash);
    const stored = await files.write({ scope }, once(bytes));
    if (stored.hash !== hash) throw notInside(hash);
  }
  for (let at = 0; at < nodes.length; at += nodesAtOnce) {
    const some = nodes.slice(at, at + nodesAtOnce).map(({ bytes }) => bytes);
    const [missing] = (await files.writeTree?.({ scope }, { nodes: some, contents: [] })) ?? [];
    if (missing !== undefined) throw notInside(missing);
  }
}

/** The nodes of trees in a document, each after those that it names. */
function nodesOf(
  trees: readonly string[],
  document: SessionExport,
): readonly { readonly bytes: Uint8Array; readonly files: readonly string[] }[] {
  const table = document?.content?.nodes as JsonObject | undefined;
  const found = new Map<
    string,
    { readonly bytes: Uint8Array; readonly files: readonly string[] }
  >();
  const add = (hash: string): void => {
    if (found.has(hash)) return;
    const text = Object.hasOwn(table ?? {}, hash) ? table?.[hash] : undefined;
    const bytes = typeof text === 'string' ? fromBase64(text) : undefined;
    if (bytes === undefined || hashOfBytes(bytes) !== hash) throw notInside(hash);
    const { files, nodes } = namesOfNode(bytes);
    nodes.forEach(add);
    found.set(hash, { bytes, files });
  };
  trees.forEach(add);
  return [...found.values()];
}

/** The files that a document names. What has another shape is refused by the import itself. */
function hashesIn(document: SessionExport | null): readonly string[] {
  return fileHashesIn(artifactsIn(document));
}

/** The trees that a document names. */
function treesIn(document: SessionExport | null): readonly string[] {
  return treeHashesIn(artifactsIn(document));
}

function artifactsIn(document: SessionExport | null): readonly Artifact[] {
  const artifacts = Object.values(
    document?.content?.artifacts ?? {},
  ) as unknown as readonly Artifact[];
  return artifacts.filter((each) => Array.isArray(each?.parts));
}

async function* once(bytes: Uint8Array): AsyncGenerator<Uint8Array> {
  yield bytes;
}

function tooLarge(sessionId: string): WaymarkError {
  return new WaymarkError(
    'RESOURCE_EXHAUSTED',
    `Session "${sessionId}" has files of more than ${maxBytes} bytes, which do not fit in one document. Back up the whole store instead, or remove the artifacts and prune the snapshots that have them.`,
    { details: { most: maxBytes } },
  );
}

function notInside(hash: string): WaymarkError {
  return new WaymarkError(
    'DATA_LOSS',
    `The session document is damaged. It does not have the content of the file ${hash}.`,
  );
}
