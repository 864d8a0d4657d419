import type { Link } from '../../session/compact-history.ts';
import { type ExportRow, toSessionExport } from '../../session/export-session.ts';
import type { History } from '../../session/history.ts';
import type { MaintenanceSupport } from '../contract/store.ts';
import { createFaults, createSteps } from '../rules/maintenance-steps.ts';
import { importSession } from './import.ts';
import { prune } from './prune.ts';
import { activePath, toMetadata, toSessionInfo } from './reading.ts';
import { allRows, dropSessionRow } from './rows.ts';
import { findSession, type SessionRow, type Tables } from './tables.ts';
import { verify } from './verify.ts';

/** Keeping the store small, whole and portable. */
export function maintenanceSupport(tables: Tables): MaintenanceSupport {
  return {
    prune: async (policy, scope, options) => prune(tables, policy, scope, createSteps(options)),
    async eraseOwner(owner, options) {
      const step = createSteps(options);
      const sessions = [...tables.sessions.values()].filter((each) => each.scope.owner === owner);
      for (const session of sessions) {
        dropSessionRow(tables, session);
        step();
      }
      tables.spend.eraseOwner(owner);
      return sessions.length;
    },
    verify: async (options) => verify(tables, createSteps(options), createFaults(options)),
    async exportSession(scope, sessionId) {
      const session = findSession(tables, scope, sessionId);
      if (session === undefined) return undefined;
      const now = tables.clock.now();
      return toSessionExport(toSessionInfo(session, now), exportRows(session, now));
    },
    importSession: async (scope, document, options = {}) =>
      toSessionInfo(importSession(tables, scope, document, options), tables.clock.now()),
  };
}

function* exportRows(session: SessionRow, now: number): Iterable<ExportRow> {
  const known = new Map<Link, History>();
  const path = activePath(session);
  for (const row of allRows(session)) {
    if (row.status === 'pending') continue;
    const { state } = row;
    const history = state.history.wakeAmong(known);
    yield {
      snapshot: toMetadata(row, now, path),
      totals: row.totals,
      state: { ...state, history },
    };
  }
}
