import { throwIfAborted } from '../../../core/async/signal.ts';
import { letOthersRun } from '../../../core/platform.ts';
import { type ExportRow, toSessionExport } from '../../../session/export-session.ts';
import type { Fault, MaintenanceSupport } from '../../contract/store.ts';
import { eraseInSteps } from '../../memory/erase.ts';
import { maintenanceSupport as memoryMaintenance } from '../../memory/maintenance.ts';
import { toMetadata, toSessionInfo } from '../../memory/reading.ts';
import { allRows } from '../../memory/rows.ts';
import { findSession, type SessionRow } from '../../memory/tables.ts';
import { createFaults, createSteps, withoutPause } from '../../rules/maintenance-steps.ts';
import type { DirectoryCache } from '../directory/cache.ts';
import { ownerFolder } from '../directory/layout.ts';
import type { DirectoryTransaction } from '../directory/transaction.ts';
import { allFolders, foldersOfOwner, loadFolders, readAhead } from '../sessions/load-sessions.ts';
import { saveSession } from '../sessions/save.ts';
import { prune } from './prune.ts';
import { hasLost, rewriteFamilies } from './rewrite.ts';
import { pointerChecks, runChecks, verifyFolder, verifySpend } from './verify.ts';

/** How many small files are checked under one hold of the lock. */
const batch = 16;

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
          return withoutPause(eraseInSteps(tables, owner));
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
      const inBatches = async (checks: readonly (() => readonly Fault[])[]): Promise<void> => {
        for (let at = 0; at < checks.length; at += batch) {
          const some = checks.slice(at, at + batch);
          faults.add(await transaction.read(() => some.flatMap((check) => check())));
          step(0);
          await letOthersRun();
        }
      };
      for (const scope of allFolders(cache)) {
        for (const folder of cache.foldersIn(scope)) {
          faults.add(await transaction.read(() => verifyFolder(cache, folder, step)));
          await letOthersRun();
        }
        await inBatches(pointerChecks(cache, scope));
      }
      await inBatches(runChecks(cache));
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
