import { isWaymarkError } from '../../../core/error.ts';
import type { Fault } from '../../contract/store.ts';
import type { RunRow, SessionRow, SnapshotRow } from '../../memory/tables.ts';
import { verifyInSteps } from '../../memory/verify.ts';
import { createFaults, type Step } from '../../rules/maintenance-steps.ts';
import type { DirectoryCache } from '../directory/cache.ts';
import type { Disk } from '../directory/disk.ts';
import { parseSealed } from '../directory/format.ts';
import { unneeded } from '../directory/intent.ts';
import {
  artifactsName,
  deadFolder,
  eventsFolder,
  journalName,
  requestsFolder,
  runsFolder,
} from '../directory/layout.ts';
import { parsePointer } from '../sessions/fork-pointer.ts';
import { Journal } from '../sessions/journal.ts';
import type { SessionTree } from '../sessions/session-tree.ts';

/** Reads a folder of sessions again and says what does not fit. */
export function verifyFolder(cache: DirectoryCache, folder: string, step: Step): readonly Fault[] {
  let tree: SessionTree | undefined;
  try {
    tree = cache.refreshCold(folder);
    // What is in memory may be better than what is on the disk.
    tree?.journal.forget();
    tree?.refresh();
    tree?.states.cool();
  } catch (error) {
    return [{ kind: 'hash', message: messageOf(error) }];
  }
  // Without a journal nothing has happened in it: it is about to be made, or has just been removed.
  const name = `${folder}/${journalName}`;
  if (tree === undefined && cache.disk.stamp(name) !== undefined) return [unfinished(name)];
  if (tree === undefined && cache.disk.list(`${folder}/${artifactsName}`).length === 0) return [];
  if (tree !== undefined && !tree.journal.isWhole) {
    return [unfinished(name), ...familyFaults(cache, tree, step)];
  }
  if (tree?.scope === undefined) {
    return [{ kind: 'unreachable', message: `No session belongs in the folder "${folder}".` }];
  }
  return [...familyFaults(cache, tree, step), ...chunkFaults(tree), ...unreachable(tree)];
}

/** Checks of the files of runs, events, dead letters and requests, to be made one by one under the lock. */
export function runChecks(cache: DirectoryCache): readonly (() => readonly Fault[])[] {
  const { disk } = cache;
  const checks = (
    folder: string,
    check: (disk: Disk, name: string) => readonly Fault[],
  ): readonly (() => readonly Fault[])[] =>
    disk.list(folder).map((each) => () => {
      const name = `${folder}/${each}`;
      // A run that has ended meanwhile took its files with it.
      return disk.stamp(name) === undefined ? [] : check(disk, name);
    });
  return [
    ...checks(runsFolder, journalFaults),
    ...checks(eventsFolder, journalFaults),
    ...checks(deadFolder, sealedFaults),
    ...checks(requestsFolder, requestFaults),
  ];
}

function journalFaults(disk: Disk, name: string): readonly Fault[] {
  const journal = new Journal(disk, name, noReader);
  const message = problemOf(() => journal.refresh());
  if (message !== undefined) return [{ kind: 'run', message }];
  return journal.isWhole ? [] : [unfinished(name)];
}

function sealedFaults(disk: Disk, name: string): readonly Fault[] {
  const message = problemOf(() => parseSealed(disk.readText(name) ?? '', name));
  return message === undefined ? [] : [{ kind: 'run', message }];
}

function requestFaults(disk: Disk, name: string): readonly Fault[] {
  return disk.readText(name)?.endsWith('\n') ? sealedFaults(disk, name) : [unfinished(name)];
}

/** Reads a file of what was spent again. */
export function verifySpend({ spend }: DirectoryCache, name: string): readonly Fault[] {
  let isWhole = true;
  const message = problemOf(() => {
    isWhole = spend.check(name);
  });
  if (message !== undefined) return [{ kind: 'hash', message }];
  return isWhole ? [] : [unfinished(name)];
}

const noReader = { reset() {}, head() {}, line() {} };

/** A file that does not end as it was left. */
function unfinished(name: string): Fault {
  const message = `"${name}" ends within a line: a process died while it wrote a change, which was never acknowledged, or the file was cut. Compare it with a backup; the next change of the session replaces the unfinished line.`;
  return { kind: 'unfinished', message };
}

/** Checks of the pointers to forks in the folder of a scope, to be made one by one under the lock. */
export function pointerChecks(
  cache: DirectoryCache,
  folder: string,
): readonly (() => readonly Fault[])[] {
  const names = cache.disk.list(folder).filter((name) => name.endsWith('.json'));
  return names.map((name) => () => pointerFaults(cache, folder, `${folder}/${name}`));
}

function pointerFaults(cache: DirectoryCache, folder: string, name: string): readonly Fault[] {
  // Its fork was deleted meanwhile.
  if (cache.disk.stamp(name) === undefined) return [];
  try {
    const found = parsePointer(cache.disk, name);
    const tree = found && cache.refreshCold(`${folder}/${found.folder}`);
    if (found !== undefined && tree?.sessions.has(found.session)) return [];
    return [{ kind: 'unreachable', message: `"${name}" points to no session.` }];
  } catch (error) {
    return [{ kind: 'unreachable', message: messageOf(error) }];
  }
}

function familyFaults(cache: DirectoryCache, tree: SessionTree, step: Step): readonly Fault[] {
  const unreadable: Fault[] = [];
  const snapshots = new Map<string, SnapshotRow>();
  for (const { row } of tree.rows.values()) {
    const message = problemOf(() => row.state.artifacts);
    const ids = { sessionId: row.session.id, snapshotId: row.id };
    if (message === undefined) snapshots.set(row.id, row);
    else unreadable.push({ kind: 'hash', ...ids, message });
  }
  const sessions = new Map<string, SessionRow>();
  const runs = new Map<string, RunRow>();
  for (const session of tree.sessions.values()) {
    const message = problemOf(() => cache.runFile(session).refresh());
    if (message !== undefined) unreadable.push({ kind: 'run', sessionId: session.id, message });
    sessions.set(session.id, session);
    if (session.run !== undefined) runs.set(session.run.id, session.run);
  }
  const view = { ...cache.tables, snapshots, sessions, runs };
  const faults = createFaults();
  for (const snapshots of verifyInSteps(view, faults)) step(snapshots);
  // What cannot be read is there, and has been told of.
  const isThere = ({ snapshotId = '', kind }: Fault): boolean => {
    const row = tree.rows.get(snapshotId)?.row;
    return tree.rows.has((kind === 'parent' ? row?.parent?.id : row?.id) ?? '');
  };
  const isNews = (fault: Fault): boolean =>
    (fault.kind !== 'parent' && fault.kind !== 'head') || !isThere(fault);
  return [
    ...unreadable,
    ...faults.found.filter((fault) => unreadable.length === 0 || isNews(fault)),
  ];
}

/** Reads the long texts of artifacts again, those that nothing needs any more included. */
function chunkFaults({ artifacts: { chunks } }: SessionTree): readonly Fault[] {
  let isWhole = true;
  const message = problemOf(() => {
    isWhole = chunks.check();
  });
  if (message !== undefined) return [{ kind: 'hash', message }];
  return isWhole ? [] : [unfinished(chunks.name)];
}

/** Why something cannot be read. */
function problemOf(read: () => unknown): string | undefined {
  try {
    read();
    return undefined;
  } catch (error) {
    return messageOf(error);
  }
}

function unreachable(tree: SessionTree): readonly Fault[] {
  return unneeded(tree).map((name) => ({
    kind: 'unreachable',
    message: `No snapshot has the artifact "${name}".`,
  }));
}

function messageOf(error: unknown): string {
  if (isWaymarkError(error)) return error.message;
  throw error;
}
