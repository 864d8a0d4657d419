import { existsSync, readdirSync, readlinkSync, type Stats } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { assertNever, failedPrecondition } from '../core/error.ts';
import type { SkippedPath, TreeChange, TreeEntry } from './contract/contract.ts';
import { checkTreePath, metadataFolder } from './contract/paths.ts';
import { changedMeanwhile, inTheWay } from './errors.ts';
import { hashFile, isSameStat, statOf } from './hash-file.ts';
import type { FileNode } from './scan-run.ts';
import { inSlices } from './slices.ts';
import { statOrNone } from './undo.ts';

/** The folder that is changed. */
export interface ChangedFolder {
  readonly root: string;
  readonly workspace: string;
  /** Throws if another process has the lock by now. */
  checkLock(): void;
  /** A file of the last scan. */
  known(path: string): FileNode | undefined;
}

const isWindows = process.platform === 'win32';

/** A change with what is on the disk. */
export interface PlannedChange {
  readonly path: string;
  readonly found: Stats | undefined;
  readonly after: TreeEntry | undefined;
  /** Whether a present file keeps its permissions. */
  readonly keepsMode: boolean;
  /** Whether the present file has the content of the new one. */
  readonly hasContent: boolean;
}

/** The changes that this system can make. */
export function possible(
  root: string,
  changes: readonly TreeChange[],
): { readonly wanted: readonly TreeChange[]; readonly skipped: readonly SkippedPath[] } {
  const skipped: SkippedPath[] = [];
  const taken = new Map<string, string>();
  const folds = foldsCase(root);
  const wanted = changes.filter(({ path, after }) => {
    checkTreePath(path);
    if (after === undefined) return true;
    if (isWindows && (after.type === 'link' || !isWindowsPath(path))) {
      skipped.push({ path, reason: 'unsupported' });
      return false;
    }
    const folded = folds ? path.normalize('NFC').toLowerCase() : path;
    if ((taken.get(folded) ?? path) !== path || (folds && isOtherName(join(root, path)))) {
      skipped.push({ path, reason: 'collision' });
      return false;
    }
    taken.set(folded, path);
    return true;
  });
  return {
    wanted: wanted.toSorted((one, other) => (one.path < other.path ? -1 : 1)),
    skipped,
  };
}

/** Whether the file system takes names in upper and lower case for the same. */
function foldsCase(root: string): boolean {
  return existsSync(join(root, metadataFolder.toUpperCase()));
}

/** Whether a path leads to an entry whose name differs in case or in the form of its letters. */
function isOtherName(path: string): boolean {
  return existsSync(path) && !readdirSync(dirname(path)).includes(basename(path));
}

function isWindowsPath(path: string): boolean {
  const reserved = /[<>:"\\|?*\p{Cc}]|[. ]$|^(con|prn|aux|nul|com\d|lpt\d)(\.|$)/iu;
  return path.split('/').every((name) => !reserved.test(name));
}

/** The folders above new entries that neither exist nor are among the changes. */
export function missingFolders(
  root: string,
  changes: readonly TreeChange[],
): readonly TreeChange[] {
  const known = new Set(
    changes.filter(({ after }) => after?.type === 'folder').map(({ path }) => path),
  );
  const missing: TreeChange[] = [];
  for (const { path, after } of changes) {
    if (after === undefined) continue;
    for (let above = dirname(path); above !== '.' && !known.has(above); above = dirname(above)) {
      known.add(above);
      if (existsSync(join(root, above))) break;
      missing.push({ path: above, before: null, after: { type: 'folder', entries: new Map() } });
    }
  }
  return missing.toSorted((one, other) => (one.path < other.path ? -1 : 1));
}

/** Refuses paths below a link or a file, unless that becomes a folder. */
export function checkFolders(
  { root, workspace }: ChangedFolder,
  changes: readonly TreeChange[],
): void {
  const changed = new Set(changes.map(({ path }) => path));
  const checked = new Set<string>();
  for (const { path } of changes) {
    for (let above = dirname(path); above !== '.'; above = dirname(above)) {
      if (checked.has(above)) break;
      checked.add(above);
      const stat = statOrNone(join(root, above));
      if (stat === undefined || stat.isDirectory() || changed.has(above)) continue;
      throw failedPrecondition(
        `${JSON.stringify(path)} cannot be changed in workspace "${workspace}": ${JSON.stringify(above)} is ${stat.isSymbolicLink() ? 'a link, which is not followed' : 'no folder'}.`,
      );
    }
  }
}

/** The step of a change; `undefined` if the path is as it should be. Refuses it if the path is not as the last scan found it. */
export async function inspect(
  folder: ChangedFolder,
  change: TreeChange,
): Promise<PlannedChange | undefined> {
  const { root, workspace } = folder;
  const { path, before, after } = change;
  const found = statOrNone(join(root, path));
  if (found?.isDirectory() && after?.type === 'folder') return undefined;
  if (found === undefined && after === undefined) return undefined;
  const planned = { path, found, after, keepsMode: before === undefined && after?.type === 'file' };
  if (before === null && found !== undefined) throw inTheWay(path, workspace);
  if (before === null || before === undefined) return { ...planned, hasContent: false };
  if (found === undefined || !(await isEntry(folder, before, { path, found }))) {
    throw changedMeanwhile(path, workspace);
  }
  const hasContent = before.type === 'file' && after?.type === 'file' && before.hash === after.hash;
  return { ...planned, hasContent };
}

async function isEntry(
  { root, known }: ChangedFolder,
  entry: TreeEntry,
  { path, found }: { readonly path: string; readonly found: Stats },
): Promise<boolean> {
  switch (entry.type) {
    case 'folder':
      return found.isDirectory();
    case 'link':
      return found.isSymbolicLink() && readlinkSync(join(root, path)) === entry.target;
    case 'file': {
      const last = known(path);
      if (last !== undefined && !last.isRecent && isSameStat(last.stat, statOf(found))) {
        return last.entry.hash === entry.hash;
      }
      return await hasHash(join(root, path), entry.hash);
    }
    default:
      return assertNever(entry);
  }
}

async function hasHash(path: string, hash: string): Promise<boolean> {
  const read = await inSlices(hashFile(path, Number.POSITIVE_INFINITY));
  return typeof read === 'object' && read.hash === hash;
}
