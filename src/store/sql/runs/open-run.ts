import type { RunRef } from '../../contract/store.ts';
import { notHeld } from '../../rules/errors.ts';
import { isSnapshotId } from '../../rules/ids.ts';
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
  /** What a snapshot that goes on from the base hangs on. */
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
  /** The snapshot that the written one goes on from, by its id. */
  readonly parent_row_id: number | null;
  readonly parent_id: Uint8Array | null;
  readonly parent_session: number | null;
  readonly parent_status: number | null;
  readonly parent_idx: number | null;
  readonly parent_parent: number | null;
  readonly parent_parent_id: Uint8Array | null;
  readonly start_id: Uint8Array | null;
  readonly start_idx: number | null;
  readonly start_parent: number | null;
  readonly start_parent_id: Uint8Array | null;
  /** Of a detached run: its own pending snapshot. */
  readonly own_idx: number | null;
  readonly own_parent: number | null;
  readonly own_parent_id: Uint8Array | null;
  /** Whether the id to be written is another snapshot's, or another run's. */
  readonly is_taken: number;
}

const selectRun = readUnderLock<OpenRun>(
  'open_run',
  (d) => `
    SELECT ${d.now} AS now, r.id, r.session, z.owner, z.agent, z.id AS session_id, r.mode, r.turn, r.start, r.base,
      CASE WHEN g.idx IS NULL THEN g.parent ELSE g.row_id END AS base_lineage,
      r.own_snapshot, r.checkpoint, r.inputs_done, r.crashes, r.created_at,
      ${endingColumns},
      z.head, h.idx AS head_idx, z.next_index, z.branch_end,
      f.branch AS from_branch, f.branch_length AS from_branch_length,
      p.row_id AS parent_row_id, p.id AS parent_id, p.session AS parent_session, p.status AS parent_status,
      p.idx AS parent_idx, p.parent AS parent_parent, pp.id AS parent_parent_id,
      a.id AS start_id, a.idx AS start_idx, a.parent AS start_parent, ap.id AS start_parent_id,
      o.idx AS own_idx, o.parent AS own_parent, op.id AS own_parent_id,
      CASE WHEN EXISTS (SELECT 1 FROM @snapshots t WHERE t.id = $5)
        OR EXISTS (SELECT 1 FROM @runs t WHERE t.id = $5 AND t.id <> r.id) THEN 1 ELSE 0 END AS is_taken
    FROM @runs r JOIN @sessions z ON z.row_id = r.session
    LEFT JOIN @snapshots g ON g.row_id = r.base
    LEFT JOIN @snapshots h ON h.row_id = z.head
    LEFT JOIN @snapshots f ON f.row_id = $3
    LEFT JOIN @snapshots p ON p.id = $4
    LEFT JOIN @snapshots pp ON pp.row_id = p.parent
    LEFT JOIN @snapshots a ON a.row_id = r.start
    LEFT JOIN @snapshots ap ON ap.row_id = a.parent
    LEFT JOIN @snapshots o ON o.row_id = r.own_snapshot
    LEFT JOIN @snapshots op ON op.row_id = o.parent
    WHERE r.id = $1 AND r.attempt = $2 ${d.lock('z, r')}`,
);

/** What a run's columns say once it has made progress. */
export const noCrashes = 'crashes = 0, crashed = NULL';

/** What a write under a run is about. */
export interface WriteSubject {
  /** Where the state lies that the written one grew from. */
  readonly from?: Location | undefined;
  /** The snapshot that the written one goes on from. */
  readonly parentId?: string | undefined;
  /** The snapshot that is written. */
  readonly snapshotId?: string | undefined;
}

/** The run under its current attempt, held until the transaction ends; whoever comes with another has lost it. */
export function* openRun(
  { runId, attempt }: RunRef,
  { from, parentId, snapshotId }: WriteSubject = {},
): Plan<OpenRun> {
  const row = isSnapshotId(runId)
    ? yield* first(
        selectRun,
        uuidBytes(runId),
        attempt,
        from?.snapshot ?? null,
        idValue(parentId),
        idValue(snapshotId),
      )
    : undefined;
  if (row === undefined) throw notHeld(runId, attempt);
  return row;
}

function idValue(id: string | undefined): Uint8Array | null {
  return id === undefined || !isSnapshotId(id) ? null : uuidBytes(id);
}
