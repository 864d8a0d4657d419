import { hasStatus, WaymarkError } from '../../core/error.ts';
import type { FileHolder } from '../../store/contract/store.ts';
import { filePieceLength, hashOfBytes } from '../../store/rules/file-pieces.ts';
import { bytesOf, TooLarge } from '../../workspace/contract/content.ts';
import type {
  TreeEntry,
  TreeFile,
  TreeFolder,
  WorkspaceFolder,
  WorkspaceScan,
} from '../../workspace/contract/contract.ts';
import { entryAt } from '../../workspace/contract/tree.ts';
import { type PlannedNode, planTree, type TreeStore } from './stored-tree.ts';

/** Bytes of small files that are in memory at once. */
const maxBatch: number = 256 * 1024;

/** Small files that are read at once. */
const filesAtOnce = 64;

/** Nodes that are stored at a time. */
const nodesAtOnce = 16;

/** How often saving is tried, because files change or disappear while they are read. */
const maxTries = 8;

interface Saving {
  readonly files: TreeStore;
  readonly holder: FileHolder;
  readonly folder: WorkspaceFolder;
  /** The tree that was stored last, which has most of the contents. */
  readonly before: TreeFolder | undefined;
}

/** Folders whose nodes a store has, as far as this process knows. */
const stored = new WeakMap<TreeStore, WeakSet<TreeFolder>>();

/**
 * Stores the files of a folder, as far as the store does not have them, and returns the scan that was stored, with the hash of its tree. A
 * file that changes while it is read is stored as it was read.
 */
export async function storeTree(
  saving: Saving,
  first: WorkspaceScan,
): Promise<{ readonly hash: string; readonly scan: WorkspaceScan }> {
  let scan = first;
  let isKnown = true;
  for (let left = maxTries; left > 0; left--) {
    const changed = new Map<string, TreeFile>();
    try {
      const hash = await storePlan(saving, scan, isKnown, changed);
      if (hash !== undefined && changed.size === 0) return { hash, scan };
      isKnown = hash !== undefined;
      scan = { ...scan, tree: withFiles(scan.tree, changed, '') };
    } catch (error) {
      // A file is gone, can no longer be read, or is no small one any more.
      const isGone = hasStatus(error, 'NOT_FOUND', 'PERMISSION_DENIED');
      if (!isGone && !(error instanceof TooLarge)) throw error;
      scan = await saving.folder.scan();
    }
  }
  throw new WaymarkError(
    'UNAVAILABLE',
    `The files of the workspace changed ${maxTries} times while they were saved. Stop the processes that write to them, and try again.`,
  );
}

/**
 * Stores the nodes of a tree and the contents that are missing. `changed` gets the files that had another content than the scan says.
 * `undefined`: a folder was thought to be stored, and is not any more.
 */
async function storePlan(
  saving: Saving,
  scan: WorkspaceScan,
  isKnown: boolean,
  changed: Map<string, TreeFile>,
): Promise<string | undefined> {
  const { files, holder } = saving;
  const known = stored.get(files) ?? new WeakSet();
  stored.set(files, known);
  const plan = await planTree(scan, (folder) => isKnown && known.has(folder));
  for (let at = 0; at < plan.length; at += nodesAtOnce) {
    const some = plan.slice(at, at + nodesAtOnce);
    const nodes = some.map(({ bytes }) => bytes);
    const contents = await likelyContents(saving, some, changed);
    const missing = await files.writeTree(holder, { nodes, contents });
    if (missing.length === 0) continue;
    const named = filesOf(some);
    if (missing.some((hash) => !named.has(hash))) return undefined;
    await upload(
      saving,
      missing.flatMap((hash) => named.get(hash) ?? []),
      changed,
    );
    if (changed.size > 0) continue;
    const left = await files.writeTree(holder, { nodes, contents: [] });
    if (left.length > 0) return undefined;
  }
  if (changed.size === 0) for (const { folder } of plan) known.add(folder);
  return plan.at(-1)?.hash;
}

interface PlacedFile {
  readonly path: string;
  readonly file: TreeFile;
}

function filesOf(nodes: readonly PlannedNode[]): ReadonlyMap<string, PlacedFile> {
  const found = new Map<string, PlacedFile>();
  for (const { folder, prefix } of nodes) {
    for (const [name, entry] of folder.entries) {
      if (entry.type === 'file') found.set(entry.hash, { path: prefix + name, file: entry });
    }
  }
  return found;
}

/** The contents that the store will hardly have, if they are few: they are then stored in the same step as the nodes. */
async function likelyContents(
  { folder, before }: Saving,
  nodes: readonly PlannedNode[],
  changed: Map<string, TreeFile>,
): Promise<readonly Uint8Array[]> {
  if (before === undefined) return [];
  const fresh: PlacedFile[] = [];
  let size = 0;
  for (const { path, file } of filesOf(nodes).values()) {
    const old = entryAt(before, path);
    if (old?.type === 'file' && old.hash === file.hash) continue;
    if (file.size > filePieceLength) continue;
    fresh.push({ path, file });
    size += file.size;
    if (size > maxBatch) return [];
  }
  return await Promise.all(fresh.map((each) => readSmall(folder, each, changed)));
}

/** Stores contents: small ones together, large ones in pieces. */
async function upload(
  { files, holder, folder }: Saving,
  missing: readonly PlacedFile[],
  changed: Map<string, TreeFile>,
): Promise<void> {
  let batch: PlacedFile[] = [];
  let size = 0;
  const flush = async (): Promise<void> => {
    const contents = await Promise.all(batch.map((each) => readSmall(folder, each, changed)));
    if (contents.length > 0) await files.writeTree(holder, { nodes: [], contents });
    batch = [];
    size = 0;
  };
  for (const placed of missing) {
    const { path, file } = placed;
    if (file.size > filePieceLength) {
      note(placed, await files.write(holder, folder.read(path)), changed);
      continue;
    }
    batch.push(placed);
    size += file.size;
    if (size > maxBatch || batch.length >= filesAtOnce) await flush();
  }
  await flush();
}

/** A small file as it is now. */
async function readSmall(
  folder: WorkspaceFolder,
  placed: PlacedFile,
  changed: Map<string, TreeFile>,
): Promise<Uint8Array> {
  const content = await bytesOf(folder.read(placed.path), filePieceLength);
  note(placed, { hash: hashOfBytes(content), size: content.length }, changed);
  return content;
}

function note(
  { path, file }: PlacedFile,
  read: Pick<TreeFile, 'hash' | 'size'>,
  changed: Map<string, TreeFile>,
): void {
  if (read.hash !== file.hash) changed.set(path, { ...file, hash: read.hash, size: read.size });
}

/** A tree with other files at some paths. */
function withFiles(
  folder: TreeFolder,
  changed: ReadonlyMap<string, TreeFile>,
  prefix: string,
): TreeFolder {
  if (![...changed.keys()].some((path) => path.startsWith(prefix))) return folder;
  const entries = new Map<string, TreeEntry>();
  for (const [name, entry] of folder.entries) {
    const path = prefix + name;
    const inner = entry.type === 'folder' ? withFiles(entry, changed, `${path}/`) : entry;
    entries.set(name, changed.get(path) ?? inner);
  }
  return { type: 'folder', entries };
}
