import { busy } from '../../rules/errors.ts';
import type { Plan } from '../database/query.ts';
import type { StateContext } from '../history/state-rows.ts';
import { isStale } from '../snapshots/snapshot-row.ts';
import { uuidText } from '../values/bytes.ts';
import { code } from '../values/codes.ts';
import { expireRun } from './expire-run.ts';

/** The columns of a session's open run `r`. */
export const holderColumns = `r.session AS run_session, r.id AS run_id, r.mode AS run_mode, r.worker AS run_worker,
  r.heartbeat AS run_heartbeat, r.ttl AS run_ttl`;

/** A session's open run, if it has one. */
export interface HolderRow {
  readonly now: number;
  /** The session's own number when it has an open run. */
  readonly run_session: number | null;
  readonly run_id: Uint8Array | null;
  readonly run_mode: number | null;
  readonly run_worker: string | null;
  readonly run_heartbeat: number | null;
  readonly run_ttl: number | null;
}

/** Whether a run holds the session. An expired attached one holds nothing: nobody else will go on with it. */
export function isHeld(row: HolderRow): boolean {
  if (row.run_session === null) return false;
  const isGone = isStale(row.run_heartbeat ?? 0, row.run_ttl ?? 0, row.now);
  return !(row.run_mode === code.attached && isGone);
}

/** Refuses what must not happen to a session that is being worked on. */
export function checkFree(row: HolderRow, sessionId: string): void {
  if (!isHeld(row) || row.run_id === null) return;
  throw busy(sessionId, row.run_worker ?? '', uuidText(row.run_id));
}

/** Takes a free session from an expired attached run, so that its caller, if only slow, cannot write any more. */
export function* displace({ run_session }: HolderRow, context: StateContext): Plan<void> {
  if (run_session !== null) yield* expireRun(run_session, context);
}
