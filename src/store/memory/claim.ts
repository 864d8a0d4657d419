import { defined } from '../../core/json/json.ts';
import type { Totals } from '../../protocol/usage.ts';
import type {
  Claim,
  ClaimRequest,
  RunCrash,
  RunRequest,
  RunSupport,
  Scope,
  SteeringMessage,
  TakenRun,
} from '../contract/store.ts';
import { checkHolder, decideClaim, toClaim } from '../rules/decide-claim.ts';
import { isExpired } from '../rules/holder.ts';
import { pickRuns } from '../rules/suspects.ts';
import { endEvents } from './events.ts';
import { claimFacts, holderFact, startFact } from './facts.ts';
import { iso, toRunRecord } from './reading.ts';
import { addRequests, forgetOldRequests } from './requests.ts';
import { addSnapshot, createSessionRow } from './rows.ts';
import {
  findSession,
  inboxOf,
  leaveInbox,
  limitHeartbeat,
  list,
  nearestListed,
  type RunRow,
  type SessionRow,
  type SnapshotRow,
  stateOf,
  type Tables,
} from './tables.ts';

/** Accepts a run: see {@link RunSupport.claim}. */
export function claim(tables: Tables, scope: Scope, request: ClaimRequest): Claim {
  if (request.requests !== undefined) forgetOldRequests(tables);
  const decision = decideClaim(claimFacts(tables, scope, request), request);
  const session =
    findSession(tables, scope, request.sessionId) ??
    createSessionRow(tables, scope, request.sessionId, request);
  for (const run of decision.displaced) expireRun(tables, run);
  const start = decision.start?.key;
  const { runId: id, worker, ttl } = request;
  const own = { id, session, worker, ttl, start, createdAt: tables.clock.now() };
  const run = newRun({ ...own, request: toRunRequest(request), turnIndex: decision.turnIndex });
  tables.runs.set(id, run);
  session.run = run;
  addRequests(tables, run, request.requests);
  const isDetached = request.mode === 'detached';
  if (isDetached) listPending(tables, run);
  const ref = { runId: id, attempt: run.attempt, sessionId: session.id };
  return toClaim(ref, {
    ...decision,
    failedTotals: request.limited === true ? totalsOfFailed(session, start) : undefined,
    steered: inboxOf(run).length > 0,
    isDetached,
  });
}

/** Lists the pending snapshot of a detached run. */
export function listPending(tables: Tables, run: RunRow): SnapshotRow {
  const row = addPending(tables, run, { parent: nearestListed(run.base), event: 'detach' });
  run.row = row;
  return row;
}

function addPending(
  tables: Tables,
  run: RunRow,
  fields: Pick<SnapshotRow, 'parent' | 'event'> & Partial<SnapshotRow>,
): SnapshotRow {
  const { id, session, turnIndex, createdAt } = run;
  const { state, stateHash } = stateOf(run);
  const own = { id, session, turnIndex, createdAt, state, stateHash, ...fields };
  const row = addSnapshot(tables, { ...own, status: 'pending' });
  list(row);
  return row;
}

/** Refuses a change to a session that a run holds. */
export function checkFree(session: SessionRow, now: number): void {
  checkHolder(holderFact(session, now), session.id, now);
}

/** Takes a free session from an expired attached run, so that its caller, if only slow, cannot write any more. */
export function displace(tables: Tables, session: SessionRow): void {
  checkFree(session, tables.clock.now());
  if (session.run !== undefined) expireRun(tables, session.run);
}

/** The run of a caller that died: it holds nothing any more, and its snapshot reads `expired` from now on. */
export function expireRun(tables: Tables, run: RunRow): void {
  const { heartbeatAt, ttl } = run;
  const parent = nearestListed(run.start);
  addPending(tables, run, { parent, event: 'turnEnd', updatedAt: heartbeatAt, heartbeatAt, ttl });
  leaveInbox(run);
  endRun(tables, run);
}

/** A run that has done nothing yet. */
export function newRun(
  run: Pick<
    RunRow,
    'id' | 'session' | 'request' | 'worker' | 'ttl' | 'createdAt' | 'start' | 'turnIndex'
  >,
): RunRow {
  return {
    ...run,
    attempt: 1,
    heartbeatAt: run.createdAt,
    base: run.start,
    stopping: false,
    crashes: noCrashes,
    steps: new Map(),
    inbox: noMessages,
  };
}

/** The crashes of a run that has made progress. */
export const noCrashes: readonly RunCrash[] = [];

/** The inbox of most runs. */
const noMessages: readonly SteeringMessage[] = [];

/** The stored part of a request. */
export function toRunRequest({
  mode,
  init,
  inputs,
  context,
  version,
  keepInbox,
  undo,
}: RunRequest): RunRequest {
  return defined({ mode, init, inputs, context, version, keepInbox: keepInbox || undefined, undo });
}

/** The totals of the last failed or aborted turn that started from a snapshot: they include it, and those before it. */
function totalsOfFailed(
  { listed }: SessionRow,
  start: SnapshotRow | undefined,
): Totals | undefined {
  const parent = nearestListed(start);
  for (let at = listed.length - 1; at >= 0; at--) {
    const row = listed[at];
    if (row === undefined || row.index <= (parent?.index ?? -1)) return undefined;
    const counts = row.status === 'failed' || row.status === 'aborted';
    if (counts && row.parent === parent && row.totals) return row.totals;
  }
  return undefined;
}

/** Forgets a run; its events stay for a while. */
export function endRun(tables: Tables, run: RunRow): void {
  tables.runs.delete(run.id);
  if (run.session.run === run) run.session.run = undefined;
  endEvents(tables, run.id);
  tables.files.runEnded(run.id);
  tables.emitter.emit(run.id);
}

type Request = Parameters<RunSupport['takeOver']>[0];

/** Takes over expired runs that outlive their process, oldest first. */
export function takeOver(tables: Tables, request: Request): readonly TakenRun[] {
  const now = tables.clock.now();
  const agents = new Set(request.agents);
  for (const run of tables.runs.values()) limitHeartbeat(run, now);
  const isWanted = (run: RunRow): boolean =>
    run.request.mode !== 'attached' &&
    (isExpired(run, now) || isWaiting(run, request)) &&
    agents.has(run.session.scope.agent) &&
    (request.runIds === undefined || request.runIds.includes(run.id)) &&
    (request.exceptWorker === undefined || !run.worker.startsWith(request.exceptWorker));
  const found = [...tables.runs.values()].filter(isWanted).map((run) => {
    const crash = crashOf(run, request, now);
    return { run, crash, crashes: run.crashes.length + (crash === undefined ? 0 : 1) };
  });
  return pickRuns(found, request.suspects)
    .slice(0, request.runIds?.length ?? request.limit)
    .map(({ run, crash }) => take(tables, run, crash, request));
}

// A run that was handed over has no time to live.
function crashOf(run: RunRow, { worker, waitingAs }: Request, now: number): RunCrash | undefined {
  const { attempt, heartbeatAt, ttl } = run;
  if (!isExpired(run, now) || ttl === 0 || run.worker === worker || run.worker === waitingAs) {
    return undefined;
  }
  return { attempt, lastSeenAt: iso(heartbeatAt) };
}

function isWaiting({ id, worker }: RunRow, { runIds, waitingAs }: Request): boolean {
  return runIds?.includes(id) === true && worker === waitingAs;
}

function take(
  tables: Tables,
  run: RunRow,
  crash: RunCrash | undefined,
  { worker, ttl }: Request,
): TakenRun {
  if (crash !== undefined) run.crashes = [...run.crashes, crash];
  run.attempt++;
  run.worker = worker;
  run.ttl = ttl;
  run.heartbeatAt = tables.clock.now();
  tables.emitter.emit(run.id);
  const { base, checkpoint } = run;
  return defined({
    run: toRunRecord(run, run.heartbeatAt),
    claim: claimOf(run),
    base: base && { snapshotId: base.id, state: base.state, ref: base },
    checkpoint: checkpoint?.state,
    used: checkpoint?.used,
  });
}

function claimOf({ id, attempt, session, start, base }: RunRow): Claim {
  return toClaim(
    { runId: id, attempt, sessionId: session.id },
    {
      start: start === undefined ? null : startFact(start),
      base: base ?? null,
      head: session.head === undefined ? null : startFact(session.head),
      isNewSession: false,
      nextIndex: session.nextIndex,
      failedTotals: totalsOfFailed(session, start),
    },
  );
}
