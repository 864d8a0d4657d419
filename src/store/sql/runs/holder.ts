import { refuseHolder } from '../../rules/decide-claim.ts';
import { type HolderFact, isHolder } from '../../rules/holder.ts';
import type { Plan } from '../database/query.ts';
import type { StateContext } from '../history/state-rows.ts';
import { uuidText } from '../values/bytes.ts';
import { fromMode } from '../values/codes.ts';
import { expireRun } from './expire-run.ts';

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
  const refusal = refuseHolder(holderFact(row), sessionId, row.now);
  if (refusal !== undefined) throw refusal;
}

/** Takes a free session from an expired attached run, so that its caller, if only slow, cannot write any more. */
export function* displace({ run_session }: HolderRow, context: StateContext): Plan<void> {
  if (run_session !== null) yield* expireRun(run_session, context);
}
