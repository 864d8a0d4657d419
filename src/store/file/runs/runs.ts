import { isStateHash, type SessionState } from '../../../session/session-state.ts';
import type { RunRef, RunSupport } from '../../contract/store.ts';
import { runSupport as memoryRuns } from '../../memory/runs.ts';
import { findSession, type SessionRow, type Tables } from '../../memory/tables.ts';
import { isExpired } from '../../rules/holder.ts';
import { isSnapshotId } from '../../rules/ids.ts';
import type { DirectoryCache } from '../directory/cache.ts';
import type { DirectoryTransaction } from '../directory/transaction.ts';
import { rewriteFamilies } from '../maintenance/rewrite.ts';
import { checkStored } from '../sessions/check-stored.ts';
import { saveReceipt, saveSession } from '../sessions/save.ts';
import { homes } from '../sessions/session-tree.ts';
import type { Trace } from '../sessions/session-tree-changes.ts';

/** Claims, and the writes under them. */
export function runSupport(cache: DirectoryCache, transaction: DirectoryTransaction): RunSupport {
  const { tables } = cache;
  const memory = memoryRuns(tables);

  /** Does something under a run, and writes what it has changed. */
  const under = <Result>(
    { runId }: RunRef,
    work: () => Promise<Result>,
    trace: Trace = {},
    saveFirst: () => void = () => {},
  ): Promise<Result> => {
    let session: SessionRow | undefined;
    return transaction.write(
      () => {
        cache.refreshRun(runId);
        session = (tables.runs.get(runId) ?? tables.snapshots.get(runId))?.session;
        return work();
      },
      () => {
        tables.requests.clear();
        cache.spend.save();
        if (session === undefined) return;
        saveFirst();
        saveOrDrop(cache, session, trace);
      },
    );
  };

  return {
    claim(scope, request) {
      const { requests = [] } = request;
      let others: readonly SessionRow[] = [];
      return transaction.write(
        () => {
          cache.refreshSession(scope, request.sessionId);
          const { from } = request;
          if (from !== 'head' && from !== null) cache.refreshSnapshot(scope, from.snapshotId);
          for (const { key } of requests) cache.requests.reach(key);
          others = requests.flatMap(({ key }) => tables.requests.get(key)?.session ?? []);
          return memory.claim(scope, request);
        },
        () => {
          const session = findSession(tables, scope, request.sessionId);
          // The dead runs that held the keys have given way.
          for (const other of others) if (other !== session) saveSession(cache, other);
          if (session?.run?.id === request.runId) cache.requests.save(requests);
          tables.requests.clear();
          if (session !== undefined) saveSession(cache, session);
        },
      );
    },
    replaceReceipt(runId, requests) {
      let session: SessionRow | undefined;
      return transaction.write(
        () => {
          for (const key of requests.keys) {
            cache.requests.reach(key);
            const known = tables.requests.get(key);
            if (known?.runId === runId) session = known.session;
          }
          tables.requests.clear();
        },
        () => {
          const { receipt } = requests;
          if (session !== undefined) saveReceipt(cache, session, { ended: runId, receipt });
        },
      );
    },
    getRequest: (key) =>
      transaction.read(() => {
        cache.requests.reach(key);
        const found = memory.getRequest(key);
        tables.requests.clear();
        return found;
      }),
    load: (scope, lookup) =>
      transaction.read(() => {
        cache.refreshLookup(scope, lookup);
        checkStored(cache, scope, lookup);
        return memory.load(scope, lookup);
      }),
    heartbeat: (run) => under(run, () => memory.heartbeat(run)),
    detach(run, request, away, events) {
      const work = (): ReturnType<RunSupport['detach']> => {
        if (events !== undefined) cache.refreshEvents(run.runId);
        return memory.detach(run, request, away, events);
      };
      return under(run, work, {}, events && (() => cache.events.save(run.runId)));
    },
    checkpoint(run, write) {
      const { events } = write;
      const work = (): ReturnType<RunSupport['checkpoint']> => {
        if (events !== undefined) cache.refreshEvents(run.runId);
        return memory.checkpoint(run, write);
      };
      // Events come before the checkpoint: after a crash between the two, they are sent again and not lost.
      return under(run, work, {}, () => cache.events.save(run.runId));
    },
    commit(run, write) {
      const { snapshotId, base, customPatch, events } = write;
      const work = (): ReturnType<RunSupport['commit']> => {
        if (events !== undefined) cache.refreshEvents(run.runId);
        return memory.commit(run, write);
      };
      const trace = { snapshotId, base, customPatch, receipt: write.requests?.receipt };
      // Write the dead letter first: without it, the failed run could not be found.
      const saveFirst = write.deadLetter === true ? () => cache.dead.save(run.runId) : undefined;
      return under(run, work, trace, saveFirst);
    },
    release: (run, events, requests) =>
      under(
        run,
        () => {
          if (events !== undefined) cache.refreshEvents(run.runId);
          return memory.release(run, events, requests);
        },
        { receipt: requests?.receipt },
      ),
    handOver: (run) => under(run, () => memory.handOver(run)),
    async attachPartial(run, write) {
      const trace = { snapshotId: run.runId, base: write.base };
      await under(run, () => memory.attachPartial(run, write), trace);
      if (!cache.uploads.has(run.runId)) return;
      await transaction.write(
        () => {},
        () => cache.uploads.end(run.runId),
      );
    },
    getStep: (run, key) =>
      transaction.read(() => {
        cache.refreshRun(run.runId);
        return memory.getStep(run, key);
      }),
    saveStep: (run, key, value) => under(run, () => memory.saveStep(run, key, value)),
    steer(scope, runId, message) {
      const work = async (): Promise<boolean> =>
        (await memory.steer?.(scope, runId, message)) ?? false;
      return isSnapshotId(runId) ? under({ runId, attempt: 0 }, work) : Promise.resolve(false);
    },
    readInbox: (run) =>
      transaction.read(async () => {
        cache.refreshRun(run.runId);
        return (await memory.readInbox?.(run)) ?? [];
      }),
    readLeftInbox: (scope, sessionId) =>
      transaction.read(async () => {
        cache.refreshSession(scope, sessionId);
        return (await memory.readLeftInbox?.(scope, sessionId)) ?? [];
      }),
    takeOver: (request) =>
      transaction.write(
        () => {
          cache.refreshRuns();
          setDamagedAside(tables);
          return memory.takeOver(request);
        },
        () => {
          for (const { session } of tables.runs.values()) cache.runFile(session).update();
        },
      ),
    getRun: (scope, runId) =>
      transaction.read(() => {
        if (isSnapshotId(runId)) cache.refreshRun(runId);
        return memory.getRun(scope, runId);
      }),
    listRuns: (scope) =>
      transaction.read(() => {
        cache.refreshRuns();
        return memory.listRuns(scope);
      }),
    listDeadRuns: (scope) =>
      transaction.read(() => {
        cache.dead.refresh();
        return memory.listDeadRuns?.(scope) ?? [];
      }),
    dropDeadRun: (scope, runId) =>
      transaction.write(
        () => {
          cache.dead.refresh();
          return memory.dropDeadRun?.(scope, runId) ?? false;
        },
        () => cache.dead.sweep(),
      ),
  };
}

/** Writes what has changed about a session; one that went with its run goes from the disk, too. */
function saveOrDrop(cache: DirectoryCache, session: SessionRow, trace: Trace): void {
  const { tables } = cache;
  const tree = homes.get(session);
  if (findSession(tables, session.scope, session.id) === session || tree === undefined) {
    saveSession(cache, session, trace);
  } else rewriteFamilies(cache, [tree]);
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
