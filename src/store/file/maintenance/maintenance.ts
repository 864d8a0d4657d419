import { throwIfAborted } from '../../../core/async/signal.ts';
import { type ExportRow, toSessionExport } from '../../../session/export-session.ts';
import type { MaintenanceSupport } from '../../contract/store.ts';
import { maintenanceSupport as memoryMaintenance } from '../../memory/maintenance.ts';
import { toMetadata, toSessionInfo } from '../../memory/reading.ts';
import { allRows } from '../../memory/rows.ts';
import { findSession, type SessionRow } from '../../memory/tables.ts';
import { createFaults, createSteps } from '../../rules/maintenance-steps.ts';
import type { DirectoryCache } from '../directory/cache.ts';
import { ownerFolder } from '../directory/layout.ts';
import type { DirectoryTransaction } from '../directory/transaction.ts';
import { allFolders, foldersOfOwner, loadFolders, readAhead } from '../sessions/load-sessions.ts';
import { saveSession } from '../sessions/save.ts';
import { prune } from './prune.ts';
import { hasLost, rewriteFamilies } from './rewrite.ts';
import { verifyFolder, verifyPointers, verifyRuns, verifySpend } from './verify.ts';

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
      // One step: its folder goes as a whole.
      throwIfAborted(options?.signal);
      const erased = await transaction.write(
        () => {
          loadFolders(cache, foldersOfOwner(cache, owner));
          cache.refreshAllEvents();
          return memory.eraseOwner(owner);
        },
        () => {
          const trees = [...cache.trees.values()];
          rewriteFamilies(
            cache,
            trees.filter((each) => hasLost(tables, each)),
          );
          cache.sweep();
          // With what could not be read.
          cache.disk.remove(ownerFolder(owner));
          cache.spend.save();
        },
      );
      options?.onProgress?.(1, {});
      return erased;
    },
    async verify(options) {
      const step = createSteps(options);
      const faults = createFaults(options);
      for (const scope of allFolders(cache)) {
        for (const folder of cache.foldersIn(scope)) {
          faults.add(await transaction.read(() => verifyFolder(cache, folder, step)));
        }
        faults.add(await transaction.read(() => verifyPointers(cache, scope)));
      }
      faults.add(await transaction.read(() => verifyRuns(cache)));
      for (const name of cache.spend.names()) {
        faults.add(await transaction.read(() => verifySpend(cache, name)));
        step();
      }
      return faults.found;
    },
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
            if (!cache.homes.has(session)) saveSession(cache, session);
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
