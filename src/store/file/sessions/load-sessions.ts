import type { DirectoryCache } from '../directory/cache.ts';
import { ownerFolder, sessionsFolder } from '../directory/layout.ts';
import type { DirectoryTransaction } from '../directory/transaction.ts';

/** So many families are read under one hold of the lock. */
const batch = 32;

/** The folders of all scopes of an owner. */
export function foldersOfOwner(
  cache: DirectoryCache,
  owner: string | undefined,
): readonly string[] {
  return foldersBelow(cache, ownerFolder(owner));
}

/** The folders of all scopes. */
export function allFolders(cache: DirectoryCache): readonly string[] {
  const owners = foldersBelow(cache, sessionsFolder);
  return owners.flatMap((owner) => foldersBelow(cache, owner));
}

// Also those that are gone and that this process still believes in: it is about to find out.
function foldersBelow({ disk, trees }: DirectoryCache, folder: string): readonly string[] {
  const depth = folder.split('/').length + 1;
  const known = [...trees.keys()].filter((each) => each.startsWith(`${folder}/`));
  const found = disk.list(folder).map((name) => `${folder}/${name}`);
  return [
    ...new Set([...found, ...known.map((each) => each.split('/').slice(0, depth).join('/'))]),
  ];
}

/** Reaches all sessions of scopes with their runs. */
export function loadFolders(cache: DirectoryCache, folders: readonly string[]): void {
  for (const folder of folders) cache.refreshScope(folder);
  cache.refreshRuns();
}

/**
 * Reads the sessions of scopes that this process has not seen yet, a few at a time, so that neither the lock nor this
 * process is held up for long.
 */
export async function readAhead(
  cache: DirectoryCache,
  transaction: DirectoryTransaction,
  folders: readonly string[],
): Promise<void> {
  const unread = folders
    .flatMap((folder) => cache.foldersIn(folder))
    .filter((folder) => !cache.trees.has(folder));
  for (let at = 0; at < unread.length; at += batch) {
    await transaction.read(() => {
      for (const folder of unread.slice(at, at + batch)) tryToReach(cache, folder);
    });
  }
}

// A caller that reads this one gets the error.
function tryToReach(cache: DirectoryCache, folder: string): void {
  try {
    cache.refreshCold(folder);
  } catch {
    cache.trees.delete(folder);
  }
}
