import { isSnapshotId } from '../../../protocol/ids.ts';
import type { SnapshotStatus } from '../../../protocol/snapshot.ts';
import type { Scope } from '../../contract/store.ts';
import { decideAbort } from '../../rules/holder.ts';
import { dropCheckpoint, type Pointers } from '../content/gc-queue.ts';
import { first, one, type Plan, readUnderLock, run, statement } from '../database/query.ts';
import type { StateContext } from '../history/state-rows.ts';
import { type SnapshotRow, statusOf } from '../snapshots/snapshot-row.ts';
import { uuidBytes } from '../values/bytes.ts';
import { code, fromMode } from '../values/codes.ts';
import { type EndingRun, endingColumns } from '../values/journal.ts';
import { scopeKey } from '../values/scope.ts';
import {
  endRun,
  expireRun,
  type ReachedRow,
  reachedColumns,
  reachedTables,
  takenHash,
} from './end-run.ts';
import type { OpenRun } from './open-run.ts';

interface AbortRow
  extends EndingRun,
    ReachedRow,
    Pick<OpenRun, 'now' | 'mode' | 'start' | 'base' | 'own_snapshot' | 'checkpoint'> {
  readonly attempt: number;
  readonly heartbeat: number;
  readonly ttl: number;
}

const selectRun = readUnderLock<AbortRow>(
  'abort_run',
  (d) => `
    SELECT ${d.now} AS now, r.id, r.session, r.attempt, r.mode, r.start, r.base, r.own_snapshot, r.checkpoint,
      r.heartbeat, r.ttl, ${reachedColumns}, ${endingColumns}
    FROM ${reachedTables}
    WHERE r.id = $1 AND z.owner = $2 AND z.agent = $3 ${d.lock('z, r')}`,
);
const selectStatus = statement<
  Pick<SnapshotRow, 'status' | 'updated_at' | 'ttl' | 'run_heartbeat' | 'run_ttl'> & { now: number }
>(
  'abort_status',
  (d) => `
    SELECT ${d.now} AS now, s.status, s.updated_at, s.ttl, NULLIF(0, 0) AS run_heartbeat,
      NULLIF(0, 0) AS run_ttl
    FROM @snapshots s JOIN @sessions z ON z.row_id = s.session
    WHERE s.id = $1 AND z.owner = $2 AND z.agent = $3`,
);
const updateStopping = statement('abort_stop', 'UPDATE @runs SET stopping = 1 WHERE session = $1');
const updateReached = statement<Pointers>(
  'abort_reached',
  `UPDATE @snapshots SET branch = t.branch, branch_length = t.branch_length, view = t.view, length = t.length,
     custom = t.custom, artifacts = t.artifacts
   FROM (SELECT * FROM @snapshots WHERE row_id = $2) t
   WHERE @snapshots.row_id = $1
   RETURNING @snapshots.branch, @snapshots.custom, @snapshots.artifacts`,
);
const updateBranchEnd = statement(
  'abort_branch_end',
  'UPDATE @sessions SET branch_end = $2 WHERE branch_end = $1 AND row_id = $3',
);
const updateAborted = statement(
  'abort_snapshot',
  (d) => `
    UPDATE @snapshots SET status = ${code.aborted}, finish = ${code.finishAborted}, partial = $2,
      ttl = NULL, state_hash = $3, updated_at = ${d.now}
    WHERE id = $1`,
);
const updateSession = statement(
  'abort_session',
  (d) => `UPDATE @sessions SET updated_at = ${d.now} WHERE row_id = $1`,
);

/** Stops a run: see {@link AbortSupport.abortSnapshot}. */
export function* abortSnapshot(
  scope: Scope,
  snapshotId: string,
  context: StateContext,
): Plan<SnapshotStatus | undefined> {
  if (!isSnapshotId(snapshotId)) return undefined;
  const id = uuidBytes(snapshotId);
  const found = yield* first(selectRun, id, ...scopeKey(scope));
  if (found === undefined) {
    const row = yield* first(selectStatus, id, ...scopeKey(scope));
    return row && statusOf(row, row.now);
  }
  const { heartbeat: heartbeatAt, ttl, own_snapshot } = found;
  const lease = { heartbeatAt, ttl, mode: fromMode(found.mode), isListed: own_snapshot !== null };
  const decision = decideAbort(lease, found.now);
  if (decision.kind === 'ends') {
    yield* end(found, context);
    return 'aborted';
  }
  yield* run(updateStopping, found.session);
  return decision.status;
}

/** Ends a detached run. Its partial state stays for inspection. */
function* end(found: AbortRow, context: StateContext): Plan<void> {
  const { id, session, own_snapshot: own, attempt } = found;
  if (own === null) yield* expireRun(session, context);
  else {
    yield* takeReached(own, found);
    // Nothing continues from a snapshot within the turn of the run.
    if (found.base !== found.start) yield* run(updateParent, own, found.start);
    yield* endRun(found, context);
  }
  yield* run(updateAborted, id, attempt, takenHash(found, context.cipher));
  yield* run(updateSession, session);
}

function* takeReached(own: number, { checkpoint, base, session }: AbortRow): Plan<void> {
  if (checkpoint === null) return;
  const { branch, custom, artifacts } = yield* one(updateReached, own, checkpoint);
  if (checkpoint === base) return;
  yield* run(updateBranchEnd, checkpoint, own, session);
  yield* dropCheckpoint(checkpoint, { branch, custom, artifacts });
}

const updateParent = statement(
  'run_hang_on_start',
  `UPDATE @snapshots SET parent = (
     SELECT CASE WHEN g.idx IS NULL THEN g.parent ELSE g.row_id END FROM @snapshots g WHERE g.row_id = $2)
   WHERE row_id = $1`,
);
