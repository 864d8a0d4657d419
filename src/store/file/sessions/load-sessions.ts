import type { DirectoryCache } from '../directory/cache.ts';
import { ownerFolder, sessionsFolder } from '../directory/layout.ts';
import type { DirectoryTransaction } from '../directory/transaction.ts';

/** So many families are read under one hold of the lock. */
const batch = 32;

/** The folders of all scopes of an owner. */
export function foldersOfOwner(mirror: DirectoryCache, owner: string | undefined): readonly string[] {
  return foldersBelow(mirror, ownerFolder(owner));
}

/** The folders of all scopes. */
export function allFolders(mirror: DirectoryCache): readonly string[] {
  const owners = foldersBelow(mirror, sessionsFolder);
  return owners.flatMap((owner) => foldersBelow(mirror, owner));
}

// Also those that are gone and that this process still believes in: it is about to find out.
function foldersBelow({ disk, families }: DirectoryCache, folder: string): readonly string[] {
  const depth = folder.split('/').length + 1;
  const known = [...families.keys()].filter((each) => each.startsWith(`${folder}/`));
  const found = disk.list(folder).map((name) => `${folder}/${name}`);
  return [
    ...new Set([...found, ...known.map((each) => each.split('/').slice(0, depth).join('/'))]),
  ];
}

/** Reaches all sessions of scopes with their runs. */
export function loadFolders(mirror: DirectoryCache, folders: readonly string[]): void {
  for (const folder of folders) mirror.reachScope(folder);
  mirror.reachRuns();
}

/**
 * Reads the sessions of scopes that this process has not seen yet, a few at a time, so that neither the lock nor this
 * process is held up for long.
 */
export async function readAhead(
  mirror: DirectoryCache,
  gate: DirectoryTransaction,
  folders: readonly string[],
): Promise<void> {
  const unread = folders
    .flatMap((folder) => mirror.foldersIn(folder))
    .filter((folder) => !mirror.families.has(folder));
  for (let at = 0; at < unread.length; at += batch) {
    await gate.read(() => {
      for (const folder of unread.slice(at, at + batch)) tryToReach(mirror, folder);
    });
  }
}

// Whoever needs this one will hear what is wrong with it.
function tryToReach(mirror: DirectoryCache, folder: string): void {
  try {
    mirror.reachCold(folder);
  } catch {
    mirror.families.delete(folder);
  }
}
