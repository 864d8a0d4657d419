import { first, type Plan, run, statement } from '../database/query.ts';
import type { StateContext } from '../history/state-rows.ts';
import { dropCheckpoint, type Pointers, pointerColumns } from '../retention/gc-queue.ts';
import { code } from '../values/codes.ts';
import { type EndingRun, endingColumns, endRun } from './end-run.ts';
import { type ReachedRow, reachedColumns, reachedTables, takenHash } from './reached.ts';

const selectRun = statement<EndingRun & ReachedRow & { checkpoint: number | null }>(
  'leave_behind_run',
  `SELECT r.id, r.session, r.checkpoint, ${reachedColumns}, ${endingColumns}
   FROM ${reachedTables} WHERE r.session = $1`,
);
const insertLeft = statement<Pointers>(
  'leave_behind',
  `INSERT INTO @snapshots(id, session, parent, idx, turn, event, status, branch, branch_length, view, length,
     custom, artifacts, state_hash, created_at, updated_at, ttl)
   SELECT r.id, r.session, CASE WHEN g.idx IS NULL THEN g.parent ELSE g.row_id END, z.next_index, r.turn,
     ${code.turnEnd}, ${code.pending}, t.branch, COALESCE(t.branch_length, 0), t.view, COALESCE(t.length, 0),
     t.custom, t.artifacts, $2, r.created_at, r.heartbeat, r.ttl
   FROM @runs r JOIN @sessions z ON z.row_id = r.session
   LEFT JOIN @snapshots g ON g.row_id = r.start
   LEFT JOIN @snapshots t ON t.row_id = COALESCE(r.checkpoint, r.base)
   WHERE r.session = $1 AND NOT EXISTS (SELECT 1 FROM @snapshots s WHERE s.id = r.id)
   RETURNING ${pointerColumns}`,
);
const countIndex = statement(
  'leave_behind_index',
  'UPDATE @sessions SET next_index = next_index + 1 WHERE row_id = $1',
);

/**
 * Ends the run of a dead process. Its state stays listed as a pending snapshot without a run, which
 * reads `expired`.
 */
export function* expireRun(session: number, context: StateContext): Plan<void> {
  const held = yield* first(selectRun, session);
  if (held === undefined) return;
  const left = yield* first(insertLeft, session, takenHash(held, context.cipher));
  if (left !== undefined) yield* run(countIndex, session);
  yield* dropCheckpoint(held.checkpoint, left);
  yield* endRun(held, context);
}
