import type { TreeChange, TreeEntry, TreeFolder } from './contract.ts';

/** A tree without entries. */
export const emptyTree: TreeFolder = { type: 'folder', entries: new Map() };

/** The entry at a path; `undefined` if there is none. */
export function entryAt(tree: TreeFolder, path: string): TreeEntry | undefined {
  let entry: TreeEntry | undefined = tree;
  for (const name of path === '' ? [] : path.split('/')) {
    entry = entry?.type === 'folder' ? entry.entries.get(name) : undefined;
  }
  return entry;
}

/** Everything below a folder with its path, folders before their content. */
export function* walkTree(
  tree: TreeFolder,
  prefix = '',
): Generator<readonly [path: string, entry: TreeEntry]> {
  for (const [name, entry] of tree.entries) {
    const path = prefix + name;
    yield [path, entry];
    if (entry.type === 'folder') yield* walkTree(entry, `${path}/`);
  }
}

/** The changes that make one tree the other, by path. Equal objects are not compared. */
export function diffTrees(before: TreeFolder, after: TreeFolder): readonly TreeChange[] {
  const changes: TreeChange[] = [];
  compare(before, after, '', changes);
  return changes;
}

function compare(before: TreeFolder, after: TreeFolder, prefix: string, into: TreeChange[]): void {
  if (before === after) return;
  for (const name of new Set([...before.entries.keys(), ...after.entries.keys()])) {
    const old = before.entries.get(name);
    const now = after.entries.get(name);
    if (old === now) continue;
    const path = prefix + name;
    if (!isSameEntry(old, now)) {
      into.push({ path, before: old ?? null, ...(now && { after: now }) });
    }
    const inner = old?.type === 'folder' ? old : emptyTree;
    compare(inner, now?.type === 'folder' ? now : emptyTree, `${path}/`, into);
  }
}

/** Whether two entries are equal, apart from the content of folders. */
export function isSameEntry(one: TreeEntry | undefined, other: TreeEntry | undefined): boolean {
  if (one === undefined || other === undefined) return one === other;
  if (one.type === 'file' && other.type === 'file') {
    return one.hash === other.hash && one.isExecutable === other.isExecutable;
  }
  if (one.type === 'link' && other.type === 'link') return one.target === other.target;
  return one.type === other.type;
}

/** A tree with another entry at a path, below folders that are added where they are missing. */
export function withEntry(tree: TreeFolder, path: string, entry: TreeEntry): TreeFolder {
  const [name = '', ...rest] = path.split('/');
  const inner = tree.entries.get(name);
  const below = inner?.type === 'folder' ? inner : emptyTree;
  const added = rest.length === 0 ? entry : withEntry(below, rest.join('/'), entry);
  return toFolder([...tree.entries].filter(([each]) => each !== name).concat([[name, added]]));
}

/** A tree without the entry at a path. The folders above it stay. */
export function withoutEntry(tree: TreeFolder, path: string): TreeFolder {
  const [name = '', ...rest] = path.split('/');
  const inner = tree.entries.get(name);
  const others = [...tree.entries].filter(([each]) => each !== name);
  if (rest.length === 0) return toFolder(others);
  if (inner?.type !== 'folder') return tree;
  return toFolder([...others, [name, withoutEntry(inner, rest.join('/'))]]);
}

/** A folder with its entries sorted. */
function toFolder(entries: readonly (readonly [string, TreeEntry])[]): TreeFolder {
  const sorted = [...entries].sort(([one], [other]) => (one < other ? -1 : one > other ? 1 : 0));
  return { type: 'folder', entries: new Map(sorted) };
}
