import type { DeadRunRecord, Scope } from '../contract/store.ts';
import { type DeadRow, inScope, type RunRow, type Tables } from './tables.ts';

/** Keeps what is needed to start a run again that is given up. */
export function bury(tables: Tables, run: RunRow): void {
  tables.dead.set(run.id, {
    runId: run.id,
    session: run.session,
    request: run.request,
    inputsDone: run.checkpoint?.inputsDone ?? 0,
    since: tables.clock.now(),
  });
}

/** The dead-letter queue. What was pruned is not in it any more. */
export function listDead(tables: Tables, scope: Scope | undefined): readonly DeadRunRecord[] {
  for (const { runId } of tables.dead.values()) {
    if (!tables.snapshots.has(runId)) tables.dead.delete(runId);
  }
  return [...tables.dead.values()]
    .filter(({ session }) => inScope(session, scope))
    .filter(({ runId }) => tables.snapshots.get(runId)?.status === 'failed')
    .map((row) => toRecord(tables, row));
}

export function dropDead(tables: Tables, scope: Scope, runId: string): boolean {
  const row = tables.dead.get(runId);
  return row !== undefined && inScope(row.session, scope) && tables.dead.delete(runId);
}

function toRecord({ snapshots }: Tables, row: DeadRow): DeadRunRecord {
  const error = snapshots.get(row.runId)?.error;
  return {
    ...row.request,
    runId: row.runId,
    scope: row.session.scope,
    sessionId: row.session.id,
    inputsDone: row.inputsDone,
    since: new Date(row.since).toISOString(),
    ...(error === undefined ? {} : { error }),
  };
}
