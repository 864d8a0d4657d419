import { type AbortSupport, type Scope, type SnapshotStatus, storeRules } from 'waymark/store';
import { endRun, leaveBehind } from './claim.ts';
import type { JsonFile } from './json-file.ts';
import { statusOf } from './read.ts';
import {
  findRun,
  findSnapshot,
  nearestListed,
  type RunRow,
  reached,
  sessionOf,
  type Transaction,
} from './tables.ts';

/** Stopping runs, and hearing of changes. */
export function abortSupport(file: JsonFile): AbortSupport {
  return {
    abortSnapshot: (scope, snapshotId) => file.write((tx) => abort(tx, scope, snapshotId)),
    onChange: (snapshotId, listener) => file.subscribe(snapshotId, listener),
  };
}

function abort(tx: Transaction, scope: Scope, snapshotId: string): SnapshotStatus | undefined {
  const run = findRun(tx, scope, snapshotId);
  if (run === undefined) {
    const row = findSnapshot(tx, scope, snapshotId);
    return row && statusOf(tx, row);
  }
  const decision = storeRules.abort({ ...run, mode: run.request.mode }, tx.now);
  if (decision.kind === 'ends') return end(tx, run);
  run.stopping = true;
  tx.emit(run.id);
  return decision.status;
}

/** Ends a run. The state that it had reached stays for inspection. */
function end(tx: Transaction, run: RunRow): 'aborted' {
  const state = reached(tx, run);
  if (run.isListed) endRun(tx, run);
  else leaveBehind(tx, run);
  const row = tx.data.snapshots[run.id];
  if (row !== undefined) {
    Object.assign(row, state, { status: 'aborted', finishReason: 'aborted', updatedAt: tx.now });
    row.parent = nearestListed(tx, run.start);
    row.partialFrom = run.attempt;
    sessionOf(tx, row).updatedAt = tx.now;
  }
  return 'aborted';
}
