import { existsSync, lstatSync, mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { join, relative, sep } from 'node:path';
import { codeOf } from '../core/error.ts';
import type {
  ScanOptions,
  SkippedPath,
  TreeEntry,
  TreeFolder,
  WorkspaceScan,
} from './contract/contract.ts';
import { checkTreePath, metadataFolder } from './contract/paths.ts';
import { entryAt, withEntry } from './contract/tree.ts';
import { pathError } from './errors.ts';
import { noRules } from './ignore-rules.ts';
import { scanEntry, scanFolder } from './scan.ts';
import type { FileNode, FolderNode, ScanLimits, ScanRun } from './scan-run.ts';
import { inSlices, type Steps } from './slices.ts';
import { readStatCache, type StatCache, writeStatCache } from './stat-cache.ts';

/** Scans one folder again and again. */
export interface Scanner {
  scan(options?: ScanOptions): Promise<WorkspaceScan>;
  /** A file of the last scan. */
  known(path: string): FileNode | undefined;
  /** Changes the folder while it is not scanned. */
  change<Result>(work: () => Promise<Result>): Promise<Result>;
  /** Writes the stat cache for other processes, if enough has changed. */
  save(): Promise<void>;
}

interface ScannerOptions {
  readonly workspace: string;
  readonly root: string;
  readonly limits: ScanLimits;
  /** Absolute paths that are left out. */
  readonly exclude: readonly string[];
}

/** The number of newly hashed files from which on the cache is written. */
const worthSaving = 64;

export function createScanner({ workspace, root, limits, exclude }: ScannerOptions): Scanner {
  const excluded = exclude
    .map((path) => relative(root, path).split(sep).join('/'))
    .filter((path) => path !== '' && !path.startsWith('../'));
  let last: FolderNode | undefined;
  let loaded: StatCache | undefined;
  let unsaved = 0;
  // One scan at a time: they share what was found last.
  let queue: Promise<unknown> = Promise.resolve();
  const afterOthers = <Result>(work: () => Promise<Result>): Promise<Result> => {
    const result = queue.then(work);
    queue = result.catch(() => {});
    return result;
  };

  const newRun = (): ScanRun => ({
    workspace,
    root,
    limits,
    recentFrom: recentTime(root),
    loaded: (folder, name) => loaded?.get(folder)?.get(name),
    isExcluded: (path) => excluded.some((each) => isPartOf(path, each)),
    skipped: [],
    count: 0,
    size: 0,
    hashed: 0,
  });

  const scan = async ({ signal, include = [] }: ScanOptions): Promise<WorkspaceScan> => {
    for (const path of include) checkTreePath(path);
    if (last === undefined) loaded ??= await readStatCache(root, signal);
    try {
      const run = newRun();
      const stat = lstatSync(root);
      const steps = scanFolder(run, '', { stat, outerRules: noRules, last });
      last = await inSlices(steps, signal);
      loaded = undefined;
      unsaved += run.hashed;
      const tree = await inSlices(includePaths(run, last.tree, include), signal);
      const { count, size } = run;
      return { tree, skipped: sorted(run.skipped), count, size };
    } catch (error) {
      throw pathError(error, '', workspace);
    }
  };

  return {
    scan: (options = {}) => afterOthers(() => scan(options)),
    change: afterOthers,
    known(path) {
      const names = path.split('/');
      const name = names.pop() ?? '';
      const folder = names.reduce((inner, each) => inner?.folders.get(each), last);
      return folder?.files.get(name);
    },
    save: () =>
      afterOthers(async () => {
        if (last === undefined || unsaved < worthSaving) return;
        await writeStatCache(root, last);
        unsaved = 0;
      }),
  };
}

// SQLite keeps more files next to a database.
function isPartOf(path: string, excluded: string): boolean {
  if (!path.startsWith(excluded)) return false;
  return /^($|\/|-(wal|shm|journal)$)/.test(path.slice(excluded.length));
}

function sorted(skipped: readonly SkippedPath[]): readonly SkippedPath[] {
  return [...skipped].sort((one, other) => (one.path < other.path ? -1 : 1));
}

/** The time of the file system, less the step in which its clock moves. Other clocks may differ from it, and jump. */
function recentTime(root: string): number {
  const now = fileSystemTime(root) ?? Date.now();
  // FAT counts in steps of two seconds, others at least as often as the kernel's timer ticks.
  return now - (now % 1000 === 0 ? 2_000 : 20);
}

/** The current time of the clock that gives files their times; `undefined` if the folder cannot be written. */
export function fileSystemTime(root: string): number | undefined {
  const probe = join(root, metadataFolder, 'clock');
  try {
    writeFileSync(probe, '.');
    const { ctimeMs, mtimeMs } = lstatSync(probe);
    return Math.max(ctimeMs, mtimeMs);
  } catch {
    return undefined;
  }
}

/** Makes the folder for metadata, which git and scans leave out. */
export function makeMetadataFolder(root: string): void {
  const folder = join(root, metadataFolder);
  try {
    mkdirSync(folder);
  } catch (error) {
    if (codeOf(error) !== 'EEXIST') throw error;
    // A link would lead writes out of the tree.
    if (lstatSync(folder).isDirectory()) return;
    rmSync(folder);
    mkdirSync(folder);
  }
  const rules = join(folder, '.gitignore');
  if (!existsSync(rules)) writeFileSync(rules, '*\n');
}

function* includePaths(
  run: ScanRun,
  tree: TreeFolder,
  paths: readonly string[],
): Steps<TreeFolder> {
  let all = tree;
  for (const path of paths) {
    const found = yield* entryInTheWay(run, path);
    if (found === undefined || entryAt(all, found.path) !== undefined) continue;
    all = withEntry(all, found.path, found.entry);
  }
  return all;
}

/** The entry at a path, or in its way at a folder above it, whether it is ignored or not. */
function* entryInTheWay(
  run: ScanRun,
  path: string,
): Steps<{ readonly path: string; readonly entry: TreeEntry } | undefined> {
  const names = path.split('/');
  for (let depth = 1; depth <= names.length; depth++) {
    const above = names.slice(0, depth).join('/');
    const stat = lstatSync(join(run.root, above), { throwIfNoEntry: false });
    if (stat === undefined) return undefined;
    if (stat.isDirectory() && depth < names.length) continue;
    const entry = yield* scanEntry(run, above, stat);
    return entry && { path: above, entry };
  }
  return undefined;
}
