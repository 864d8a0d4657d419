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
  mirror: DirectoryCache,
  gate: DirectoryTransaction,
): Pick<SnapshotStore, 'getSnapshot' | 'saveSnapshot'> {
  const { tables } = mirror;
  return {
    getSnapshot: (scope, lookup) =>
      gate.read(() => {
        mirror.reachLookup(scope, lookup);
        checkStored(mirror, scope, lookup);
        return readSnapshot(tables, scope, lookup);
      }),
    saveSnapshot(scope, snapshotId, mutate) {
      let sessionId: string | undefined;
      return gate.write(
        () => {
          mirror.reachSnapshot(scope, snapshotId);
          return saveSnapshot(tables, scope, snapshotId, (current) => {
            const next = mutate(current);
            sessionId = next?.sessionId;
            if (sessionId !== undefined) mirror.reachSession(scope, sessionId);
            // An id is used once in a store, whoever asks.
            if (next !== undefined && current === undefined)
              loadFolders(mirror, allFolders(mirror));
            return next;
          });
        },
        () => {
          const session =
            sessionId === undefined ? undefined : findSession(tables, scope, sessionId);
          if (session !== undefined) saveSession(mirror, session, { snapshotId });
        },
      );
    },
  };
}
