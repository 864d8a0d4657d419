import type { SnapshotStatus } from '../../protocol/snapshot.ts';
import type { AbortSupport, Scope } from '../contract/store.ts';
import { endRun, hangOnStart, leaveBehind } from './claim.ts';
import { statusOf } from './reading.ts';
import { findRun, findSnapshot, isExpired, type RunRow, reached, type Tables } from './tables.ts';

/** Stopping runs. */
export function abortSupport(tables: Tables): AbortSupport {
  return {
    abortSnapshot: async (scope, snapshotId) => abort(tables, scope, snapshotId),
    onChange: (snapshotId, listener) => tables.emitter.subscribe(snapshotId, listener),
  };
}

function abort(tables: Tables, scope: Scope, snapshotId: string): SnapshotStatus | undefined {
  const now = tables.clock.now();
  const run = findRun(tables, scope, snapshotId);
  if (run === undefined) {
    const row = findSnapshot(tables, scope, snapshotId);
    return row && statusOf(row, now);
  }
  const expired = isExpired(run, now);
  if (run.row !== undefined || (run.request.mode === 'accepted' && expired)) {
    return end(tables, run);
  }
  run.stopping = true;
  tables.emitter.emit(run.id);
  return expired ? 'expired' : 'pending';
}

/** Ends a run that nobody waits for. What it had reached stays for inspection. */
function end(tables: Tables, run: RunRow): 'aborted' {
  const { state, stateHash } = reached(run);
  if (run.row === undefined) leaveBehind(tables, run);
  else endRun(tables, run);
  const row = tables.snapshots.get(run.id);
  hangOnStart(run);
  if (row !== undefined) {
    Object.assign(row, { status: 'aborted', finishReason: 'aborted', state, stateHash });
    row.partialFrom = run.attempt;
    row.updatedAt = tables.clock.now();
    row.session.updatedAt = row.updatedAt;
  }
  return 'aborted';
}
