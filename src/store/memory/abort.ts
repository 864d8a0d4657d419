import type { SnapshotStatus } from '../../protocol/snapshot.ts';
import type { AbortSupport, Scope } from '../contract/store.ts';
import { decideAbort } from '../rules/decide-abort.ts';
import { endRun, leaveBehind } from './claim.ts';
import { leaveInbox } from './inbox.ts';
import { statusOf } from './reading.ts';
import {
  findRun,
  findSnapshot,
  nearestListed,
  type RunRow,
  reached,
  type Tables,
} from './tables.ts';

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
  const { heartbeatAt, ttl, request, row } = run;
  const lease = { heartbeatAt, ttl, mode: request.mode, isListed: row !== undefined };
  const decision = decideAbort(lease, now);
  if (decision.kind === 'ends') return end(tables, run);
  run.stopping = true;
  tables.emitter.emit(run.id);
  return decision.status;
}

/** Ends a run. The state that it had reached stays for inspection. */
function end(tables: Tables, run: RunRow): 'aborted' {
  const { state, stateHash } = reached(run);
  if (run.row === undefined) leaveBehind(tables, run);
  else {
    leaveInbox(run);
    endRun(tables, run);
  }
  const row = tables.snapshots.get(run.id);
  if (row !== undefined) {
    // Nothing continues from a snapshot within its turn.
    row.parent = nearestListed(run.start);
    Object.assign(row, { status: 'aborted', finishReason: 'aborted', state, stateHash });
    row.partialFrom = run.attempt;
    row.updatedAt = tables.clock.now();
    row.session.updatedAt = row.updatedAt;
  }
  return 'aborted';
}
