import { isStateHash } from '../../session/session-state.ts';
import type { Lookup, Scope, SnapshotStore, TimelineSupport } from '../contract/store.ts';
import { saveSnapshot } from '../memory/commit.ts';
import { readSnapshot } from '../memory/reading.ts';
import { findSession, findSnapshot } from '../memory/tables.ts';
import { timelineSupport as memoryTimeline } from '../memory/timeline.ts';
import type { Directory } from './directory.ts';
import { attempt, dataLoss } from './disk.ts';
import { scopeFolder } from './layout.ts';
import { homeOf } from './session-tree.ts';
import type { Transaction } from './transaction.ts';

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

/** Reading a snapshot, and saving one atomically. */
export function snapshotSupport(
  directory: Directory,
  transaction: Transaction,
): Pick<SnapshotStore, 'getSnapshot' | 'saveSnapshot'> {
  const { tables } = directory;
  return {
    getSnapshot: (scope, lookup, options) =>
      transaction.read(() => {
        directory.refreshLookup(scope, lookup);
        checkStored(directory, scope, lookup);
        return readSnapshot(tables, scope, lookup, options);
      }),
    saveSnapshot: (scope, snapshotId, mutate) =>
      transaction.write(
        () => {
          directory.refreshSnapshot(scope, snapshotId);
          return saveSnapshot(tables, scope, snapshotId, (current) => {
            const next = mutate(current);
            if (next !== undefined) directory.refreshSession(scope, next.sessionId);
            // An id is used once in a store, across owners.
            if (next !== undefined && current === undefined) {
              directory.refreshScopes(directory.scopeFolders());
            }
            return next;
          });
        },
        { snapshotId },
      ),
  };
}

/** Sessions and their trees. */
export function timelineSupport(directory: Directory, transaction: Transaction): TimelineSupport {
  const { tables } = directory;
  const memory = memoryTimeline(tables);

  /** Changes a snapshot. */
  const toSnapshot = <Result>(
    scope: Scope,
    snapshotId: string,
    work: () => Promise<Result>,
  ): Promise<Result> =>
    transaction.write(
      () => {
        directory.refreshSnapshot(scope, snapshotId);
        return work();
      },
      { snapshotId },
    );

  return {
    getSession: (scope, sessionId, options) =>
      transaction.read(() => {
        directory.refreshSession(scope, sessionId);
        if (options?.state === true) checkStored(directory, scope, { sessionId });
        return memory.getSession(scope, sessionId, options);
      }),
    async listSessions(scope, options) {
      const folder = scopeFolder(scope);
      await transaction.open();
      await readAhead(directory, transaction, [folder]);
      return transaction.read(() => {
        directory.refreshScopes([folder]);
        return memory.listSessions(scope, options);
      });
    },
    async listOwners(options) {
      await transaction.open();
      await readAhead(directory, transaction, directory.scopeFolders());
      return transaction.read(() => {
        directory.refreshScopes(directory.scopeFolders());
        return memory.listOwners(options);
      });
    },
    updateSession: (scope, sessionId, change) =>
      transaction.write(() => {
        directory.refreshSession(scope, sessionId);
        return memory.updateSession(scope, sessionId, change);
      }),
    async deleteSession(scope, sessionId) {
      // The sessions of its sub-agents belong to other agents, but to the same owner.
      const { owner = null } = scope;
      await transaction.open();
      await readAhead(directory, transaction, directory.scopeFolders(owner));
      return transaction.write(() => {
        directory.refreshSession(scope, sessionId);
        directory.refreshScopes(directory.scopeFolders(owner));
        directory.events.refreshAll();
        return memory.deleteSession(scope, sessionId);
      });
    },
    listSnapshots: (scope, sessionId, options) =>
      transaction.read(() => {
        directory.refreshSession(scope, sessionId);
        return memory.listSnapshots(scope, sessionId, options);
      }),
    restore: (scope, snapshotId, options) =>
      toSnapshot(scope, snapshotId, () => memory.restore(scope, snapshotId, options)),
    fork: (scope, snapshotId, target) =>
      transaction.write(() => {
        directory.refreshSnapshot(scope, snapshotId);
        directory.refreshSession(scope, target.sessionId);
        return memory.fork(scope, snapshotId, target);
      }),
    label: (scope, snapshotId, label, options) =>
      toSnapshot(scope, snapshotId, () => memory.label(scope, snapshotId, label, options)),
  };
}
