import { defined, toJson } from '../../core/json/json.ts';
import type { Snapshot, SnapshotStatus } from '../../protocol/snapshot.ts';
import {
  type AbortSupport,
  type DeadRunRecord,
  handedOverHint,
  type QueueHandoff,
  type RequestOutcome,
  type RunEvent,
  type RunRef,
  type RunRequest,
  type RunSupport,
  type Scope,
  waitingTtl,
} from '../contract/store.ts';
import { decideSteer } from '../rules/decide-steer.ts';
import { handedOverAttached, noSharedTransactions, releasedDetached } from '../rules/errors.ts';
import { decideAbort } from '../rules/holder.ts';
import {
  claim,
  endRun,
  expireRun,
  listPending,
  noCrashes,
  takeOver,
  toRunRequest,
} from './claim.ts';
import { commit } from './commit.ts';
import { appendTo } from './events.ts';
import { addMemory } from './memories.ts';
import { iso, loadState, statusOf, toMetadata, toRunRecord } from './reading.ts';
import { endRequests, readRequest, replaceReceipt } from './requests.ts';
import { dropSessionRows, isBlank } from './rows.ts';
import { addSpend } from './spend.ts';
import {
  currentRun,
  type DeadRow,
  findRun,
  findSession,
  findSnapshot,
  heldRun,
  inboxOf,
  inScope,
  leaveInbox,
  nearestListed,
  type RunRow,
  stateOf,
  type Tables,
} from './tables.ts';

export function runSupport(tables: Tables): Required<Omit<RunSupport, 'transactional'>> {
  const now = (): number => tables.clock.now();
  return {
    claim: async (scope, request) => claim(tables, scope, request),
    load: async (scope, lookup) => loadState(tables, scope, lookup),
    async heartbeat(ref) {
      const run = heldRun(tables, ref);
      if (run === undefined) return 'lost';
      run.heartbeatAt = now();
      if (run.stopping) return 'stop';
      return run.inbox.length > 0 ? 'steered' : 'held';
    },
    detach: async (ref, request, away, events) => detach(tables, ref, request, away, events),
    async checkpoint(ref, { state, stateHash, inputsDone, midTurn, used, events, spend, memory }) {
      const run = currentRun(tables, ref);
      tables.files.check(run.session.scope, state, () => stateOf(run).state);
      if (events !== undefined) appendTo(tables, run, events);
      run.checkpoint = { state, stateHash, inputsDone, midTurn, used };
      run.crashes = noCrashes;
      addSpend(tables, spend);
      addMemory(tables, run.session, run.id, memory);
      return { snapshotId: run.id, state, ref: run.base, inbox: run.inbox.length };
    },
    commit: async (ref, write) => commit(tables, ref, write),
    release: async (ref, events, requests) => release(tables, ref, events, requests),
    replaceReceipt: async (runId, requests) => replaceReceipt(tables, runId, requests),
    getRequest: async (key) => readRequest(tables, key),
    handOver: async (ref) => handOver(tables, ref),
    async attachPartial({ runId, attempt }, { state, stateHash, usage, totals }) {
      tables.refresh?.run(runId);
      const row = tables.snapshots.get(runId);
      if (row?.status !== 'aborted' || row.partialFrom !== attempt) return;
      tables.files.check(row.session.scope, state, () => row.state);
      row.state = state;
      row.stateHash = stateHash;
      if (usage !== undefined) row.usage = usage;
      if (totals !== undefined) row.totals = totals;
      row.updatedAt = now();
      delete row.partialFrom;
      tables.emitter.emit(runId);
    },
    async getStep(ref, key) {
      const { steps } = currentRun(tables, ref);
      return steps.has(key) ? { value: steps.get(key) } : undefined;
    },
    async saveStep(ref, key, value) {
      const run = currentRun(tables, ref);
      if (run.steps.has(key)) return;
      run.crashes = noCrashes;
      run.steps.set(
        key,
        value === undefined ? undefined : toJson(value, `The result of step "${key}"`),
      );
    },
    async steer(scope, runId, message) {
      const run = findRun(tables, scope, runId);
      if (run === undefined || run.stopping) return false;
      if (decideSteer(inboxOf(run), message) === 'known') return true;
      run.inbox = [...run.inbox, message];
      tables.emitter.emit(runId);
      return true;
    },
    readInbox: async (ref) => inboxOf(currentRun(tables, ref)),
    readLeftInbox: async (scope, sessionId) => findSession(tables, scope, sessionId)?.inbox ?? [],
    takeOver: async (request) => takeOver(tables, request),
    async getRun(scope, runId) {
      const run = findRun(tables, scope, runId);
      return run && toRunRecord(run, now());
    },
    async listRuns(scope) {
      // In the order of the map, which is the order of the claims.
      const runs = [...tables.runs.values()].filter((run) => inScope(run.session, scope));
      return runs.map((run) => toRunRecord(run, now()));
    },
    listDeadRuns: async (scope) => listDead(tables, scope),
    dropDeadRun: async (scope, runId) => dropDead(tables, scope, runId),
  };
}

function detach(
  tables: Tables,
  ref: RunRef,
  request: RunRequest,
  away: QueueHandoff | undefined,
  events: readonly RunEvent[] | undefined,
): Snapshot {
  if (away?.within !== undefined) throw noSharedTransactions();
  const run = currentRun(tables, ref);
  const now = tables.clock.now();
  if (events !== undefined) appendTo(tables, run, events);
  run.request = toRunRequest(request);
  run.heartbeatAt = now;
  const row = run.row ?? listPending(tables, run);
  if (away !== undefined) {
    run.ttl = waitingTtl;
    run.worker = away.worker;
    tables.emitter.emit(handedOverHint);
  }
  tables.emitter.emit(run.id);
  return toMetadata(row, now);
}

function release(
  tables: Tables,
  ref: RunRef,
  events: readonly RunEvent[] | undefined,
  requests: RequestOutcome | undefined,
): void {
  const run = currentRun(tables, ref);
  if (run.row !== undefined) throw releasedDetached();
  if (events !== undefined) appendTo(tables, run, events);
  endRequests(tables, run, requests);
  const { session } = run;
  const isKept = requests !== undefined || tables.events.has(run.id);
  const goes = !isKept && isBlank(tables, session);
  if (!goes) leaveInbox(run);
  endRun(tables, run);
  if (goes) dropSessionRows(tables, new Set([session]));
}

function handOver(tables: Tables, ref: RunRef): void {
  const run = currentRun(tables, ref);
  if (run.request.mode === 'attached') throw handedOverAttached();
  // The claim stays expired, even if its old worker still sends heartbeats.
  run.ttl = 0;
  tables.emitter.emit(run.id);
}

export function abortSupport(tables: Tables): AbortSupport {
  return {
    abortSnapshot: async (scope, snapshotId) => abort(tables, scope, snapshotId),
    onChange: (snapshotId, listener) => tables.emitter.subscribe(snapshotId, listener),
  };
}

function abort(tables: Tables, scope: Scope, snapshotId: string): SnapshotStatus | undefined {
  const now = tables.clock.now();
  const run = findRun(tables, scope, snapshotId);
  if (run === undefined) {
    const row = findSnapshot(tables, scope, snapshotId);
    return row && statusOf(row, now);
  }
  const { heartbeatAt, ttl, request, row } = run;
  const lease = { heartbeatAt, ttl, mode: request.mode, isListed: row !== undefined };
  const decision = decideAbort(lease, now);
  if (decision.kind === 'ends') return end(tables, run);
  run.stopping = true;
  tables.emitter.emit(run.id);
  return decision.status;
}

/** Ends a run. The state that it had reached stays for inspection. */
function end(tables: Tables, run: RunRow): 'aborted' {
  const { state, stateHash } = stateOf(run);
  if (run.row === undefined) expireRun(tables, run);
  else {
    leaveInbox(run);
    endRun(tables, run);
  }
  const row = tables.snapshots.get(run.id);
  if (row !== undefined) {
    // Nothing continues from a snapshot within its turn.
    row.parent = nearestListed(run.start);
    Object.assign(row, { status: 'aborted', finishReason: 'aborted', state, stateHash });
    row.partialFrom = run.attempt;
    row.updatedAt = tables.clock.now();
    row.session.updatedAt = row.updatedAt;
  }
  return 'aborted';
}

/** The dead-letter queue. What was pruned is not in it any more. */
function listDead(tables: Tables, scope: Scope | undefined): readonly DeadRunRecord[] {
  for (const { runId } of tables.dead.values()) {
    if (!tables.snapshots.has(runId)) tables.dead.delete(runId);
  }
  return [...tables.dead.values()]
    .filter(({ session }) => inScope(session, scope))
    .filter(({ runId }) => tables.snapshots.get(runId)?.status === 'failed')
    .map((row) => toRecord(tables, row));
}

function dropDead(tables: Tables, scope: Scope, runId: string): boolean {
  return findSnapshot(tables, scope, runId) !== undefined && tables.dead.delete(runId);
}

function toRecord({ snapshots }: Tables, row: DeadRow): DeadRunRecord {
  return defined({
    ...row.request,
    runId: row.runId,
    scope: row.session.scope,
    sessionId: row.session.id,
    inputsDone: row.inputsDone,
    since: iso(row.since),
    error: snapshots.get(row.runId)?.error,
  });
}
