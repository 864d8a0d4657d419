import { isSnapshotId } from '../../../protocol/ids.ts';
import type { RunRef } from '../../contract/store.ts';
import { checkHolder } from '../../rules/decide-claim.ts';
import { notHeld } from '../../rules/errors.ts';
import { type HolderFact, isHolder } from '../../rules/holder.ts';
import type { HomeRow } from '../content/places.ts';
import { first, type Plan, readUnderLock } from '../database/query.ts';
import type { Location } from '../history/location.ts';
import type { FoundBase } from '../history/plan-state.ts';
import { uuidBytes, uuidText } from '../values/bytes.ts';
import { fromMode } from '../values/codes.ts';
import { type EndingRun, endingColumns } from '../values/journal.ts';

/** An open run with its session, and what a write under it has to know. */
export interface OpenRun extends EndingRun, HomeRow, FoundBase {
  readonly now: number;
  readonly mode: number;
  readonly turn: number;
  /** The snapshot that the run was claimed from. */
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

/** The columns of a run that has made progress. */
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

/** The columns of a session's open run `r`. */
export const holderColumns = `r.session AS run_session, r.id AS run_id, r.mode AS run_mode, r.heartbeat AS run_heartbeat, r.ttl AS run_ttl`;

/** A session's open run, if it has one. */
export interface HolderRow {
  readonly now: number;
  /** The session's own number when it has an open run. */
  readonly run_session: number | null;
  readonly run_id: Uint8Array | null;
  readonly run_mode: number | null;
  readonly run_heartbeat: number | null;
  readonly run_ttl: number | null;
}

/** The open run of a session; its key is the session's row id. */
export function holderFact(row: HolderRow): HolderFact<number> | null {
  if (row.run_session === null || row.run_id === null) return null;
  return {
    key: row.run_session,
    runId: uuidText(row.run_id),
    mode: fromMode(row.run_mode ?? 0),
    heartbeatAt: row.run_heartbeat ?? 0,
    ttl: row.run_ttl ?? 0,
  };
}

/** Whether a run holds the session. */
export function isHeld(row: HolderRow): boolean {
  const run = holderFact(row);
  return run !== null && isHolder(run, row.now);
}

/** Refuses a change to a session that a run holds. */
export function checkFree(row: HolderRow, sessionId: string): void {
  checkHolder(holderFact(row), sessionId, row.now);
}
