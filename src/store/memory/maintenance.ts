import type { Link } from '../../session/compact-history.ts';
import { type ExportRow, toSessionExport } from '../../session/export-session.ts';
import type { History } from '../../session/history.ts';
import type { MaintenanceOptions, MaintenanceSupport } from '../contract/store.ts';
import { createFaults, createSteps } from '../rules/maintenance-steps.ts';
import { eraseInSteps } from './erase.ts';
import { importSession } from './import.ts';
import { pruneInSteps } from './prune.ts';
import { activePath, toMetadata, toSessionInfo } from './reading.ts';
import { allRows } from './rows.ts';
import { findSession, type SessionRow, type Tables } from './tables.ts';
import { verifyTables } from './verify.ts';

/** Keeping the store small, whole and portable. */
export function maintenanceSupport(tables: Tables): MaintenanceSupport {
  return {
    prune: (policy, scope, options) => betweenTurns(pruneInSteps(tables, policy, scope), options),
    eraseOwner: (owner, options) => betweenTurns(eraseInSteps(tables, owner), options),
    async verify(options) {
      const faults = createFaults(options);
      await betweenTurns(
        verifyTables(tables, faults, (hash) => tables.files.problemOf(hash)),
        options,
      );
      return faults.found;
    },
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

/** Lets everything else run after each step. */
async function betweenTurns<Result>(
  steps: Generator<number, Result>,
  options: MaintenanceOptions | undefined,
): Promise<Result> {
  const step = createSteps(options);
  for (;;) {
    const { done, value } = steps.next();
    if (done === true) return value;
    await step(value);
  }
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
