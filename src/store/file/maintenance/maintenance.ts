import { type ExportRow, toSessionExport } from '../../../session/export-session.ts';
import type { Fault, MaintenanceSupport } from '../../contract/store.ts';
import { maintenanceSupport as memoryMaintenance } from '../../memory/maintenance.ts';
import { toMetadata, toSessionInfo } from '../../memory/reading.ts';
import { allRows } from '../../memory/rows.ts';
import { findSession, type SessionRow } from '../../memory/tables.ts';
import type { DirectoryCache } from '../directory/cache.ts';
import { ownerFolder } from '../directory/layout.ts';
import type { DirectoryTransaction } from '../directory/transaction.ts';
import { allFolders, foldersOfOwner, loadFolders, readAhead } from '../sessions/load-sessions.ts';
import { saveSession } from '../sessions/save.ts';
import { prune } from './prune.ts';
import { hasLost, rewriteFamilies } from './rewrite.ts';
import { verifyFolder, verifyPointers, verifyRuns } from './verify.ts';

/** Keeping the store small, whole and portable. */
export function maintenanceSupport(mirror: DirectoryCache, gate: DirectoryTransaction): MaintenanceSupport {
  const { tables } = mirror;
  const memory = memoryMaintenance(tables);
  return {
    prune: (policy, scope) => prune(mirror, gate, policy, scope),
    eraseOwner: (owner) =>
      gate.write(
        () => {
          loadFolders(mirror, foldersOfOwner(mirror, owner));
          mirror.reachAllEvents();
          return memory.eraseOwner(owner);
        },
        () => {
          const families = [...mirror.families.values()];
          rewriteFamilies(
            mirror,
            families.filter((each) => hasLost(tables, each)),
          );
          mirror.sweep();
          // With what could not be read.
          mirror.disk.remove(ownerFolder(owner));
        },
      ),
    async verify({ onProgress } = {}) {
      const faults: Fault[] = [];
      let done = 0;
      for (const scope of allFolders(mirror)) {
        for (const folder of mirror.foldersIn(scope)) {
          const count = (): void => onProgress?.(++done);
          faults.push(...(await gate.read(() => verifyFolder(mirror, folder, count))));
        }
        faults.push(...(await gate.read(() => verifyPointers(mirror, scope))));
      }
      faults.push(...(await gate.read(() => verifyRuns(mirror))));
      return faults;
    },
    exportSession: (scope, sessionId) =>
      gate.read(() => {
        mirror.reachSession(scope, sessionId);
        const session = findSession(tables, scope, sessionId);
        const now = tables.clock.now();
        return session && toSessionExport(toSessionInfo(session, now), exportRows(session, now));
      }),
    async importSession(scope, document, options) {
      // All of them, so that no id of a snapshot is there twice.
      await readAhead(mirror, gate, allFolders(mirror));
      return gate.write(
        () => {
          loadFolders(mirror, allFolders(mirror));
          return memory.importSession(scope, document, options);
        },
        () => {
          for (const session of tables.sessions.values()) {
            if (!mirror.homes.has(session)) saveSession(mirror, session);
          }
        },
      );
    },
  };
}

/** What is exported of a session, read while nobody changes it. */
function exportRows(session: SessionRow, now: number): readonly ExportRow[] {
  const rows = allRows(session).filter((row) => row.status !== 'pending');
  return rows.map((row) => {
    const { history, custom, artifacts } = row.state;
    const state = { history, custom, artifacts };
    return { snapshot: toMetadata(row, now), totals: row.totals, state };
  });
}
