import { isSnapshotId } from '../../session/ids.ts';
import type { RunRef } from '../../session/store.ts';
import { uuidBytes } from './bytes.ts';
import { notHeld } from './failures.ts';
import { first, type Plan, statement } from './query.ts';

/** An open run with its session. */
export interface OpenRun {
  readonly now: number;
  readonly no: number;
  readonly id: Uint8Array;
  readonly session: number;
  readonly session_id: string;
  readonly mode: number;
  readonly turn: number;
  readonly base: number | null;
  /** What a snapshot that goes on from the base hangs on. */
  readonly base_lineage: number | null;
  readonly own: number | null;
  readonly checkpoint: number | null;
  readonly inputs_done: number;
  readonly created_at: number;
  readonly head: number | null;
  readonly head_idx: number | null;
  readonly next_index: number;
}

const selectRun = statement<OpenRun>(
  'open_run',
  (d) => `
    SELECT ${d.now} AS now, r.no, r.id, r.session, z.id AS session_id, r.mode, r.turn, r.base,
      CASE WHEN g.idx IS NULL THEN g.parent ELSE g.no END AS base_lineage,
      r.own, r.checkpoint, r.inputs_done, r.created_at, z.head, h.idx AS head_idx, z.next_index
    FROM @runs r JOIN @sessions z ON z.no = r.session
    LEFT JOIN @snapshots g ON g.no = r.base LEFT JOIN @snapshots h ON h.no = z.head
    WHERE r.id = $1 AND r.attempt = $2 AND r.ended_at IS NULL ${d.lock('r, z')}`,
);

/** The run under its current attempt, held until the transaction ends; whoever comes with another has lost it. */
export function* openRun({ runId, attempt }: RunRef): Plan<OpenRun> {
  const row = isSnapshotId(runId) ? yield* first(selectRun, uuidBytes(runId), attempt) : undefined;
  if (row === undefined) throw notHeld(runId, attempt);
  return row;
}
