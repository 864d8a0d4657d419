import { inGroups } from '../../core/async/groups.ts';
import { isWaymarkError } from '../../core/error.ts';
import { isSnapshotId } from '../../protocol/ids.ts';
import { isStateHash, type SessionState } from '../../session/session-state.ts';
import type {
  AbortSupport,
  EventSupport,
  RunEvent,
  RunRef,
  RunSupport,
} from '../contract/store.ts';
import { eventSupport as memoryEvents } from '../memory/events.ts';
import { abortSupport as memoryAbort, runSupport as memoryRuns } from '../memory/runs.ts';
import type { Tables } from '../memory/tables.ts';
import { isExpired } from '../rules/holder.ts';
import type { Directory } from './directory.ts';
import { scopeFolder } from './layout.ts';
import { saveReceipt, type Trace } from './save-tree.ts';
import { homeOf } from './session-tree.ts';
import { checkStored, readAhead } from './timeline.ts';
import type { Transaction } from './transaction.ts';
import type { Watch } from './watch.ts';

/** Details of a call under a run. */
interface RunTrace extends Trace {
  readonly events?: readonly RunEvent[] | undefined;
}

/** Claims, and the writes under them. */
export function runSupport(directory: Directory, transaction: Transaction): RunSupport {
  const { tables, requests: keys, files } = directory;
  const memory = memoryRuns(tables);

  /** A call that changes a run. */
  const under =
    <Args extends readonly unknown[], Result>(
      call: (run: RunRef, ...args: Args) => Promise<Result>,
      toTrace: (...args: Args) => RunTrace = () => ({}),
    ) =>
    (run: RunRef, ...args: Args): Promise<Result> => {
      const { events, ...trace } = toTrace(...args);
      return transaction.write(() => {
        directory.refreshRun(run.runId);
        if (events !== undefined) directory.events.refresh(run.runId);
        return call(run, ...args);
      }, trace);
    };
  /** A call that reads a run. */
  const reading =
    <Args extends readonly unknown[], Result>(
      call: (run: RunRef, ...args: Args) => Promise<Result>,
    ) =>
    (run: RunRef, ...args: Args): Promise<Result> =>
      transaction.read(() => {
        directory.refreshRun(run.runId);
        return call(run, ...args);
      });
  return {
    claim: (scope, request) =>
      transaction.write(() => {
        const { requests = [], from } = request;
        directory.refreshSession(scope, request.sessionId);
        if (from !== 'head' && from !== null) directory.refreshSnapshot(scope, from.snapshotId);
        for (const { key } of requests) keys.refresh(key);
        const claim = memory.claim(scope, request);
        if (tables.runs.has(request.runId)) keys.save(requests, request.runId);
        return claim;
      }),
    replaceReceipt: (runId, { keys: replaced, receipt }) =>
      transaction.write(() => {
        for (const key of replaced) keys.refresh(key);
        const known = replaced.flatMap((key) => tables.requests.get(key) ?? []);
        const session = known.find((request) => request.runId === runId)?.session;
        if (session !== undefined) saveReceipt(directory, session, runId, receipt);
      }),
    getRequest: (key) =>
      transaction.read(() => {
        keys.refresh(key);
        const found = memory.getRequest(key);
        tables.requests.clear();
        return found;
      }),
    load: (scope, lookup) =>
      transaction.read(() => {
        directory.refreshLookup(scope, lookup);
        checkStored(directory, scope, lookup);
        return memory.load(scope, lookup);
      }),
    heartbeat: under(memory.heartbeat),
    detach: under(memory.detach, (_request, _away, events) => ({ events, eventsFirst: true })),
    checkpoint: under(memory.checkpoint, ({ events }) => ({ events, eventsFirst: true })),
    commit: under(memory.commit, ({ snapshotId, customPatch, events, requests }) => {
      return { snapshotId, customPatch, events, receipt: requests?.receipt };
    }),
    release: under(memory.release, (events, requests) => ({ events, receipt: requests?.receipt })),
    handOver: under(memory.handOver),
    async attachPartial(run, write) {
      await under(memory.attachPartial, () => ({ snapshotId: run.runId }))(run, write);
      await transaction.write(() => files.endUploads(run.runId));
    },
    getStep: reading(memory.getStep),
    saveStep: under(memory.saveStep),
    steer: (scope, runId, message) =>
      transaction.write(() => {
        if (isSnapshotId(runId)) directory.refreshRun(runId);
        return memory.steer(scope, runId, message);
      }),
    readInbox: reading(memory.readInbox),
    readLeftInbox: (scope, sessionId) =>
      transaction.read(() => {
        directory.refreshSession(scope, sessionId);
        return memory.readLeftInbox(scope, sessionId);
      }),
    takeOver: (request) =>
      transaction.write(() => {
        directory.refreshRuns();
        setDamagedAside(tables);
        return memory.takeOver(request);
      }),
    getRun: (scope, runId) =>
      transaction.read(() => {
        if (isSnapshotId(runId)) directory.refreshRun(runId);
        return memory.getRun(scope, runId);
      }),
    listRuns: (scope) =>
      transaction.read(() => {
        directory.refreshRuns();
        return memory.listRuns(scope);
      }),
    async listDeadRuns(scope) {
      await transaction.open();
      const scopes = scope === undefined ? directory.scopeFolders() : [scopeFolder(scope)];
      await readAhead(directory, transaction, scopes);
      return transaction.read(async () => {
        for (const folder of scopes) directory.refreshScope(folder);
        const dead = await memory.listDeadRuns(scope);
        return dead.toSorted((a, b) => (a.since < b.since ? -1 : 1));
      });
    },
    dropDeadRun: (scope, runId) =>
      transaction.write(() => {
        directory.refreshSnapshot(scope, runId);
        const session = tables.dead.get(runId)?.session;
        const dropped = memory.dropDeadRun(scope, runId);
        if (session !== undefined && !tables.dead.has(runId)) {
          homeOf(session)?.write(session, { session: { id: session.id }, undead: [runId] });
        }
        return dropped;
      }),
  };
}

/** Skips runs with a damaged state, so that the others can be taken over. */
function setDamagedAside({ runs, clock }: Tables): void {
  const now = clock.now();
  for (const run of [...runs.values()].filter((each) => isExpired(each, now))) {
    if (!isWhole(run.base) || !isWhole(run.checkpoint)) runs.delete(run.id);
  }
}

function isWhole(holder: { state: SessionState; stateHash: string } | undefined): boolean {
  try {
    return holder === undefined || isStateHash(holder.state, holder.stateHash);
  } catch {
    return false;
  }
}

/** Aborts of runs, in any process. */
export function abortSupport(
  directory: Directory,
  transaction: Transaction,
  watch: Watch,
): AbortSupport {
  const memory = memoryAbort(directory.tables);
  return {
    abortSnapshot: (scope, snapshotId) =>
      transaction.write(
        () => {
          directory.refreshSnapshot(scope, snapshotId);
          return memory.abortSnapshot(scope, snapshotId);
        },
        { snapshotId },
      ),
    onChange: (snapshotId, listener) =>
      watch.add(snapshotId, memory.onChange(snapshotId, listener)),
  };
}

/** Number of runs whose events are written under one hold of the lock. */
const maxRuns = 100;

interface AppendedEvents {
  readonly run: RunRef;
  readonly events: readonly RunEvent[];
}

/** Events of runs, kept for a while after their end. */
export function eventSupport(
  directory: Directory,
  transaction: Transaction,
  watch: Watch,
): EventSupport {
  const memory = memoryEvents(directory.tables);
  // A run that is lost gets its own error, and the others are written.
  const appendGroup = (group: readonly AppendedEvents[]): Promise<readonly (void | Error)[]> =>
    transaction.write(() => {
      for (const { run } of group) directory.refreshEvents(run.runId);
      return Promise.all(group.map(({ run, events }) => memory.append(run, events).catch(lost)));
    });
  const append = inGroups(appendGroup, maxRuns);
  return {
    append: (run, events) => append({ run, events }),
    read: (scope, runId, options) =>
      transaction.read(() => {
        directory.refreshEvents(runId);
        return memory.read(scope, runId, options);
      }),
    onEvents: (runId, listener) => watch.add(runId, memory.onEvents(runId, listener)),
  };
}

function lost(error: unknown): Error {
  if (isWaymarkError(error)) return error;
  throw error;
}
