import type { Cipher } from '../content/cipher.ts';
import { dropCheckpoint, type Pointers, pointerColumns } from '../content/gc-queue.ts';
import { type HomeRow, homeOf, snapshotPlace } from '../content/places.ts';
import { first, type Plan, run, statement } from '../database/query.ts';
import type { StateContext } from '../history/state-rows.ts';
import { countIndex } from '../snapshots/active-path.ts';
import { openHash, stateColumns } from '../snapshots/snapshot-row.ts';
import { code } from '../values/codes.ts';
import { type EndingRun, endingColumns, isOfOpenRun, journal } from '../values/journal.ts';
import { type Held, leaveInbox } from './inbox.ts';

const deleteSteps = statement(
  'end_steps',
  `DELETE FROM @journal WHERE run = $1 AND ${isOfOpenRun}`,
);
const deleteRun = statement('end_run', 'DELETE FROM @runs WHERE session = $1');
const insertEnd = statement(
  'end_run_with_events',
  (d) => `
    INSERT INTO @journal(run, session, attempt, seq, last, body, ended_at)
    VALUES($1, $2, ${journal.end}, 0, 0, '[]', ${d.now})`,
);

/**
 * Forgets a run and what belongs to it alone. Its events are kept for a while, and, for the session's next run, the messages that it has
 * not taken if it keeps its inbox.
 */
export function* endRun(held: EndingRun & Held, { cipher }: StateContext, taken = 0): Plan<void> {
  if (held.has_steps === 1 || taken > 0) yield* leaveInbox(held, taken, cipher);
  yield* removeRun(held);
}

/** Removes a run whose inbox is left. */
export function* removeRun({ id, session, has_steps, has_events }: EndingRun): Plan<void> {
  if (has_steps === 1) yield* run(deleteSteps, id);
  yield* run(deleteRun, session);
  if (has_events === 1) yield* run(insertEnd, id, session);
}

export const endStatements = { frequent: [deleteRun], others: [deleteSteps, insertEnd] };

/** An open run `r` with its session `z` and the row `t` whose state it has reached. */
export const reachedTables = `@runs r JOIN @sessions z ON z.row_id = r.session
  LEFT JOIN @snapshots t ON t.row_id = COALESCE(r.checkpoint, r.base)`;

export const reachedColumns = `z.owner, z.agent, z.id AS session_id, t.id AS reached_id, t.state_hash AS reached_hash`;

export interface ReachedRow extends HomeRow {
  readonly id: Uint8Array;
  readonly reached_id: Uint8Array | null;
  readonly reached_hash: Uint8Array | null;
}

/** The hash of the state that a run has reached, as the run's own snapshot keeps it. */
export function takenHash(row: ReachedRow, cipher: Cipher): Uint8Array {
  const hash = openHash(row, { id: row.reached_id, state_hash: row.reached_hash }, cipher);
  return cipher.sealHash(hash, snapshotPlace('state_hash', homeOf(row), row.id));
}

const selectRun = statement<EndingRun & ReachedRow & { checkpoint: number | null }>(
  'leave_behind_run',
  `SELECT r.id, r.session, r.checkpoint, ${reachedColumns}, ${endingColumns}
   FROM ${reachedTables} WHERE r.session = $1`,
);
const insertLeft = statement<Pointers>(
  'leave_behind',
  `INSERT INTO @snapshots(id, session, parent, idx, turn, event, status, ${stateColumns}, state_hash, created_at, updated_at, ttl)
   SELECT r.id, r.session, CASE WHEN g.idx IS NULL THEN g.parent ELSE g.row_id END, z.next_index, r.turn,
     ${code.turnEnd}, ${code.pending}, t.branch, COALESCE(t.branch_length, 0), t.view, COALESCE(t.length, 0),
     t.custom, t.artifacts, $2, r.created_at, r.heartbeat, r.ttl
   FROM @runs r JOIN @sessions z ON z.row_id = r.session
   LEFT JOIN @snapshots g ON g.row_id = r.start
   LEFT JOIN @snapshots t ON t.row_id = COALESCE(r.checkpoint, r.base)
   WHERE r.session = $1 AND NOT EXISTS (SELECT 1 FROM @snapshots s WHERE s.id = r.id)
   RETURNING ${pointerColumns}`,
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
