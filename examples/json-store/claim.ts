import {
  type Claim,
  type ClaimRequest,
  type RunRequest,
  type Scope,
  storeRules,
  type Totals,
} from 'waymark/store';
import { endEvents } from './events.ts';
import { claimFacts, holderFact } from './facts.ts';
import { addRequests, forgetOldRequests } from './requests.ts';
import {
  createSession,
  findSession,
  list,
  nearestListed,
  type RunRow,
  reached,
  rowsOf,
  type SessionRow,
  sessionOf,
  snapshotAt,
  type Transaction,
} from './tables.ts';

/** Accepts a run: the rules decide, the store writes what they say. */
export function claim(tx: Transaction, scope: Scope, request: ClaimRequest): Claim {
  forgetOldRequests(tx);
  const decision = storeRules.claim(claimFacts(tx, scope, request), request);
  const session =
    findSession(tx, scope, request.sessionId) ??
    createSession(tx, scope, request.sessionId, request);
  for (const id of decision.displaced) leaveBehind(tx, tx.data.runs[id]);
  const start = decision.start?.key ?? null;
  const run: RunRow = {
    id: request.runId,
    session: session.key,
    attempt: 1,
    request: toRunRequest(request),
    worker: request.worker,
    ttl: request.ttl,
    createdAt: tx.now,
    heartbeatAt: tx.now,
    start,
    base: start,
    turnIndex: decision.turnIndex,
    stopping: false,
    crashes: [],
    steps: [],
    isListed: false,
  };
  tx.data.runs[run.id] = run;
  session.run = run.id;
  addRequests(tx, run, request.requests);
  const failedTotals = request.limited === true ? totalsOfFailed(tx, session, start) : undefined;
  const ref = { runId: run.id, attempt: 1, sessionId: session.id };
  return storeRules.toClaim(ref, { ...decision, failedTotals });
}

/** The kept part of a request. */
export function toRunRequest({ mode, init, inputs, context, version }: RunRequest): RunRequest {
  return {
    mode,
    ...(init && { init }),
    inputs,
    ...(context && { context }),
    ...(version !== undefined && { version }),
  };
}

/** Refuses a change to a session that a run holds; an expired attached run gives way. */
export function displace(tx: Transaction, session: SessionRow): void {
  checkFree(tx, session);
  if (session.run !== null) leaveBehind(tx, tx.data.runs[session.run]);
}

export function checkFree(tx: Transaction, session: SessionRow): void {
  storeRules.free(holderFact(tx, session), session.id, tx.now);
}

/** Ends the run of a caller that died. Its snapshot reads `expired`. */
export function leaveBehind(tx: Transaction, run: RunRow | undefined): void {
  if (run === undefined) return;
  const row = {
    id: run.id,
    session: run.session,
    parent: nearestListed(tx, run.start),
    index: -1,
    turnIndex: run.turnIndex,
    event: 'turnEnd',
    status: 'pending',
    createdAt: run.createdAt,
    updatedAt: run.heartbeatAt,
    heartbeatAt: run.heartbeatAt,
    ttl: run.ttl,
    ...reached(tx, run),
  } as const;
  tx.data.snapshots[row.id] = { ...row };
  list(tx, tx.data.snapshots[row.id] ?? row);
  endRun(tx, run);
}

export function endRun(tx: Transaction, run: RunRow): void {
  delete tx.data.runs[run.id];
  const session = sessionOf(tx, run);
  if (session.run === run.id) session.run = null;
  endEvents(tx, run.id);
  tx.emit(run.id);
}

/** The totals of the last failed or aborted turn that started from a snapshot. */
export function totalsOfFailed(
  tx: Transaction,
  session: SessionRow,
  start: string | null,
): Totals | undefined {
  const parent = nearestListed(tx, start);
  const after = snapshotAt(tx, parent)?.index ?? -1;
  return rowsOf(tx, session).findLast(
    (row) =>
      row.index > after &&
      (row.status === 'failed' || row.status === 'aborted') &&
      row.parent === parent &&
      row.totals !== undefined,
  )?.totals;
}
