import type { Gate } from './gate.ts';
import { ownerFolder, sessionsFolder } from './layout.ts';
import type { Mirror } from './mirror.ts';

/** So many families are read under one hold of the lock. */
const batch = 32;

/** The folders of all scopes of an owner. */
export function foldersOfOwner({ disk }: Mirror, owner: string | undefined): readonly string[] {
  const folder = ownerFolder(owner);
  return disk.list(folder).map((name) => `${folder}/${name}`);
}

/** The folders of all scopes. */
export function allFolders({ disk }: Mirror): readonly string[] {
  const owners = disk.list(sessionsFolder).map((name) => `${sessionsFolder}/${name}`);
  return owners.flatMap((owner) => disk.list(owner).map((name) => `${owner}/${name}`));
}

/** Reaches all sessions of scopes with their runs. */
export function reachFolders(mirror: Mirror, folders: readonly string[]): void {
  for (const folder of folders) mirror.reachScope(folder);
  mirror.reachRuns();
}

/**
 * Reads the sessions of scopes that this process has not seen yet, a few at a time, so that neither the lock nor this
 * process is held up for long.
 */
export async function readAhead(
  mirror: Mirror,
  gate: Gate,
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
function tryToReach(mirror: Mirror, folder: string): void {
  try {
    mirror.reachCold(folder);
  } catch {
    mirror.families.delete(folder);
  }
}
