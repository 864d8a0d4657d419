import { copyFileSync, existsSync, mkdirSync } from 'node:fs';
import { copyFile, cp, mkdir, open, readdir, rm } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';
import { WaymarkError } from '../../../core/error.ts';
import { type BackupReport, checkFree, notThere } from '../../backup.ts';
import type { DirectoryCache } from '../directory/cache.ts';
import {
  artifactsName,
  deadFolder,
  eventsFile,
  formatFile,
  ignoreFile,
  intentFile,
  journalName,
  lockFile,
  requestsFolder,
  runFile,
  spendFolder,
  sweepName,
} from '../directory/layout.ts';
import { openParts } from '../file-store.ts';
import { pointerFile } from '../sessions/fork-pointer.ts';
import { allFolders } from '../sessions/load-sessions.ts';
import type { SessionTree } from '../sessions/session-tree.ts';

/**
 * Copies the store in a directory to another directory while it is in use. Each session is copied together with its forks and
 * the run that works on it, under the lock of the store, which is free in between. The copy is a store like the original:
 * it has every turn that had ended when the backup began.
 */
export async function backupFiles(directory: string, target: string): Promise<BackupReport> {
  if (!existsSync(join(directory, formatFile))) throw notThere('file store', directory);
  await checkFree(target);
  const { cache, transaction, lock } = openParts(directory);
  const copy = createCopy(cache, resolve(target));
  let sessions = 0;
  try {
    await transaction.open();
    for (const scope of allFolders(cache)) {
      for (const folder of cache.foldersIn(scope)) {
        sessions += await transaction.read(() => copyFamily(cache, folder, copy));
      }
    }
    await transaction.read(() => copy.folder(deadFolder));
    // After the sessions, so that every turn in the copy has its idempotency key; one without its turn is free to be used again.
    await transaction.read(() => copy.folder(requestsFolder));
    await transaction.read(() => copy.folder(spendFolder));
    copy.file(ignoreFile);
    await syncAll(resolve(target));
    // The last one: until it is there, the directory is no store.
    await copyFile(join(directory, formatFile), join(target, formatFile));
    await syncAll(resolve(target), [formatFile]);
    return { sessions };
  } catch (error) {
    await rm(target, { recursive: true, force: true });
    throw error;
  } finally {
    lock.close();
  }
}

/** Restores a backup into a directory that has no store yet. Unfinished background runs continue when an app opens it. */
export async function restoreFiles(source: string, directory: string): Promise<BackupReport> {
  if (!existsSync(join(source, formatFile))) throw notThere('backup of a file store', source);
  await checkFree(directory);
  await mkdir(directory, { recursive: true });
  const own = new Set([formatFile, intentFile, lockFile, `${lockFile}-mark`]);
  try {
    for (const name of await readdir(source)) {
      if (own.has(name)) continue;
      await cp(join(source, name), join(directory, name), { recursive: true });
    }
    await syncAll(resolve(directory));
    await copyFile(join(source, formatFile), join(directory, formatFile));
    await syncAll(resolve(directory), [formatFile]);
  } catch (error) {
    await rm(directory, { recursive: true, force: true });
    throw error;
  }
  return { sessions: await countSessions(directory) };
}

interface Copy {
  /** Copies a file, if it is there. */
  file(name: string): void;
  /** Copies the files of a folder, if it is there. */
  folder(name: string): void;
}

function createCopy({ disk }: DirectoryCache, target: string): Copy {
  const file = (name: string): void => {
    const from = join(disk.root, name);
    if (!existsSync(from)) return;
    const to = join(target, name);
    mkdirSync(dirname(to), { recursive: true });
    copyFileSync(from, to);
  };
  return {
    file,
    folder(name) {
      for (const each of disk.list(name)) if (!each.endsWith('.tmp')) file(`${name}/${each}`);
    },
  };
}

/** Copies a session with its forks, their runs and the events of these; gives how many sessions there are. */
function copyFamily(cache: DirectoryCache, folder: string, copy: Copy): number {
  const tree = readable(cache, folder);
  copy.folder(`${folder}/${artifactsName}`);
  copy.file(`${folder}/${journalName}`);
  copy.file(`${folder}/${sweepName}`);
  if (tree === undefined) return 0;
  for (const { scope, id } of tree.sessions.values()) {
    const run = cache.refreshSession(scope, id)?.session.run;
    copy.file(pointerFile(scope, id));
    if (run === undefined) continue;
    copy.file(runFile(scope, id));
    copy.file(eventsFile(run.id));
    copy.folder(cache.uploads.folderOf(run.id));
  }
  return tree.sessions.size;
}

// What cannot be read is copied as it is: `verify` says what is wrong with it.
function readable(cache: DirectoryCache, folder: string): SessionTree | undefined {
  try {
    return cache.refreshCold(folder);
  } catch {
    return undefined;
  }
}

/** Waits until files are on the disk: these, or all below a folder. */
async function syncAll(root: string, names?: readonly string[]): Promise<void> {
  const found = names ?? (await filesBelow(root));
  for (const name of found) {
    const file = await open(join(root, name), 'r+');
    try {
      await file.sync();
    } finally {
      await file.close();
    }
  }
}

async function filesBelow(root: string): Promise<readonly string[]> {
  const entries = await readdir(root, { recursive: true, withFileTypes: true }).catch(() => []);
  return entries
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name).slice(root.length + 1));
}

async function countSessions(directory: string): Promise<number> {
  const { cache, transaction, lock } = openParts(directory);
  try {
    await transaction.open();
    let count = 0;
    for (const scope of allFolders(cache)) {
      const { trees, error } = await transaction.read(() => cache.refreshScope(scope));
      if (error instanceof WaymarkError && error.status !== 'DATA_LOSS') throw error;
      count += trees.reduce((sum, { sessions }) => sum + sessions.size, 0);
    }
    return count;
  } finally {
    lock.close();
  }
}
