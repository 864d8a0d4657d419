import { WaymarkError } from 'waymark';
import {
  type QueueHandoff,
  type RequestOutcome,
  type RunEvent,
  type RunRef,
  type RunRequest,
  type RunSupport,
  type Snapshot,
  storeConstants,
  toJson,
  toPlainState,
} from 'waymark/store';
import { claim, endRun, toRunRequest } from './claim.ts';
import { commit } from './commit.ts';
import { dropDead, listDead } from './dead-runs.ts';
import { appendTo } from './events.ts';
import type { JsonFile } from './json-file.ts';
import { loadState, toMetadata, toRunRecord } from './read.ts';
import { endRequests, readRequest, replaceReceipt } from './requests.ts';
import {
  currentRun,
  dropSession,
  findRun,
  inScope,
  list,
  nearestListed,
  type RunRow,
  reached,
  rowsOf,
  type SnapshotRow,
  sessionOf,
  type Transaction,
  withSubSessions,
} from './tables.ts';
import { takeOver } from './take-over.ts';

/** Claims, and the writes under them. */
export function runSupport(file: JsonFile): RunSupport {
  return {
    claim: (scope, request) => file.write((tx) => claim(tx, scope, request)),
    load: (scope, lookup) => file.read((tx) => loadState(tx, scope, lookup)),
    heartbeat: ({ runId, attempt }) =>
      file.write((tx) => {
        const run = tx.data.runs[runId];
        if (run?.attempt !== attempt) return 'lost';
        run.heartbeatAt = tx.now;
        return run.stopping ? 'stop' : 'held';
      }),
    detach: (ref, request, handoff, events) =>
      file.write((tx) => detach(tx, ref, request, { handoff, events })),
    checkpoint: (ref, { state, stateHash, inputsDone, midTurn, used, events }) =>
      file.write((tx) => {
        const run = currentRun(tx, ref);
        appendTo(tx, run, events);
        const stored = { state: toPlainState(state), stateHash, inputsDone, midTurn };
        run.checkpoint = { ...stored, ...(used && { used }) };
        run.crashes = [];
        return { snapshotId: run.id, state, ref: undefined };
      }),
    commit: (ref, write) => file.write((tx) => commit(tx, ref, write)),
    release: (ref, events, requests) => file.write((tx) => release(tx, ref, events, requests)),
    replaceReceipt: (runId, requests) => file.write((tx) => replaceReceipt(tx, runId, requests)),
    getRequest: (key) => file.write((tx) => readRequest(tx, key)),
    handOver: (ref) => file.write((tx) => handOver(tx, currentRun(tx, ref))),
    attachPartial: ({ runId, attempt }, { state, stateHash, usage, totals }) =>
      file.write((tx) => {
        const row = tx.data.snapshots[runId];
        if (row?.status !== 'aborted' || row.partialFrom !== attempt) return;
        Object.assign(row, { state: toPlainState(state), stateHash, updatedAt: tx.now });
        if (usage !== undefined) row.usage = usage;
        if (totals !== undefined) row.totals = totals;
        delete row.partialFrom;
        tx.emit(runId);
      }),
    getStep: (ref, key) =>
      file.read((tx) => {
        const step = currentRun(tx, ref).steps.find((each) => each.key === key);
        return step && { value: step.value };
      }),
    saveStep: (ref, key, value) =>
      file.write((tx) => {
        const run = currentRun(tx, ref);
        if (run.steps.some((each) => each.key === key)) return;
        run.crashes = [];
        const what = `The result of step "${key}"`;
        run.steps.push({ key, ...(value !== undefined && { value: toJson(value, what) }) });
      }),
    takeOver: (request) => file.write((tx) => takeOver(tx, request)),
    getRun: (scope, runId) =>
      file.read((tx) => {
        const run = findRun(tx, scope, runId);
        return run && toRunRecord(tx, run);
      }),
    listRuns: (scope) =>
      file.read((tx) =>
        Object.values(tx.data.runs)
          .filter((run) => inScope(sessionOf(tx, run), scope))
          .sort((a, b) => a.createdAt - b.createdAt)
          .map((run) => toRunRecord(tx, run)),
      ),
    listDeadRuns: (scope) => file.read((tx) => listDead(tx, scope)),
    dropDeadRun: (scope, runId) => file.write((tx) => dropDead(tx, scope, runId)),
  };
}

function detach(
  tx: Transaction,
  ref: RunRef,
  request: RunRequest,
  options: {
    readonly handoff?: QueueHandoff | undefined;
    readonly events?: readonly RunEvent[] | undefined;
  },
): Snapshot {
  const { handoff, events } = options;
  if (handoff?.within !== undefined) {
    throw new WaymarkError('FAILED_PRECONDITION', 'The JSON store has no transactions to join.');
  }
  const run = currentRun(tx, ref);
  appendTo(tx, run, events);
  run.request = toRunRequest(request);
  run.heartbeatAt = tx.now;
  const row = tx.data.snapshots[run.id] ?? addPending(tx, run);
  if (handoff !== undefined) {
    run.ttl = storeConstants.waitingTtl;
    run.worker = handoff.worker;
    tx.emit(storeConstants.handedOverHint);
  }
  tx.emit(run.id);
  return toMetadata(tx, row);
}

function addPending(tx: Transaction, run: RunRow): SnapshotRow {
  const row: SnapshotRow = {
    id: run.id,
    session: run.session,
    parent: nearestListed(tx, run.base),
    index: -1,
    turnIndex: run.turnIndex,
    event: 'detach',
    status: 'pending',
    createdAt: run.createdAt,
    updatedAt: tx.now,
    ...reached(tx, run),
  };
  list(tx, row);
  tx.data.snapshots[row.id] = row;
  run.isListed = true;
  return row;
}

function release(
  tx: Transaction,
  ref: RunRef,
  events: readonly RunEvent[] | undefined,
  requests: RequestOutcome | undefined,
): void {
  const run = currentRun(tx, ref);
  if (run.isListed) {
    throw new WaymarkError(
      'FAILED_PRECONDITION',
      'A detached run ends with a commit or an abort: its pending snapshot needs a terminal status.',
    );
  }
  appendTo(tx, run, events);
  endRequests(tx, run, requests);
  endRun(tx, run);
  // A turn that was refused leaves no empty session behind.
  const session = sessionOf(tx, run);
  const isBlank =
    requests === undefined &&
    !(run.id in tx.data.events) &&
    session.nextIndex === 0 &&
    rowsOf(tx, session).length === 0 &&
    session.title === undefined &&
    session.metadata === undefined &&
    withSubSessions(tx, session).length === 1;
  if (isBlank) dropSession(tx, session);
}

function handOver(tx: Transaction, run: RunRow): void {
  if (run.request.mode === 'attached') {
    throw new WaymarkError(
      'FAILED_PRECONDITION',
      'An attached run cannot be handed over: only its caller can continue it.',
    );
  }
  run.ttl = 0;
  tx.emit(run.id);
}
