import { createHash } from 'node:crypto';
import {
  chmodSync,
  closeSync,
  constants,
  existsSync,
  lstatSync,
  mkdirSync,
  openSync,
  renameSync,
  type Stats,
  symlinkSync,
  writeSync,
} from 'node:fs';
import { copyFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { throwIfAborted } from '../core/async/signal.ts';
import { takeBreak } from '../core/platform.ts';
import type {
  ApplyOptions,
  ReadContent,
  SkippedPath,
  TreeChange,
  TreeFile,
} from './contract/contract.ts';
import { changedMeanwhile, inTheWay, pathError, wrongContent } from './errors.ts';
import {
  type ChangedFolder,
  checkFolders,
  inspect,
  missingFolders,
  type PlannedChange,
  possible,
} from './plan-change.ts';
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

/**
 * Makes changes to a folder. New contents are written first, beside the tree. Then a record of all steps is written, and each step moves
 * one entry: the old one aside, the new one into its place. Removing the record completes the change; until then it tells how to
 * undo what was done.
 */
export async function applyChanges(
  folder: ChangedFolder,
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
  folder: ChangedFolder,
  changes: readonly TreeChange[],
  { content, signal }: ApplyOptions,
): Promise<readonly PlannedChange[]> {
  const { root, workspace } = folder;
  const planned: PlannedChange[] = [];
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

/** Undoes what a process has left unfinished. Only the owner of the lock calls it. */
export async function recoverFolder({
  root,
  workspace,
}: Pick<ChangedFolder, 'root' | 'workspace'>): Promise<void> {
  if (!isUnfinished(root)) return;
  const plan = readPlan(root, workspace);
  if (plan !== undefined) await undo(plan);
  removeFiles(changePaths(root).folder);
}

/** Whether a process has left a change unfinished, or is about to complete it. */
export function isUnfinished(root: string): boolean {
  return existsSync(changePaths(root).folder);
}

function toStep({ path, found, after }: PlannedChange): PlannedStep {
  const old = found === undefined ? 'none' : found.isDirectory() ? 'folder' : 'file';
  const mode = old === 'folder' && found ? { mode: found.mode & 0o7777 } : {};
  return { path, old, ...mode, ...(after && { new: after.type === 'folder' ? 'folder' : after }) };
}

/** Writes a new entry beside the tree. */
async function stage(
  { root, workspace }: ChangedFolder,
  { path, found, after, hasContent, keepsMode }: PlannedChange,
  { to, content }: { readonly to: string; readonly content: ReadContent },
): Promise<void> {
  if (after === undefined || after.type === 'folder') return;
  if (after.type === 'link') return symlinkSync(after.target, to);
  if (hasContent) await copyFile(join(root, path), to, constants.COPYFILE_FICLONE);
  else await writeContent(to, content(after, path), { file: after, path, workspace });
  if (keepsMode && found?.isFile()) return chmodSync(to, found.mode & 0o7777);
  const mode = found?.isFile() ? found.mode & 0o7777 : lstatSync(to).mode & 0o7777;
  // Users who may read it may execute it.
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
function* perform(
  { root, workspace }: ChangedFolder,
  planned: readonly PlannedChange[],
): Steps<void> {
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
