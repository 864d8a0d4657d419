import type {
  Claim,
  ClaimRequest,
  ParentRef,
  RunCrash,
  RunRequest,
  Scope,
  Totals,
} from '../contract/store.ts';
import { headMoved, notFound, notSucceeded } from '../rules/errors.ts';
import { checkScope, checkSessionId, checkSnapshotId } from '../rules/ids.ts';
import { endEvents } from './events.ts';
import { addRequests, checkRequests } from './requests.ts';
import { createSessionRow } from './rows.ts';
import {
  checkFree,
  checkUnused,
  findRun,
  findSession,
  findSnapshot,
  list,
  nearestListed,
  type RunRow,
  reached,
  type SessionRow,
  type SnapshotRow,
  type Tables,
} from './tables.ts';

/** Accepts a run: see {@link RunSupport.claim}. Everything is checked before anything is written. */
export function claim(tables: Tables, scope: Scope, request: ClaimRequest): Claim {
  checkScope(scope);
  checkSessionId(request.sessionId);
  checkSnapshotId(request.runId);
  const dead = checkRequests(tables, request.requests);
  checkUnused(tables, request.runId);
  const known = findSession(tables, scope, request.sessionId);
  const start = startOf(tables, scope, request, known);
  if (known !== undefined) checkFree(known, tables.clock.now());
  checkHead(known, request.expectHead);
  const session = known ?? createSessionRow(tables, scope, request.sessionId, request);
  for (const each of dead) if (each.session !== session) leaveBehind(tables, each);
  displace(tables, session);
  const run = createRun(tables, session, start, request);
  addRequests(tables, run, request.requests);
  return toClaim(run, { fresh: known === undefined, limited: request.limited === true });
}

function startOf(
  tables: Tables,
  scope: Scope,
  { from, sessionId }: ClaimRequest,
  session: SessionRow | undefined,
): SnapshotRow | undefined {
  if (from === 'head') return session?.head;
  const row = findSnapshot(tables, scope, from.snapshotId);
  const found = row ?? findRun(tables, scope, from.snapshotId);
  if (found?.session.id !== sessionId) throw notFound('snapshot', from.snapshotId);
  return succeeded(row, from.snapshotId);
}

/** A snapshot that a session can go on from. */
export function succeeded(row: SnapshotRow | undefined, snapshotId: string): SnapshotRow {
  if (row?.status === 'succeeded') return row;
  throw notSucceeded(snapshotId, row?.status ?? 'pending');
}

/** Refuses a caller that expects another head. */
export function checkHead(
  session: SessionRow | undefined,
  expected: string | null | undefined,
): void {
  const headId = session?.head?.id ?? null;
  if (expected === undefined || expected === headId) return;
  throw headMoved(headId);
}

/** Takes a free session from an expired attached run, so that its caller, if only slow, cannot write any more. */
export function displace(tables: Tables, session: SessionRow): void {
  checkFree(session, tables.clock.now());
  if (session.run !== undefined) leaveBehind(tables, session.run);
}

/** The run of a caller that died: it holds nothing any more, and what it worked on reads `expired` from now on. */
export function leaveBehind(tables: Tables, run: RunRow): void {
  const { session } = run;
  const row = tables.newRow({
    id: run.id,
    session,
    parent: nearestListed(run.start),
    index: -1,
    turnIndex: run.turnIndex,
    event: 'turnEnd',
    status: 'pending',
    createdAt: run.createdAt,
    updatedAt: run.heartbeatAt,
    heartbeatAt: run.heartbeatAt,
    ttl: run.ttl,
    state: reached(run).state,
    stateHash: reached(run).stateHash,
  });
  list(row);
  tables.snapshots.set(row.id, row);
  endRun(tables, run);
}

function createRun(
  tables: Tables,
  session: SessionRow,
  start: SnapshotRow | undefined,
  request: ClaimRequest,
): RunRow {
  const now = tables.clock.now();
  const run: RunRow = {
    id: request.runId,
    session,
    attempt: 1,
    request: toRunRequest(request),
    worker: request.worker,
    ttl: request.ttl,
    createdAt: now,
    heartbeatAt: now,
    start,
    base: start,
    turnIndex: start === undefined ? 0 : start.turnIndex + 1,
    stopping: false,
    crashes: noCrashes,
    steps: new Map(),
  };
  tables.runs.set(run.id, run);
  session.run = run;
  return run;
}

/** Of a run that has made progress. */
export const noCrashes: readonly RunCrash[] = [];

/** What is kept of a request. */
export function toRunRequest({ mode, init, inputs, context, version }: RunRequest): RunRequest {
  return {
    mode,
    ...(init === undefined ? {} : { init }),
    inputs,
    ...(context === undefined ? {} : { context }),
    ...(version === undefined ? {} : { version }),
  };
}

/** The claim as its holder sees it. */
export function toClaim(
  run: RunRow,
  options: { readonly fresh: boolean; readonly limited: boolean },
): Claim {
  const { session, start } = run;
  const failedTotals = options.limited ? totalsOfFailed(session, start) : undefined;
  return {
    runId: run.id,
    attempt: run.attempt,
    sessionId: session.id,
    fresh: options.fresh,
    ...(start === undefined ? {} : { parent: toParent(start, run) }),
    ...(session.head === undefined ? {} : { headId: session.head.id }),
    nextIndex: session.nextIndex + (leavesUnlisted(run) ? 1 : 0),
    ...(failedTotals === undefined ? {} : { failedTotals }),
  };
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

// A head that is not listed will be, before the first snapshot that goes on from elsewhere.
function leavesUnlisted({ session, base }: RunRow): boolean {
  return session.head !== undefined && session.head.index < 0 && session.head !== base;
}

function toParent(row: SnapshotRow, run: RunRow): ParentRef {
  return {
    snapshotId: row.id,
    turnIndex: row.turnIndex,
    ...(row.finishReason === undefined ? {} : { finishReason: row.finishReason }),
    ...(row.finishReason === 'interrupted' ? { answered: isAnswered(row, run) } : {}),
    ...(row.index < 0 ? { listed: false } : {}),
    ...(row.totals === undefined ? {} : { totals: row.totals }),
  };
}

// A run that was taken over was accepted while the interrupt was open; its own snapshots are no second answer.
function isAnswered(row: SnapshotRow, run: RunRow): boolean {
  if (run.attempt > 1) return false;
  const goesOn = (other: SnapshotRow): boolean =>
    other.status === 'succeeded' &&
    other.event !== 'toolIterationEnd' &&
    turnStartOf(other) === row;
  const { listed, head } = row.session;
  return (head !== undefined && goesOn(head)) || listed.some(goesOn);
}

/** What the turn of a snapshot went on from. */
function turnStartOf({ parent }: SnapshotRow): SnapshotRow | undefined {
  let row = parent;
  while (row?.event === 'toolIterationEnd') row = row.parent;
  return row;
}

/** Forgets a run; its events stay for a while. */
export function endRun(tables: Tables, run: RunRow): void {
  tables.runs.delete(run.id);
  if (run.session.run === run) run.session.run = undefined;
  endEvents(tables, run.id);
  tables.emitter.emit(run.id);
}

/**
 * A detached run that comes to nothing: its snapshot hangs on what the run was claimed from, not on a snapshot within its
 * turn, which nothing continues from.
 */
export function hangOnStart({ row, start }: RunRow): void {
  if (row !== undefined) row.parent = nearestListed(start);
}
