import { hashState, type SessionState } from '../../../session/session-state.ts';
import type { RunRef, RunSupport } from '../../contract/store.ts';
import { runSupport as memoryRuns } from '../../memory/runs.ts';
import { findSession, isExpired, type SessionRow, type Tables } from '../../memory/tables.ts';
import { isSnapshotId } from '../../rules/ids.ts';
import type { DirectoryCache } from '../directory/cache.ts';
import type { DirectoryTransaction } from '../directory/transaction.ts';
import { rewriteFamilies } from '../maintenance/rewrite.ts';
import { checkStored } from '../sessions/check-stored.ts';
import { saveReceipt, saveSession } from '../sessions/save.ts';
import type { Trace } from '../sessions/session-tree-changes.ts';

/** Claims, and the writes under them. */
export function runSupport(mirror: DirectoryCache, gate: DirectoryTransaction): RunSupport {
  const { tables } = mirror;
  const memory = memoryRuns(tables);

  /** Does something under a run, and writes what it has changed. */
  const under = <Result>(
    { runId }: RunRef,
    work: () => Promise<Result>,
    trace: Trace = {},
    saveFirst: () => void = () => {},
  ): Promise<Result> => {
    let session: SessionRow | undefined;
    return gate.write(
      () => {
        mirror.reachRun(runId);
        session = (tables.runs.get(runId) ?? tables.snapshots.get(runId))?.session;
        return work();
      },
      () => {
        tables.requests.clear();
        if (session === undefined) return;
        saveFirst();
        saveOrDrop(mirror, session, trace);
      },
    );
  };

  return {
    claim(scope, request) {
      const { requests = [] } = request;
      let others: readonly SessionRow[] = [];
      return gate.write(
        () => {
          mirror.reachSession(scope, request.sessionId);
          if (request.from !== 'head') mirror.reachSnapshot(scope, request.from.snapshotId);
          for (const { key } of requests) mirror.requests.reach(key);
          others = requests.flatMap(({ key }) => tables.requests.get(key)?.session ?? []);
          return memory.claim(scope, request);
        },
        () => {
          const session = findSession(tables, scope, request.sessionId);
          // The dead runs that held the keys have given way.
          for (const other of others) if (other !== session) saveSession(mirror, other);
          if (session?.run?.id === request.runId) mirror.requests.save(requests);
          tables.requests.clear();
          if (session !== undefined) saveSession(mirror, session);
        },
      );
    },
    replaceReceipt(runId, requests) {
      let session: SessionRow | undefined;
      return gate.write(
        () => {
          for (const key of requests.keys) {
            mirror.requests.reach(key);
            const known = tables.requests.get(key);
            if (known?.runId === runId) session = known.session;
          }
          tables.requests.clear();
        },
        () => {
          const { receipt } = requests;
          if (session !== undefined) saveReceipt(mirror, session, { ended: runId, receipt });
        },
      );
    },
    getRequest: (key) =>
      gate.read(() => {
        mirror.requests.reach(key);
        const found = memory.getRequest(key);
        tables.requests.clear();
        return found;
      }),
    load: (scope, lookup) =>
      gate.read(() => {
        mirror.reachLookup(scope, lookup);
        checkStored(mirror, scope, lookup);
        return memory.load(scope, lookup);
      }),
    heartbeat: (run) => under(run, () => memory.heartbeat(run)),
    detach(run, request, away, events) {
      const work = (): ReturnType<RunSupport['detach']> => {
        if (events !== undefined) mirror.reachEvents(run.runId);
        return memory.detach(run, request, away, events);
      };
      return under(run, work, {}, events && (() => mirror.events.save(run.runId)));
    },
    checkpoint(run, write) {
      const { events } = write;
      const work = (): ReturnType<RunSupport['checkpoint']> => {
        if (events !== undefined) mirror.reachEvents(run.runId);
        return memory.checkpoint(run, write);
      };
      // Events come before the checkpoint: after a crash between the two, they are sent again and not lost.
      return under(run, work, {}, () => mirror.events.save(run.runId));
    },
    commit(run, write) {
      const { snapshotId, base, events } = write;
      const work = (): ReturnType<RunSupport['commit']> => {
        if (events !== undefined) mirror.reachEvents(run.runId);
        return memory.commit(run, write);
      };
      const trace = { snapshotId, base, receipt: write.requests?.receipt };
      // The letter comes first: without it, nobody would find a run that was given up.
      const saveFirst = write.deadLetter === true ? () => mirror.dead.save(run.runId) : undefined;
      return under(run, work, trace, saveFirst);
    },
    release: (run, events, requests) =>
      under(
        run,
        () => {
          if (events !== undefined) mirror.reachEvents(run.runId);
          return memory.release(run, events, requests);
        },
        { receipt: requests?.receipt },
      ),
    handOver: (run) => under(run, () => memory.handOver(run)),
    attachPartial: (run, write) =>
      under(run, () => memory.attachPartial(run, write), {
        snapshotId: run.runId,
        base: write.base,
      }),
    getStep: (run, key) =>
      gate.read(() => {
        mirror.reachRun(run.runId);
        return memory.getStep(run, key);
      }),
    saveStep: (run, key, value) => under(run, () => memory.saveStep(run, key, value)),
    takeOver: (request) =>
      gate.write(
        () => {
          mirror.reachRuns();
          setDamagedAside(tables);
          return memory.takeOver(request);
        },
        () => {
          for (const { session } of tables.runs.values()) mirror.runFile(session).update();
        },
      ),
    getRun: (scope, runId) =>
      gate.read(() => {
        if (isSnapshotId(runId)) mirror.reachRun(runId);
        return memory.getRun(scope, runId);
      }),
    listRuns: (scope) =>
      gate.read(() => {
        mirror.reachRuns();
        return memory.listRuns(scope);
      }),
    listDeadRuns: (scope) =>
      gate.read(() => {
        mirror.dead.refresh();
        return memory.listDeadRuns?.(scope) ?? [];
      }),
    dropDeadRun: (scope, runId) =>
      gate.write(
        () => {
          mirror.dead.refresh();
          return memory.dropDeadRun?.(scope, runId) ?? false;
        },
        () => mirror.dead.sweep(),
      ),
  };
}

/** Writes what has changed about a session; one that went with its run goes from the disk, too. */
function saveOrDrop(mirror: DirectoryCache, session: SessionRow, trace: Trace): void {
  const { tables, homes } = mirror;
  const family = homes.get(session);
  if (findSession(tables, session.scope, session.id) === session || family === undefined) {
    saveSession(mirror, session, trace);
  } else rewriteFamilies(mirror, [family]);
}

/** Leaves out, for now, runs that cannot be gone on with because a state is damaged, so that the others can. */
function setDamagedAside({ runs, clock }: Tables): void {
  const now = clock.now();
  for (const run of [...runs.values()].filter((each) => isExpired(each, now))) {
    if (!isWhole(run.base) || !isWhole(run.checkpoint)) runs.delete(run.id);
  }
}

function isWhole(holder: { state: SessionState; stateHash: string } | undefined): boolean {
  try {
    return holder === undefined || hashState(holder.state) === holder.stateHash;
  } catch {
    return false;
  }
}
