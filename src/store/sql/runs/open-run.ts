import { isSnapshotId } from '../../../protocol/ids.ts';
import type { RunRef } from '../../contract/store.ts';
import { notHeld } from '../../rules/errors.ts';
import { first, type Plan, readUnderLock } from '../database/query.ts';
import type { Location } from '../history/location.ts';
import { uuidBytes } from '../values/bytes.ts';
import { type EndingRun, endingColumns } from './end-run.ts';

/** An open run with its session, and what a write under it has to know. */
export interface OpenRun extends EndingRun {
  readonly now: number;
  readonly owner: string;
  readonly agent: string;
  readonly session_id: string;
  readonly mode: number;
  readonly turn: number;
  /** What the run was claimed from. */
  readonly start: number | null;
  readonly base: number | null;
  /** The parent of a snapshot that continues from the base. */
  readonly base_lineage: number | null;
  readonly own_snapshot: number | null;
  readonly checkpoint: number | null;
  readonly inputs_done: number;
  readonly crashes: number;
  readonly created_at: number;
  readonly head: number | null;
  readonly head_idx: number | null;
  readonly next_index: number;
  readonly branch_end: number | null;
  /** Where the snapshot that the written state grew from lies now; `null` when it has gone. */
  readonly from_branch: number | null;
  readonly from_branch_length: number | null;
}

const selectRun = readUnderLock<OpenRun>(
  'open_run',
  (d) => `
    SELECT ${d.now} AS now, r.id, r.session, z.owner, z.agent, z.id AS session_id, r.mode, r.turn, r.start, r.base,
      CASE WHEN g.idx IS NULL THEN g.parent ELSE g.row_id END AS base_lineage,
      r.own_snapshot, r.checkpoint, r.inputs_done, r.crashes, r.created_at,
      ${endingColumns},
      z.head, h.idx AS head_idx, z.next_index, z.branch_end,
      f.branch AS from_branch, f.branch_length AS from_branch_length
    FROM @runs r JOIN @sessions z ON z.row_id = r.session
    LEFT JOIN @snapshots g ON g.row_id = r.base
    LEFT JOIN @snapshots h ON h.row_id = z.head
    LEFT JOIN @snapshots f ON f.row_id = $3
    WHERE r.id = $1 AND r.attempt = $2 ${d.lock('z, r')}`,
);

/** What a run's columns say once it has made progress. */
export const noCrashes = 'crashes = 0, crashed = NULL';

/**
 * The run under its current attempt, held until the transaction ends. `from` is where the state lies that the written one grew
 * from.
 */
export function* openRun({ runId, attempt }: RunRef, from?: Location | undefined): Plan<OpenRun> {
  const row = isSnapshotId(runId)
    ? yield* first(selectRun, uuidBytes(runId), attempt, from?.snapshot ?? null)
    : undefined;
  if (row === undefined) throw notHeld(runId, attempt);
  return row;
}
