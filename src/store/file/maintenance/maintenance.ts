import { type ExportRow, toSessionExport } from '../../../session/export-session.ts';
import type { MaintenanceSupport } from '../../contract/store.ts';
import { maintenanceSupport as memoryMaintenance } from '../../memory/maintenance.ts';
import { toMetadata, toSessionInfo } from '../../memory/reading.ts';
import { allRows } from '../../memory/rows.ts';
import { findSession, type SessionRow } from '../../memory/tables.ts';
import { createSteps } from '../../rules/maintenance-steps.ts';
import type { DirectoryCache } from '../directory/cache.ts';
import type { DirectoryTransaction } from '../directory/transaction.ts';
import { allFolders, loadFolders, readAhead } from '../sessions/load-sessions.ts';
import { saveSession } from '../sessions/save.ts';
import { homes } from '../sessions/session-tree.ts';
import { eraseOwner } from './erase.ts';
import { prune } from './prune.ts';
import { verify } from './verify.ts';

const wait = <Result>(disk: Promise<Result>): Promise<Result> => disk;

/** Keeping the store small, whole and portable. */
export function maintenanceSupport(
  cache: DirectoryCache,
  transaction: DirectoryTransaction,
): MaintenanceSupport {
  const { tables } = cache;
  const memory = memoryMaintenance(tables);
  return {
    prune: (policy, scope, options) => prune(cache, transaction, { policy, scope, options }),
    async eraseOwner(owner, options) {
      const runIds = await transaction.read(() => {
        cache.refreshRuns();
        const runs = [...tables.runs.values()];
        return runs.filter(({ session }) => session.scope.owner === owner).map(({ id }) => id);
      });
      const context = { cache, transaction, step: createSteps(options), wait };
      const erased = await eraseOwner(context, owner);
      if (runIds.some((id) => cache.uploads.has(id))) {
        await transaction.write(
          () => {},
          () => {
            for (const id of runIds) cache.uploads.end(id);
          },
        );
      }
      return erased;
    },
    verify: (options) => verify(cache, transaction, options),
    exportSession: (scope, sessionId) =>
      transaction.read(() => {
        cache.refreshSession(scope, sessionId);
        const session = findSession(tables, scope, sessionId);
        const now = tables.clock.now();
        return session && toSessionExport(toSessionInfo(session, now), exportRows(session, now));
      }),
    async importSession(scope, document, options) {
      // All of them, so that no id of a snapshot is there twice.
      await readAhead(cache, transaction, allFolders(cache));
      return transaction.write(
        () => {
          loadFolders(cache, allFolders(cache));
          return memory.importSession(scope, document, options);
        },
        () => {
          for (const session of tables.sessions.values()) {
            if (homes.get(session) === undefined) saveSession(cache, session);
          }
        },
      );
    },
  };
}

/** The exported part of a session, read under the lock. */
function exportRows(session: SessionRow, now: number): readonly ExportRow[] {
  const rows = allRows(session).filter((row) => row.status !== 'pending');
  return rows.map((row) => {
    const { history, custom, artifacts } = row.state;
    const state = { history, custom, artifacts };
    return { snapshot: toMetadata(row, now), totals: row.totals, state };
  });
}
