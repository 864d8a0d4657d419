import { type RunCrash, type RunSupport, storeRules, type TakenRun } from 'waymark/store';
import { totalsOfFailed } from './claim.ts';
import { limitHeartbeat, startFact } from './facts.ts';
import { iso, openState, toRunRecord } from './read.ts';
import { type RunRow, sessionOf, snapshotAt, type Transaction } from './tables.ts';

type Request = Parameters<RunSupport['takeOver']>[0];

/** Takes over expired runs that outlive their process, oldest first. */
export function takeOver(tx: Transaction, request: Request): readonly TakenRun[] {
  const { agents, runIds, waitingAs, exceptWorker, suspects, limit } = request;
  const isWanted = (run: RunRow): boolean => {
    limitHeartbeat(tx, run);
    const isWaiting = runIds?.includes(run.id) === true && run.worker === waitingAs;
    return (
      run.request.mode !== 'attached' &&
      (storeRules.isExpired(run, tx.now) || isWaiting) &&
      agents.includes(sessionOf(tx, run).scope.agent) &&
      runIds?.includes(run.id) !== false &&
      (exceptWorker === undefined || !run.worker.startsWith(exceptWorker))
    );
  };
  const found = Object.values(tx.data.runs)
    .filter(isWanted)
    .sort((a, b) => a.createdAt - b.createdAt)
    .map((run) => {
      const crash = crashOf(tx, run, request);
      return { run, crash, crashes: run.crashes.length + (crash === undefined ? 0 : 1) };
    });
  return storeRules
    .takeOver(found, suspects)
    .slice(0, runIds?.length ?? limit)
    .map(({ run, crash }) => take(tx, run, crash, request));
}

/** The worker died, unless it handed the run over (its ttl is 0) or takes it over itself. */
function crashOf(
  tx: Transaction,
  run: RunRow,
  { worker, waitingAs }: Request,
): RunCrash | undefined {
  if (!storeRules.isExpired(run, tx.now) || run.ttl === 0) return undefined;
  if (run.worker === worker || run.worker === waitingAs) return undefined;
  return { attempt: run.attempt, lastSeenAt: iso(run.heartbeatAt) };
}

function take(
  tx: Transaction,
  run: RunRow,
  crash: RunCrash | undefined,
  { worker, ttl }: Request,
): TakenRun {
  if (crash !== undefined) run.crashes = [...run.crashes, crash];
  run.attempt++;
  run.worker = worker;
  run.ttl = ttl;
  run.heartbeatAt = tx.now;
  tx.emit(run.id);
  const session = sessionOf(tx, run);
  const base = snapshotAt(tx, run.base);
  const { checkpoint } = run;
  const claim = storeRules.toClaim(
    { runId: run.id, attempt: run.attempt, sessionId: session.id },
    {
      start: startFact(tx, run.start),
      base: run.base,
      head: startFact(tx, session.head),
      isNewSession: false,
      nextIndex: session.nextIndex,
      failedTotals: totalsOfFailed(tx, session, run.start),
    },
  );
  return {
    run: toRunRecord(tx, run),
    claim,
    ...(base && { base: { snapshotId: base.id, state: openState(base), ref: undefined } }),
    ...(checkpoint && { checkpoint: openState(checkpoint) }),
    ...(checkpoint?.used && { used: checkpoint.used }),
  };
}
