import { isStateHash } from '../../session/session-state.ts';
import type { Lookup, Scope, SnapshotStore, TimelineSupport } from '../contract/store.ts';
import { saveSnapshot } from '../memory/commit.ts';
import { readSnapshot } from '../memory/reading.ts';
import { familyFinder } from '../memory/rows.ts';
import { findSession, findSnapshot } from '../memory/tables.ts';
import { timelineSupport as memoryTimeline } from '../memory/timeline.ts';
import type { Directory } from './directory.ts';
import { attempt, dataLoss } from './disk.ts';
import { scopeFolder } from './layout.ts';
import { homeOf } from './session-tree.ts';
import { inTransactions, type Transaction } from './transaction.ts';

/** Refuses a stored state that does not fit its hash. Each state is verified once, because states in memory never change. */
export function checkStored({ tables }: Directory, scope: Scope, lookup: Lookup): void {
  const row =
    'snapshotId' in lookup
      ? findSnapshot(tables, scope, lookup.snapshotId)
      : findSession(tables, scope, lookup.sessionId)?.head;
  if (row === undefined || isStateHash(row.state, row.stateHash)) return;
  const name = homeOf(row.session)?.journal.name ?? '';
  throw dataLoss(name, `the state of snapshot "${row.id}" does not fit its hash`);
}

/** Number of trees that are read under one hold of the lock. */
const batch = 32;

/** Reads the trees of scopes that are not in memory, a few at a time, so that others can use the lock and the process. */
export async function readAhead(
  directory: Directory,
  transaction: Transaction,
  scopes: readonly string[],
): Promise<void> {
  const unread = scopes
    .flatMap((scope) => directory.foldersIn(scope))
    .filter((folder) => !directory.trees.has(folder));
  for (let at = 0; at < unread.length; at += batch) {
    await transaction.read(() => {
      for (const folder of unread.slice(at, at + batch)) {
        attempt(() => directory.refreshTree(folder, { isLoaded: false }));
      }
    });
  }
}

/** Reads all sessions of scopes before a call. */
export async function among<Result>(
  directory: Directory,
  transaction: Transaction,
  scopes: () => readonly string[],
  call: () => Promise<Result>,
  run: Transaction['read'] = transaction.read,
): Promise<Result> {
  await transaction.open();
  await readAhead(directory, transaction, scopes());
  return run(() => {
    for (const folder of scopes()) directory.refreshScope(folder);
    return call();
  });
}

/** Reading a snapshot, and saving one atomically. */
export function snapshotSupport(
  directory: Directory,
  transaction: Transaction,
): Pick<SnapshotStore, 'getSnapshot' | 'saveSnapshot'> {
  const { tables } = directory;
  return {
    getSnapshot: (scope, lookup, options) =>
      transaction.read(() => {
        checkStored(directory, scope, lookup);
        return readSnapshot(tables, scope, lookup, options);
      }),
    saveSnapshot: (scope, snapshotId, mutate) =>
      transaction.write(() =>
        saveSnapshot(tables, scope, snapshotId, (current) => {
          const next = mutate(current);
          // An id is used once in a store, across owners.
          if (next !== undefined && current === undefined) {
            for (const folder of directory.scopeFolders()) directory.refreshScope(folder);
          }
          return next;
        }),
      ),
  };
}

/** Sessions and their trees. */
export function timelineSupport(directory: Directory, transaction: Transaction): TimelineSupport {
  const { tables } = directory;
  const memory = memoryTimeline(tables);
  return {
    ...inTransactions(memory, transaction, ['listSnapshots']),
    getSession: (scope, sessionId, options) =>
      transaction.read(() => {
        if (options?.state === true) checkStored(directory, scope, { sessionId });
        return memory.getSession(scope, sessionId, options);
      }),
    listSessions: (scope, options) =>
      among(
        directory,
        transaction,
        () => [scopeFolder(scope)],
        () => memory.listSessions(scope, options),
      ),
    listOwners: (options) =>
      among(
        directory,
        transaction,
        () => directory.scopeFolders(),
        () => memory.listOwners(options),
      ),
    // The sessions of its sub-agents belong to other agents, but to the same owner.
    deleteSession: (scope, sessionId) =>
      among(
        directory,
        transaction,
        () => directory.scopeFolders(scope.owner ?? null),
        () => {
          const session = findSession(tables, scope, sessionId);
          const family = session === undefined ? [] : familyFinder(tables)(session);
          for (const each of family) directory.session(each.scope, each.id);
          return memory.deleteSession(scope, sessionId);
        },
        transaction.write,
      ),
  };
}
