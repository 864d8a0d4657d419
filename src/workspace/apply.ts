import { createHash } from 'node:crypto';
import {
  chmodSync,
  closeSync,
  constants,
  existsSync,
  lstatSync,
  mkdirSync,
  openSync,
  readdirSync,
  readlinkSync,
  renameSync,
  type Stats,
  symlinkSync,
  writeSync,
} from 'node:fs';
import { copyFile } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { throwIfAborted } from '../core/async/signal.ts';
import { assertNever, failedPrecondition } from '../core/error.ts';
import { takeBreak } from '../core/platform.ts';
import type {
  ApplyOptions,
  ReadContent,
  SkippedPath,
  TreeChange,
  TreeEntry,
  TreeFile,
} from './contract/contract.ts';
import { checkTreePath, metadataFolder } from './contract/paths.ts';
import { changedMeanwhile, inTheWay, pathError, wrongContent } from './errors.ts';
import { hashFile, isSameStat, statOf } from './hash-file.ts';
import type { FileNode } from './scan.ts';
import { makeMetadataFolder } from './scanner.ts';
import { inSlices, isDue, type Steps } from './slices.ts';
import {
  changePaths,
  type PlannedStep,
  readPlan,
  removeFiles,
  removeFolder,
  removePlan,
  statOrNone,
  type UndoPlan,
  undo,
  writePlan,
} from './undo.ts';

/** The folder that is changed. */
interface Folder {
  readonly root: string;
  readonly workspace: string;
  /** Throws if another process has the lock by now. */
  checkLock(): void;
  /** A file of the last scan. */
  known(path: string): FileNode | undefined;
}

const isWindows = process.platform === 'win32';

/**
 * Makes changes to a folder. New contents are written first, beside the tree. Then a record of all steps is written, and each step moves
 * one entry: the old one aside, the new one into its place. Removing the record completes the change; until then it tells how to
 * undo what was done.
 */
export async function applyChanges(
  folder: Folder,
  changes: readonly TreeChange[],
  options: ApplyOptions,
): Promise<readonly SkippedPath[]> {
  const { root, workspace } = folder;
  folder.checkLock();
  await recoverFolder(folder);
  const { wanted, skipped } = possible(root, changes);
  try {
    const planned = await prepare(folder, wanted, options);
    if (planned.length === 0) return skipped;
    folder.checkLock();
    const plan: UndoPlan = { root, workspace, steps: planned.map(toStep) };
    writePlan(plan);
    try {
      await inSlices(perform(folder, planned));
      removePlan(root);
    } catch (error) {
      await undo(plan);
      throw error;
    }
    return skipped;
  } finally {
    // Unless the plan is still needed.
    if (readPlan(root, workspace) === undefined) removeFiles(changePaths(root).folder);
  }
}

/** Checks all paths and writes all new contents. Nothing in the tree changes. */
async function prepare(
  folder: Folder,
  changes: readonly TreeChange[],
  { content, signal }: ApplyOptions,
): Promise<readonly Planned[]> {
  const { root, workspace } = folder;
  const planned: Planned[] = [];
  let path = '';
  try {
    checkFolders(folder, changes);
    for (const change of [...missingFolders(root, changes), ...changes]) {
      path = change.path;
      throwIfAborted(signal);
      const step = await inspect(folder, change);
      if (step !== undefined) planned.push(step);
      await takeBreak();
    }
    planned.sort((one, other) => (one.path < other.path ? -1 : 1));
    path = '';
    makeMetadataFolder(root);
    const { folder: beside, newOf, oldOf } = changePaths(root);
    removeFiles(beside);
    for (const each of [newOf(0), oldOf(0)]) mkdirSync(dirname(each), { recursive: true });
    for (const [at, step] of planned.entries()) {
      path = step.path;
      throwIfAborted(signal);
      await stage(folder, step, { to: newOf(at), content });
      await takeBreak();
    }
    throwIfAborted(signal);
    return planned;
  } catch (error) {
    throw pathError(error, path, workspace);
  }
}

/** Refuses paths below a link or a file, unless that becomes a folder. */
function checkFolders({ root, workspace }: Folder, changes: readonly TreeChange[]): void {
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

/** Undoes what a process has left unfinished. Only the owner of the lock calls it. */
export async function recoverFolder({
  root,
  workspace,
}: Pick<Folder, 'root' | 'workspace'>): Promise<void> {
  if (!isUnfinished(root)) return;
  const plan = readPlan(root, workspace);
  if (plan !== undefined) await undo(plan);
  removeFiles(changePaths(root).folder);
}

/** Whether a process has left a change unfinished, or is about to complete it. */
export function isUnfinished(root: string): boolean {
  return existsSync(changePaths(root).folder);
}

/** A change with what is on the disk. */
interface Planned {
  readonly path: string;
  readonly found: Stats | undefined;
  readonly after: TreeEntry | undefined;
  /** Whether a present file keeps its permissions. */
  readonly keepsMode: boolean;
  /** Whether the present file has the content of the new one. */
  readonly hasContent: boolean;
}

function toStep({ path, found, after }: Planned): PlannedStep {
  const old = found === undefined ? 'none' : found.isDirectory() ? 'folder' : 'file';
  const mode = old === 'folder' && found ? { mode: found.mode & 0o7777 } : {};
  return { path, old, ...mode, ...(after && { new: after.type === 'folder' ? 'folder' : after }) };
}

/** The changes that this system can make. */
function possible(
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
function missingFolders(root: string, changes: readonly TreeChange[]): readonly TreeChange[] {
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

/** The step of a change; `undefined` if the path is as it should be. Refuses it if the path is not as the last scan found it. */
async function inspect(folder: Folder, change: TreeChange): Promise<Planned | undefined> {
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
  { root, known }: Folder,
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

/** Writes a new entry beside the tree. */
async function stage(
  { root, workspace }: Folder,
  { path, found, after, hasContent, keepsMode }: Planned,
  { to, content }: { readonly to: string; readonly content: ReadContent },
): Promise<void> {
  if (after === undefined || after.type === 'folder') return;
  if (after.type === 'link') return symlinkSync(after.target, to);
  if (hasContent) await copyFile(join(root, path), to, constants.COPYFILE_FICLONE);
  else await writeContent(to, content(after, path), { file: after, path, workspace });
  if (keepsMode && found?.isFile()) return chmodSync(to, found.mode & 0o7777);
  const mode = found?.isFile() ? found.mode & 0o7777 : lstatSync(to).mode & 0o7777;
  // Whoever may read it may execute it.
  chmodSync(to, after.isExecutable ? mode | ((mode & 0o444) >> 2) : mode & ~0o111);
}

async function writeContent(
  to: string,
  pieces: AsyncIterable<Uint8Array>,
  {
    file,
    path,
    workspace,
  }: { readonly file: TreeFile; readonly path: string; readonly workspace: string },
): Promise<void> {
  const hash = createHash('sha256');
  const fd = openSync(to, 'wx');
  try {
    for await (const piece of pieces) {
      hash.update(piece);
      for (let at = 0; at < piece.length; ) at += writeSync(fd, piece, at);
    }
  } finally {
    closeSync(fd);
  }
  if (hash.digest('hex') !== file.hash) throw wrongContent(path, workspace);
}

/** Moves the old entries aside, what is inside a folder before the folder, and then the new ones into their places. */
function* perform({ root, workspace }: Folder, planned: readonly Planned[]): Steps<void> {
  const { oldOf, newOf } = changePaths(root);
  let current = '';
  try {
    for (const [at, { path, found, after }] of [...planned.entries()].reverse()) {
      if (isDue()) yield;
      current = path;
      if (found === undefined) continue;
      if (found.isDirectory()) {
        if (!removeFolder(join(root, path)) && after !== undefined) throw inTheWay(path, workspace);
        continue;
      }
      renameSync(join(root, path), oldOf(at));
      // It may have been changed since it was inspected.
      if (!isUntouched(found, lstatSync(oldOf(at)))) throw changedMeanwhile(path, workspace);
    }
    for (const [at, { path, after }] of planned.entries()) {
      if (isDue()) yield;
      current = path;
      if (after === undefined) continue;
      if (statOrNone(join(root, path)) !== undefined) throw changedMeanwhile(path, workspace);
      if (after.type === 'folder') mkdirSync(join(root, path));
      else renameSync(newOf(at), join(root, path));
    }
  } catch (error) {
    throw pathError(error, current, workspace);
  }
}

/** Whether it is the same, apart from the time of its inode, which its move has changed. */
function isUntouched(one: Stats, other: Stats): boolean {
  return one.ino === other.ino && one.size === other.size && one.mtimeMs === other.mtimeMs;
}
