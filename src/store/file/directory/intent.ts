import { dirname } from 'node:path';
import * as v from 'valibot';
import { isWaymarkError } from '../../../core/error.ts';
import type { Scope } from '../../contract/store.ts';
import { pointerFile } from '../sessions/fork-pointer.ts';
import type { SessionTree } from '../sessions/session-tree.ts';
import type { DirectoryCache } from './cache.ts';
import { toLine } from './checked-line.ts';
import type { Disk } from './disk.ts';
import { dataLoss } from './disk-error.ts';
import { format, parseSealed } from './format.ts';
import { intentFile, runFile, sessionsFolder } from './layout.ts';

const intent = v.object({
  waymark: v.number(),
  folders: v.array(v.string()),
  sessions: v.array(v.object({ agent: v.string(), owner: v.optional(v.string()), id: v.string() })),
});

/** Where a step that touches several files may leave something behind. */
export interface Leftovers {
  /** Folders of families that may contain unused artifacts. */
  readonly folders: readonly string[];
  /** Sessions that come or go; their other files must not be there without them. */
  readonly sessions: readonly { readonly scope: Scope; readonly id: string }[];
}

/**
 * Does something that touches several files. What may be left behind when the process dies in the middle is written down
 * before, and the next holder of the lock removes it.
 */
export function withIntent(cache: DirectoryCache, leftovers: Leftovers, action: () => void): void {
  const { disk } = cache;
  const sessions = leftovers.sessions.map(({ scope, id }) => ({ ...scope, id }));
  const content = { waymark: format, folders: leftovers.folders, sessions };
  disk.replace(intentFile, `${toLine(content)}\n`);
  action();
  disk.unlink(intentFile);
}

/** Clears away what a process left behind that died in the middle of something. */
export function recover(cache: DirectoryCache): void {
  const { disk } = cache;
  if (disk.stamp(intentFile) === undefined) return;
  const { folders, sessions } = readIntent(disk);
  for (const { id, agent, owner } of sessions) {
    const scope = owner === undefined ? { agent } : { agent, owner };
    if (cache.refreshSession(scope, id) === undefined) clearSession(cache, scope, id);
  }
  for (const folder of folders) sweep(cache, folder);
  cache.refreshAllEvents();
  cache.sweep();
  disk.unlink(intentFile);
}

/** Removes what is left of a session outside its journal. */
export function clearSession(cache: DirectoryCache, scope: Scope, sessionId: string): void {
  const { disk } = cache;
  disk.remove(pointerFile(scope, sessionId));
  disk.remove(`${pointerFile(scope, sessionId)}.tmp`);
  disk.remove(runFile(scope, sessionId));
  cache.runFile({ scope, id: sessionId }).journal.forget();
}

/** Removes what no session in a folder needs, and the folder when no session is left. */
export function sweep(cache: DirectoryCache, folder: string): void {
  const tree = cache.refreshFamily(folder);
  if (tree === undefined || tree.sessions.size === 0) {
    cache.disk.remove(folder);
    cache.disk.removeEmpty(dirname(folder), sessionsFolder);
    tree?.refresh();
    return;
  }
  for (const name of unneeded(tree)) cache.disk.remove(name);
  keepNeededChunks(tree);
  cache.disk.remove(`${tree.journal.name}.tmp`);
}

/** The artifacts in a family's folder that no snapshot has. */
export function unneeded({ rows, artifacts }: SessionTree): readonly string[] {
  return artifacts.others(new Set([...rows.values()].flatMap((row) => row.artifacts)));
}

/** Removes chunks that no artifact needs. All stay when a needed artifact is damaged, which `verify` reports. */
export function keepNeededChunks({ rows, artifacts }: SessionTree): void {
  const needed = new Set([...rows.values()].flatMap((row) => row.artifacts));
  try {
    artifacts.compact(needed);
  } catch (error) {
    if (!isWaymarkError(error) || error.status !== 'DATA_LOSS') throw error;
  }
}

function readIntent(disk: Disk): v.InferOutput<typeof intent> {
  try {
    return v.parse(intent, parseSealed(disk.readText(intentFile) ?? '', intentFile));
  } catch (cause) {
    if (isWaymarkError(cause) && cause.status !== 'INVALID_ARGUMENT') throw cause;
    throw dataLoss(intentFile, 'it is not what this store writes', cause);
  }
}
