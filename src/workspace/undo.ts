import {
  existsSync,
  lstatSync,
  mkdirSync,
  readFileSync,
  readlinkSync,
  renameSync,
  rmdirSync,
  rmSync,
  type Stats,
  unlinkSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { codeOf, WaymarkError } from '../core/error.ts';
import type { TreeFile, TreeLink } from './contract/contract.ts';
import { checkTreePath, metadataFolder } from './contract/paths.ts';
import { pathError } from './errors.ts';
import { hashFile } from './hash-file.ts';
import { inSlices, isDue, type Steps } from './slices.ts';

/** The record of a change that has begun. */
export interface UndoPlan {
  readonly root: string;
  readonly workspace: string;
  /** By path, folders before what is in them. */
  readonly steps: readonly PlannedStep[];
}

/** One path of a change. */
export interface PlannedStep {
  readonly path: string;
  /** The present entry: `file` is anything but a folder. */
  readonly old: 'none' | 'file' | 'folder';
  /** The permissions of an old folder. */
  readonly mode?: number;
  /** Absent if the path is removed. */
  readonly new?: TreeFile | TreeLink | 'folder';
}

interface ChangePaths {
  readonly folder: string;
  readonly plan: string;
  oldOf(step: number): string;
  newOf(step: number): string;
}

/** Where a change keeps what it needs: beside the tree, on the same file system. */
export function changePaths(root: string): ChangePaths {
  const folder = join(root, metadataFolder, 'change');
  return {
    folder,
    plan: join(folder, 'plan.json'),
    oldOf: (step) => join(folder, 'old', String(step)),
    newOf: (step) => join(folder, 'new', String(step)),
  };
}

/** From here on the change has begun: a process that finds the plan undoes it. */
export function writePlan({ root, steps }: UndoPlan): void {
  const { plan } = changePaths(root);
  writeFileSync(`${plan}.new`, JSON.stringify(steps));
  renameSync(`${plan}.new`, plan);
}

/** The change is complete, or undone. */
export function removePlan(root: string): void {
  unlinkSync(changePaths(root).plan);
}

export function readPlan(root: string, workspace: string): UndoPlan | undefined {
  const { plan } = changePaths(root);
  if (!existsSync(plan)) return undefined;
  try {
    const steps = JSON.parse(readFileSync(plan, 'utf8')) as readonly PlannedStep[];
    for (const { path } of steps) checkTreePath(path);
    return { root, workspace, steps };
  } catch (cause) {
    throw new WaymarkError(
      'DATA_LOSS',
      `The record of an unfinished change in workspace "${workspace}" is damaged. Its files are in the folder "${metadataFolder}/change": move it away once you have taken what you need.`,
      { cause },
    );
  }
}

/**
 * Makes the tree what it was before a change. It can be interrupted and repeated. An entry that was changed since stays.
 */
export async function undo(plan: UndoPlan): Promise<void> {
  await inSlices(undoSteps(plan));
  removePlan(plan.root);
}

function* undoSteps({ root, workspace, steps }: UndoPlan): Steps<void> {
  const { oldOf, newOf } = changePaths(root);
  let current = '';
  try {
    for (const [at, step] of [...steps.entries()].reverse()) {
      if (isDue()) yield;
      current = step.path;
      const path = join(root, step.path);
      if (step.new === undefined) continue;
      if (step.new === 'folder') removeFolder(path);
      // A step that was not done, or is undone, has its new entry beside the tree.
      else if (statOrNone(newOf(at)) === undefined && (yield* isEntry(path, step.new))) {
        renameSync(path, newOf(at));
      }
    }
    for (const [at, step] of steps.entries()) {
      if (isDue()) yield;
      current = step.path;
      const path = join(root, step.path);
      if (step.old === 'none' || statOrNone(path) !== undefined) continue;
      if (step.old === 'folder') mkdirSync(path, { mode: step.mode });
      else if (statOrNone(oldOf(at)) !== undefined) renameSync(oldOf(at), path);
    }
  } catch (error) {
    throw pathError(error, current, workspace);
  }
}

function* isEntry(path: string, entry: TreeFile | TreeLink): Steps<boolean> {
  const stat = statOrNone(path);
  if (entry.type === 'link')
    return stat?.isSymbolicLink() === true && readlinkSync(path) === entry.target;
  if (stat?.isFile() !== true) return false;
  const read = yield* hashFile(path, Number.POSITIVE_INFINITY);
  return typeof read === 'object' && read.hash === entry.hash;
}

/** Removes a folder if it is empty. Returns whether it is gone. */
export function removeFolder(path: string): boolean {
  try {
    rmdirSync(path);
    return true;
  } catch (error) {
    const code = codeOf(error) ?? '';
    if (code === 'ENOENT') return true;
    if (['ENOTEMPTY', 'EEXIST', 'ENOTDIR'].includes(code)) return false;
    throw error;
  }
}

/** Removes metadata. What cannot be removed is removed by the next change. */
export function removeFiles(path: string): void {
  try {
    rmSync(path, { recursive: true, force: true });
  } catch {}
}

/** The entry at a path, also if it is a link; `undefined` if there is none, or no folder above it. */
export function statOrNone(path: string): Stats | undefined {
  try {
    return lstatSync(path, { throwIfNoEntry: false });
  } catch (error) {
    if (codeOf(error) === 'ENOTDIR') return undefined;
    throw error;
  }
}
