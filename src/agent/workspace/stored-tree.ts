import { WaymarkError } from '../../core/error.ts';
import { takeBreak } from '../../core/platform.ts';
import { decodeNode, encodeNode, type NodeEntry, pagesOf } from '../../session/tree-node.ts';
import type { FilePlace, FileSupport } from '../../store/contract/store.ts';
import { damagedFile, hashOfBytes } from '../../store/rules/file-pieces.ts';
import type {
  ReadContent,
  SkippedPath,
  TreeEntry,
  TreeFolder,
  WorkspaceScan,
} from '../../workspace/contract/contract.ts';

/** The file support of a store that keeps trees. */
export type TreeStore = FileSupport & Required<Pick<FileSupport, 'writeTree' | 'readTree'>>;

/** A node that is to be stored, with the files that it names. */
export interface PlannedNode {
  readonly hash: string;
  readonly bytes: Uint8Array;
  /** The folder that it is the node of, or a page of. */
  readonly folder: TreeFolder;
  /** Its path, with a `/` at its end unless it is the whole tree. */
  readonly prefix: string;
}

/** The hashes of folders that have been encoded, which never change. */
const hashes = new WeakMap<TreeFolder, string>();

/** The nodes of a tree, each after those that it names, without the folders that are `known`. The last one is the topmost. */
export async function planTree(
  scan: WorkspaceScan,
  known: (folder: TreeFolder) => boolean,
): Promise<readonly PlannedNode[]> {
  const planned: PlannedNode[] = [];
  const folder = await planFolder(scan.tree, '', known, planned);
  const { size, count } = scan;
  const entries: NodeEntry[] = [
    { kind: 'folder', name: '', hash: folder },
    { kind: 'totals', name: '', size, count },
    ...scan.skipped.map(({ path, reason }) => ({
      kind: 'skipped' as const,
      name: path,
      target: reason,
    })),
  ];
  planned.push(...planNodes(entries, scan.tree, ''));
  return planned;
}

/** The hash of a tree, by which it is known again. */
export async function hashTree(scan: WorkspaceScan): Promise<string> {
  return (await planTree(scan, () => true)).at(-1)?.hash ?? '';
}

async function planFolder(
  folder: TreeFolder,
  prefix: string,
  known: (folder: TreeFolder) => boolean,
  into: PlannedNode[],
): Promise<string> {
  const hash = hashes.get(folder);
  if (hash !== undefined && known(folder)) return hash;
  await takeBreak();
  const entries: NodeEntry[] = [];
  for (const [name, entry] of sorted(folder)) {
    if (entry.type === 'file') {
      const kind = entry.isExecutable ? 'executable' : 'file';
      entries.push({ kind, name, size: entry.size, hash: entry.hash });
    } else if (entry.type === 'link') entries.push({ kind: 'link', name, target: entry.target });
    else {
      const inner = await planFolder(entry, `${prefix}${name}/`, known, into);
      entries.push({ kind: 'folder', name, hash: inner });
    }
  }
  const nodes = planNodes(entries, folder, prefix);
  into.push(...nodes);
  const top = nodes.at(-1)?.hash ?? '';
  hashes.set(folder, top);
  return top;
}

/** The node of some entries, after its pages if they are many. */
function planNodes(
  entries: readonly NodeEntry[],
  folder: TreeFolder,
  prefix: string,
): readonly PlannedNode[] {
  const nodes: PlannedNode[] = [];
  for (let level = entries; ; ) {
    const made = pagesOf(level).map((page): PlannedNode & { readonly first: string } => {
      const bytes = encodeNode(page);
      return { hash: hashOfBytes(bytes), bytes, folder, prefix, first: page[0]?.name ?? '' };
    });
    nodes.push(...made);
    if (made.length === 1) return nodes;
    level = made.map(({ hash, first }) => ({ kind: 'page', name: first, hash }));
  }
}

// A tree that someone else's workspace has scanned need not be sorted.
function sorted({ entries }: TreeFolder): Iterable<readonly [string, TreeEntry]> {
  let last: string | undefined;
  for (const name of entries.keys()) {
    if (last !== undefined && name < last) {
      return [...entries].sort(([a], [b]) => (a < b ? -1 : 1));
    }
    last = name;
  }
  return entries;
}

/** A tree as a snapshot has it. */
export interface StoredTree extends WorkspaceScan {
  readonly hash: string;
  readonly content: ReadContent;
}

/** Nodes that are read at a time. */
const atOnce = 256;

interface TreeReader {
  /** Reads a tree. Folders that it has in common with `like`, whose hash is known, are the same objects, and are not read. */
  read(hash: string, like?: TreeFolder): Promise<StoredTree>;
  /** The entry at a path, without reading the whole tree. */
  find(hash: string, path: string): Promise<TreeEntry | undefined>;
}

/** Reads trees of a session. Equal folders are the same object, so that two trees are quickly compared. */
export function treeReader(files: TreeStore, place: FilePlace): TreeReader {
  const nodes = new Map<string, readonly NodeEntry[]>();
  const folders = new Map<string, TreeFolder>();
  const content = contentOf(files, place);
  const load = async (wanted: readonly string[]): Promise<void> => {
    const left = [...new Set(wanted)].filter((hash) => !nodes.has(hash));
    for (let at = 0; at < left.length; at += atOnce) {
      const some = left.slice(at, at + atOnce);
      const found = await files.readTree(place, some);
      for (const [index, hash] of some.entries()) {
        const bytes = found[index];
        if (bytes === undefined) throw damagedFile(hash, 'it is missing');
        if (hashOfBytes(bytes) !== hash)
          throw damagedFile(hash, 'its content does not fit its hash');
        nodes.set(hash, decodeNode(bytes));
      }
      await takeBreak();
    }
  };
  const loadAll = async (hash: string): Promise<void> => {
    for (let level: readonly string[] = [hash]; level.length > 0; ) {
      await load(level);
      const named = level.flatMap((each) => namedNodes(nodes.get(each) ?? []));
      level = named.filter((each) => !folders.has(each));
    }
  };
  const entriesOf = (hash: string): readonly NodeEntry[] =>
    (nodes.get(hash) ?? []).flatMap((entry) =>
      entry.kind === 'page' ? entriesOf(entry.hash) : entry,
    );
  const folderOf = (hash: string): TreeFolder => {
    const known = folders.get(hash);
    if (known !== undefined) return known;
    const entries = new Map(
      entriesOf(hash).flatMap((entry): [string, TreeEntry][] => {
        checkName(entry.name, hash);
        const found = toEntry(entry, folderOf);
        return found === undefined ? [] : [[entry.name, found]];
      }),
    );
    const folder: TreeFolder = { type: 'folder', entries };
    folders.set(hash, folder);
    hashes.set(folder, hash);
    return folder;
  };
  const findName = async (hash: string, name: string): Promise<NodeEntry | undefined> => {
    await load([hash]);
    const entries = nodes.get(hash) ?? [];
    const pages = entries.flatMap((entry) => (entry.kind === 'page' ? entry : []));
    const page = pages.findLast((each) => each.name <= name);
    if (page !== undefined) return await findName(page.hash, name);
    return entries.find((entry) => entry.name === name && entry.kind !== 'totals');
  };
  return {
    async read(hash, like) {
      if (like !== undefined) noteFolders(like, folders);
      await loadAll(hash);
      const entries = entriesOf(hash);
      const [top] = entries.flatMap((entry) => (entry.kind === 'folder' ? [entry] : []));
      if (top === undefined) throw damagedFile(hash, 'it is no tree');
      const totals = entries.find((entry) => entry.kind === 'totals');
      return {
        hash,
        tree: folderOf(top.hash),
        skipped: entries.flatMap((entry) =>
          entry.kind === 'skipped'
            ? { path: entry.name, reason: entry.target as SkippedPath['reason'] }
            : [],
        ),
        count: totals?.count ?? 0,
        size: totals?.size ?? 0,
        content,
      };
    },
    async find(hash, path) {
      let folder: string | undefined = hash;
      let found: NodeEntry | undefined;
      for (const name of ['', ...path.split('/')]) {
        if (folder === undefined) return undefined;
        found = await findName(folder, name);
        folder = found?.kind === 'folder' ? found.hash : undefined;
      }
      return found && toEntry(found, () => ({ type: 'folder', entries: new Map() }));
    },
  };
}

/** Adds the folders of a tree by the hashes of their nodes, as far as they are known. */
function noteFolders(folder: TreeFolder, into: Map<string, TreeFolder>): void {
  const hash = hashes.get(folder);
  if (hash !== undefined) into.set(hash, folder);
  for (const entry of folder.entries.values()) {
    if (entry.type === 'folder') noteFolders(entry, into);
  }
}

function namedNodes(entries: readonly NodeEntry[]): readonly string[] {
  return entries.flatMap((entry) =>
    entry.kind === 'page' || entry.kind === 'folder' ? [entry.hash] : [],
  );
}

function toEntry(entry: NodeEntry, folderOf: (hash: string) => TreeFolder): TreeEntry | undefined {
  switch (entry.kind) {
    case 'folder':
      return folderOf(entry.hash);
    case 'file':
      return { type: 'file', hash: entry.hash, size: entry.size };
    case 'executable':
      return { type: 'file', hash: entry.hash, size: entry.size, isExecutable: true };
    case 'link':
      return { type: 'link', target: entry.target };
    default:
      return undefined;
  }
}

/** An imported tree may name anything: what is written to a disk must stay in its folder. */
function checkName(name: string, hash: string): void {
  if (name !== '' && name !== '.' && name !== '..' && !/[/\0]/.test(name)) return;
  throw damagedFile(hash, 'it has a name that no file can have');
}

/** Reads the contents of files from a store. */
function contentOf(files: FileSupport, place: FilePlace): ReadContent {
  return async function* read({ hash, size }, path) {
    const file = await files.open(place, hash);
    if (file === undefined) {
      throw new WaymarkError('DATA_LOSS', `The stored content of "${path}" is missing.`);
    }
    yield* file.read(0, size);
  };
}
