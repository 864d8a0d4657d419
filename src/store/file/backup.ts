import { cpSync, existsSync } from 'node:fs';
import { copyFile, cp, readdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { WaymarkError } from '../../core/error.ts';
import { type BackupReport, checkFree, notThere } from '../backup.ts';
import type { Directory } from './directory.ts';
import { attempt, Disk } from './disk.ts';
import { openParts } from './file-store.ts';
import {
  formatFile,
  ignoreFile,
  lockFile,
  pointerFile,
  requestsFolder,
  runFile,
  spendFolder,
} from './layout.ts';

/**
 * Copies the store in a directory to another directory while it is in use. Each session is copied together with its forks and
 * their runs, under the lock of the store, which is free in between. The copy is a store with all turns that had ended when
 * the backup began.
 */
export async function backupFiles(directory: string, target: string): Promise<BackupReport> {
  if (!existsSync(join(directory, formatFile))) throw notThere('file store', directory);
  await checkFree(target);
  const { files, transaction, lock } = openParts(directory);
  // A file, or a folder with its content, if there is one.
  const copy = (name: string): void => {
    const filter = (path: string): boolean => !path.endsWith('.tmp');
    const from = join(directory, name);
    if (existsSync(from)) cpSync(from, join(target, name), { recursive: true, filter });
  };
  let sessions = 0;
  try {
    await transaction.open();
    for (const folder of files.scopeFolders().flatMap((scope) => files.foldersIn(scope))) {
      sessions += await transaction.read(() => copyTree(files, folder, copy));
    }
    // After the sessions, so that every turn in the copy has its idempotency key. A key without its turn is free.
    await transaction.read(() => copy(requestsFolder));
    await transaction.read(() => copy(spendFolder));
    copy(ignoreFile);
    await complete(directory, target);
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
  const filter = (path: string): boolean =>
    path !== join(source, formatFile) && !path.startsWith(join(source, lockFile));
  try {
    await cp(source, directory, { recursive: true, filter });
    await complete(source, directory);
  } catch (error) {
    await rm(directory, { recursive: true, force: true });
    throw error;
  }
  return { sessions: await countSessions(directory) };
}

/** Copies a session with its forks and their runs; returns the number of sessions. */
function copyTree(directory: Directory, folder: string, copy: (name: string) => void): number {
  const tree = directory.tree(folder, { isLoaded: false });
  // A damaged one is copied as it is, for `verify` to report.
  attempt(() => tree.journal.refresh());
  copy(folder);
  for (const { scope, id, run } of tree.sessions.values()) {
    copy(pointerFile(scope, id));
    if (run === undefined) continue;
    copy(runFile(run.id));
    copy(directory.files.uploadsOf(run.id));
  }
  const { size } = tree.sessions;
  directory.forgetTree(tree);
  return size;
}

/** Completes a store: the format comes last, because until it is there, the directory is no store. */
async function complete(source: string, target: string): Promise<void> {
  const disk = new Disk(target, { durable: true });
  await disk.sync(new Set(await readdir(target, { recursive: true }).catch(() => [])));
  await copyFile(join(source, formatFile), join(target, formatFile));
  await disk.sync(new Set([formatFile, '.']));
}

async function countSessions(directory: string): Promise<number> {
  const { files, transaction, lock } = openParts(directory);
  try {
    await transaction.open();
    for (const scope of files.scopeFolders()) {
      const error = await transaction.read(() => files.refreshScope(scope));
      if (error instanceof WaymarkError && error.status !== 'DATA_LOSS') throw error;
    }
    return files.tables.sessions.size;
  } finally {
    lock.close();
  }
}
