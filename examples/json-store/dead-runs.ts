import type { DeadRunRecord, Scope } from 'waymark/store';
import { iso } from './read.ts';
import { inScope, sessionOf, type Transaction } from './tables.ts';

/** The dead-letter queue, oldest first. Runs whose failed snapshot was deleted are not in it. */
export function listDead(tx: Transaction, scope: Scope | undefined): readonly DeadRunRecord[] {
  return Object.values(tx.data.dead)
    .filter((row) => tx.data.snapshots[row.runId]?.status === 'failed')
    .filter((row) => inScope(sessionOf(tx, row), scope))
    .sort((a, b) => a.since - b.since)
    .map((row) => {
      const { scope: ofRun, id: sessionId } = sessionOf(tx, row);
      const error = tx.data.snapshots[row.runId]?.error;
      return {
        ...row.request,
        runId: row.runId,
        scope: ofRun,
        sessionId,
        inputsDone: row.inputsDone,
        since: iso(row.since),
        ...(error && { error }),
      };
    });
}

export function dropDead(tx: Transaction, scope: Scope, runId: string): boolean {
  const row = tx.data.dead[runId];
  if (row === undefined || !inScope(sessionOf(tx, row), scope)) return false;
  return delete tx.data.dead[runId];
}
