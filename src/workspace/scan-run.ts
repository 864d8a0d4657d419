import { codeOf } from '../core/error.ts';
import type { SkippedPath, TreeFile, TreeFolder } from './contract/contract.ts';
import type { FileStat } from './hash-file.ts';
import type { IgnoreRules } from './ignore-rules.ts';

/** A file of the last scan. */
export interface FileNode {
  readonly entry: TreeFile;
  readonly stat: FileStat;
  /** Whether it was written so shortly before that a later change could have the same times. */
  readonly isRecent: boolean;
}

/** A folder of the last scan. */
export interface FolderNode {
  readonly tree: TreeFolder;
  readonly files: ReadonlyMap<string, FileNode>;
  readonly folders: ReadonlyMap<string, FolderNode>;
  readonly rules: IgnoreRules;
  /** Its names that are not ignored, valid as long as the folder's times are the same. */
  readonly listing: { readonly names: readonly string[]; readonly stat: FileStat } | undefined;
  /** Whether there is nothing in the folder, not even ignored files. */
  readonly isEmpty: boolean;
}

/** Limits of a workspace. */
export interface ScanLimits {
  readonly maxFiles: number;
  readonly maxFileBytes: number;
  readonly maxBytes: number;
}

export const defaultLimits: ScanLimits = {
  maxFiles: 100_000,
  maxFileBytes: 100 * 2 ** 20,
  maxBytes: 4 * 2 ** 30,
};

/** One scan: where it reads, and what it has found so far. */
export interface ScanRun {
  readonly workspace: string;
  readonly root: string;
  readonly limits: ScanLimits;
  /** Whatever was written since this time of the file system is hashed again by the next scan. */
  readonly recentFrom: number;
  /** Files of a scan of an earlier process. */
  loaded(folder: string, name: string): FileNode | undefined;
  isExcluded(path: string): boolean;
  readonly skipped: SkippedPath[];
  count: number;
  size: number;
  /** Number of files that were read. */
  hashed: number;
}

/** Lists a path as skipped. */
export function skip(run: ScanRun, path: string, reason: SkippedPath['reason']): undefined {
  run.skipped.push({ path, reason });
}

/** Whether the system refuses access. */
export function isDenied(error: unknown): boolean {
  return ['EACCES', 'EPERM', 'EIO'].includes(codeOf(error) ?? '');
}
