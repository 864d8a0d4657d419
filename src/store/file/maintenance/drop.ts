import { dirname } from 'node:path';
import { isJsonObject, parseJson } from '../../../core/json/json.ts';
import type { Scope } from '../../contract/store.ts';
import { dropSessionRows } from '../../memory/rows.ts';
import { betweenSteps } from '../../rules/between-steps.ts';
import type { DirectoryCache } from '../directory/cache.ts';
import type { Disk } from '../directory/disk.ts';
import { clearSession, withIntent } from '../directory/intent.ts';
import { deadFolder, eventsFolder, sessionsFolder, trashFolder } from '../directory/layout.ts';
import { clearedSize } from '../sessions/journal.ts';
import type { MaintenanceContext } from './family-copy.ts';
import { isAsSeen, type SeenFamily } from './seen-family.ts';

/** How many families are removed, or small files looked at, under one hold of the lock. */
export const batch = 16;

/**
 * Removes families with all their sessions, as far as nothing has happened to them since they were looked at; returns these. Their folders are
 * moved away in one step each, however much is in them; `emptyTrash` removes them. Under the lock.
 */
export function dropFamilies(
  cache: DirectoryCache,
  families: readonly SeenFamily[],
): readonly SeenFamily[] {
  const { disk, tables } = cache;
  const gone = families.filter((family) => isAsSeen(disk, family));
  if (gone.length === 0) return [];
  const sessions = gone.flatMap((family) => family.sessions);
  const drop = (): void => {
    for (const { folder } of gone) {
      const tree = cache.trees.get(folder);
      if (tree !== undefined) dropSessionRows(tables, new Set(tree.sessions.values()));
      disk.move(folder, `${trashFolder}/${tables.newId()}`);
      tree?.refresh();
      cache.trees.delete(folder);
    }
    for (const { scope, id } of sessions) clearSession(cache, scope, id);
    for (const scope of new Set(gone.map(({ folder }) => dirname(folder)))) {
      disk.removeEmpty(scope, sessionsFolder);
    }
    cache.events.sweep();
  };
  // Without forks and runs, a session is gone with its folder.
  if (gone.every(isOneFolder)) drop();
  else withIntent(cache, { folders: gone.map(({ folder }) => folder), sessions }, drop);
  return gone;
}

function isOneFolder({ sessions, stamps }: SeenFamily): boolean {
  const [, ...runs] = stamps.values();
  return sessions.length === 1 && runs.every((run) => (run?.size ?? 0) <= clearedSize);
}

/** Removes the events and dead letters of sessions that are gone, a few files at a time. */
export async function dropRunFiles(
  { cache: { disk }, transaction, step }: MaintenanceContext,
  isGone: (scope: Scope, sessionId: string) => boolean,
): Promise<void> {
  for (const folder of [eventsFolder, deadFolder]) {
    const names = await disk.listLater(folder);
    for (let at = 0; at < names.length; at += batch) {
      await transaction.write(
        () => {
          for (const name of names.slice(at, at + batch)) {
            const home = homeOf(disk, `${folder}/${name}`);
            if (home !== undefined && isGone(home.scope, home.session)) {
              disk.unlink(`${folder}/${name}`);
            }
          }
        },
        () => {},
      );
      step(0);
      await betweenSteps();
    }
  }
}

/** Longer than the first line of any file of events. */
const headLength = 4096;

/** The session that a file of events or a dead letter belongs to, by its first line. */
function homeOf(
  disk: Disk,
  name: string,
): { readonly scope: Scope; readonly session: string } | undefined {
  const isEvents = name.startsWith(`${eventsFolder}/`);
  const text = disk.open(name, ({ stamp, read }) =>
    read(0, isEvents ? Math.min(stamp.size, headLength) : stamp.size).toString('utf8'),
  );
  const line = text?.slice(0, Math.max(0, text.indexOf('\n')));
  if (line === undefined || line === '') return undefined;
  try {
    const content = parseJson(line, name);
    if (!isJsonObject(content)) return undefined;
    const { agent, owner, session } = content;
    if (typeof agent !== 'string' || typeof session !== 'string') return undefined;
    return { scope: typeof owner === 'string' ? { agent, owner } : { agent }, session };
  } catch {
    // It cannot be read, which `verify` reports.
    return undefined;
  }
}
