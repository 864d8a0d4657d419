import type { Claim, RunCrash, RunSupport, TakenRun } from '../contract/store.ts';
import { toClaim } from '../rules/decide-claim.ts';
import { isExpired } from '../rules/holder.ts';
import { anySuspects, pickRuns } from '../rules/suspects.ts';
import { totalsOfFailed } from './claim.ts';
import { startFact } from './facts.ts';
import { toRunRecord } from './reading.ts';
import { limitHeartbeat, type RunRow, type Tables } from './tables.ts';

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
  return pickRuns(found, request.suspects ?? anySuspects)
    .slice(0, request.runIds?.length ?? request.limit)
    .map(({ run, crash }) => take(tables, run, crash, request));
}

// A run that was handed over has no time to live.
function crashOf(run: RunRow, { worker, waitingAs }: Request, now: number): RunCrash | undefined {
  const { attempt, heartbeatAt, ttl } = run;
  if (!isExpired(run, now) || ttl === 0 || run.worker === worker || run.worker === waitingAs) {
    return undefined;
  }
  return { attempt, lastSeenAt: new Date(heartbeatAt).toISOString() };
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
  return {
    run: toRunRecord(run, run.heartbeatAt),
    claim: claimOf(run),
    ...(base === undefined ? {} : { base: { snapshotId: base.id, state: base.state, ref: base } }),
    ...(checkpoint === undefined ? {} : { checkpoint: checkpoint.state }),
    ...(checkpoint?.used === undefined ? {} : { used: checkpoint.used }),
  };
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
