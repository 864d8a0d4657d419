import type { SnapshotStore } from '../../contract/store.ts';
import { readSnapshot } from '../../memory/reading.ts';
import { saveSnapshot } from '../../memory/save-snapshot.ts';
import { findSession } from '../../memory/tables.ts';
import type { DirectoryCache } from '../directory/cache.ts';
import type { DirectoryTransaction } from '../directory/transaction.ts';
import { checkStored } from './check-stored.ts';
import { allFolders, loadFolders } from './load-sessions.ts';
import { saveSession } from './save.ts';

/** Reading a snapshot, and saving one atomically. */
export function snapshotSupport(
  cache: DirectoryCache,
  transaction: DirectoryTransaction,
): Pick<SnapshotStore, 'getSnapshot' | 'saveSnapshot'> {
  const { tables } = cache;
  return {
    getSnapshot: (scope, lookup, options) =>
      transaction.read(() => {
        cache.refreshLookup(scope, lookup);
        checkStored(cache, scope, lookup);
        return readSnapshot(tables, scope, lookup, options);
      }),
    saveSnapshot(scope, snapshotId, mutate) {
      let sessionId: string | undefined;
      return transaction.write(
        () => {
          cache.refreshSnapshot(scope, snapshotId);
          return saveSnapshot(tables, scope, snapshotId, (current) => {
            const next = mutate(current);
            sessionId = next?.sessionId;
            if (sessionId !== undefined) cache.refreshSession(scope, sessionId);
            // An id is used once in a store, across owners.
            if (next !== undefined && current === undefined) loadFolders(cache, allFolders(cache));
            return next;
          });
        },
        () => {
          const session =
            sessionId === undefined ? undefined : findSession(tables, scope, sessionId);
          if (session !== undefined) saveSession(cache, session, { snapshotId });
        },
      );
    },
  };
}
