import type { Scope, TimelineSupport } from '../../contract/store.ts';
import { findSession } from '../../memory/tables.ts';
import { timelineSupport as memoryTimeline } from '../../memory/timeline.ts';
import type { DirectoryCache } from '../directory/cache.ts';
import { scopeFolder } from '../directory/layout.ts';
import type { DirectoryTransaction } from '../directory/transaction.ts';
import { hasLost, rewriteFamilies } from '../maintenance/rewrite.ts';
import { checkStored } from './check-stored.ts';
import { allFolders, foldersOfOwner, loadFolders, readAhead } from './load-sessions.ts';
import { saveSession } from './save.ts';
import type { SessionTree } from './session-tree.ts';

/** Sessions and their trees. */
export function timelineSupport(
  cache: DirectoryCache,
  transaction: DirectoryTransaction,
): TimelineSupport {
  const { tables } = cache;
  const memory = memoryTimeline(tables);

  /** Does something to a snapshot, and writes what that has changed about its session. */
  const toSnapshot = <Result>(
    scope: Scope,
    snapshotId: string,
    work: () => Promise<Result>,
  ): Promise<Result> =>
    transaction.write(
      () => {
        cache.refreshSnapshot(scope, snapshotId);
        return work();
      },
      () => {
        const session = tables.snapshots.get(snapshotId)?.session;
        if (session !== undefined) saveSession(cache, session, { snapshotId });
      },
    );

  return {
    getSession: (scope, sessionId, options) =>
      transaction.read(() => {
        cache.refreshSession(scope, sessionId);
        if (options?.state === true) checkStored(cache, scope, { sessionId });
        return memory.getSession(scope, sessionId, options);
      }),
    async listSessions(scope, options) {
      const folder = scopeFolder(scope);
      await readAhead(cache, transaction, [folder]);
      return transaction.read(() => {
        loadFolders(cache, [folder]);
        return memory.listSessions(scope, options);
      });
    },
    async listOwners(options) {
      await readAhead(cache, transaction, allFolders(cache));
      return transaction.read(() => {
        loadFolders(cache, allFolders(cache));
        return memory.listOwners(options);
      });
    },
    updateSession: (scope, sessionId, change) =>
      transaction.write(
        () => {
          cache.refreshSession(scope, sessionId);
          return memory.updateSession(scope, sessionId, change);
        },
        () => {
          const session = findSession(tables, scope, sessionId);
          if (session !== undefined) saveSession(cache, session);
        },
      ),
    async deleteSession(scope, sessionId) {
      // Its sub-agents' sessions are other agents', but the same owner's.
      await readAhead(cache, transaction, foldersOfOwner(cache, scope.owner));
      let own: SessionTree | undefined;
      return transaction.write(
        () => {
          own = cache.refreshSession(scope, sessionId)?.tree;
          loadFolders(cache, foldersOfOwner(cache, scope.owner));
          cache.refreshAllEvents();
          return memory.deleteSession(scope, sessionId);
        },
        () => {
          const lost = [...cache.trees.values()].filter((tree) => hasLost(tables, tree));
          // The session itself comes last: as long as it is there, deleting it can be tried again.
          rewriteFamilies(
            cache,
            lost.filter((tree) => tree !== own).concat(lost.filter((tree) => tree === own)),
          );
          cache.sweep();
        },
      );
    },
    listSnapshots: (scope, sessionId, options) =>
      transaction.read(() => {
        cache.refreshSession(scope, sessionId);
        return memory.listSnapshots(scope, sessionId, options);
      }),
    restore: (scope, snapshotId, options) =>
      toSnapshot(scope, snapshotId, () => memory.restore(scope, snapshotId, options)),
    fork: (scope, snapshotId, target) =>
      transaction.write(
        () => {
          cache.refreshSnapshot(scope, snapshotId);
          cache.refreshSession(scope, target.sessionId);
          return memory.fork(scope, snapshotId, target);
        },
        () => {
          const session = findSession(tables, scope, target.sessionId);
          if (session !== undefined) saveSession(cache, session);
        },
      ),
    label: (scope, snapshotId, label, options) =>
      toSnapshot(scope, snapshotId, () => memory.label(scope, snapshotId, label, options)),
  };
}
