import { randomUUID } from 'node:crypto';
import { readFile, rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { metadataFolder } from './contract/paths.ts';
import type { FileNode, FolderNode } from './scan-run.ts';
import { inSlices, isDue, type Steps } from './slices.ts';

/** The files of a scan by folder and name. */
export type StatCache = ReadonlyMap<string, ReadonlyMap<string, FileNode>>;

const header = '{"format":1}';

type Row = readonly [
  name: string,
  size: number,
  modifiedAt: number,
  changedAt: number,
  inode: number,
  isExecutable: 0 | 1,
  hash: string,
];

function pathOf(root: string): string {
  return join(root, metadataFolder, 'index');
}

/** The files that the last process has hashed. Empty if there is no cache, or none that can be read: then all are hashed again. */
export async function readStatCache(root: string, signal?: AbortSignal): Promise<StatCache> {
  try {
    const [first, ...lines] = (await readFile(pathOf(root), 'utf8')).split('\n');
    return first === header ? await inSlices(parse(lines), signal) : new Map();
  } catch {
    return new Map();
  }
}

function* parse(lines: readonly string[]): Steps<StatCache> {
  const folders = new Map<string, Map<string, FileNode>>();
  for (const line of lines) {
    if (isDue()) yield;
    if (line === '') continue;
    const [path, ...rows] = JSON.parse(line) as readonly [string, ...Row[]];
    folders.set(path, new Map(rows.map((row) => [row[0], toNode(row)])));
  }
  return folders;
}

function toNode([, size, modifiedAt, changedAt, inode, isExecutable, hash]: Row): FileNode {
  if (!/^[0-9a-f]{64}$/.test(hash)) throw new TypeError('not a hash');
  return {
    entry: { type: 'file', hash, size, ...(isExecutable === 1 && { isExecutable: true }) },
    stat: { size, modifiedAt, changedAt, inode },
    isRecent: false,
  };
}

/** Writes the cache, in one step for processes that read it. A cache that cannot be written costs only time. */
export async function writeStatCache(root: string, tree: FolderNode): Promise<void> {
  const lines = [header];
  await inSlices(collect(tree, '', lines));
  const temporary = `${pathOf(root)}-${randomUUID()}`;
  try {
    await writeFile(temporary, `${lines.join('\n')}\n`);
    await rename(temporary, pathOf(root));
  } catch {
    await rm(temporary, { force: true }).catch(() => {});
  }
}

function* collect(folder: FolderNode, path: string, into: string[]): Steps<void> {
  if (isDue()) yield;
  const rows: Row[] = [];
  for (const [name, { entry, stat, isRecent }] of folder.files) {
    if (isRecent) continue;
    const { size, modifiedAt, changedAt, inode } = stat;
    const isExecutable = entry.isExecutable === true ? 1 : 0;
    rows.push([name, size, modifiedAt, changedAt, inode, isExecutable, entry.hash]);
  }
  if (rows.length > 0) into.push(JSON.stringify([path, ...rows]));
  for (const [name, inner] of folder.folders) {
    yield* collect(inner, path === '' ? name : `${path}/${name}`, into);
  }
}
