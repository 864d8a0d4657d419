import { linkSignals } from '../../core/async/signal.ts';
import { isWaymarkError, type Status, type WaymarkError } from '../../core/error.ts';
import { after } from '../../core/time/after.ts';
import type { Output } from '../../protocol/turn.ts';
import { isUnavailable, retryWhileUnavailable, unknownOutcome } from '../persistence/outage.ts';
import { endChunk, release } from './commit.ts';
import { followRun, outputOfRun } from './follow.ts';
import type { ActiveRun, InvocationState } from './invocation-state.ts';
import { lostError, type Outcome, type Turn } from './turn-state.ts';

/** After every event that an attempt can have had. */
const lastOf = (attempt: number): string => `${attempt}.999999999`;

interface Ending {
  /** Saves the end of the turn; may be called again. */
  readonly write: () => Promise<void>;
  /** What the turn came to once that is done. */
  readonly outcome: Outcome;
  /** What is told when nothing was saved. */
  readonly failure: (cause: unknown) => WaymarkError;
}

/**
 * Saves the end of a turn, and tells what really became of it: a store that is away is asked again for as long as the caller
 * waits, and a run that somebody else has gone on with is followed to its end. What cannot be found out is `UNKNOWN`.
 */
export async function saveSurely(
  invocation: InvocationState,
  run: ActiveRun,
  turn: Turn,
  { write, outcome, failure }: Ending,
): Promise<Outcome> {
  try {
    await whileWaitedFor(invocation, run, write);
    return outcome;
  } catch (error) {
    if (hasStatus(error, 'ABORTED')) {
      return await endElsewhere(invocation, run, turn, failure(error));
    }
    // What the caller is told may be another error that was first.
    invocation.failures.report(error, 'store');
    if (isUnavailable(error)) return endUnknown(invocation, run, turn, error);
    return await endUnsaved(invocation, run, turn, failure(error));
  }
}

/** The end of a turn whose run is no longer this process's: what the other worker makes of it. */
export async function endElsewhere(
  invocation: InvocationState,
  run: ActiveRun,
  turn: Turn,
  failure: WaymarkError,
): Promise<Outcome> {
  const { host, chunkSink } = invocation;
  const { log, runId } = run;
  const attempt = run.turnBase.run?.attempt ?? 1;
  const failed = (error: WaymarkError): Outcome => {
    // What others see of the run is up to whoever has it now; its caller here still learns that the turn is over.
    chunkSink.deliver(endChunk(turn, 'failed'));
    invocation.fallBack();
    // A run that continues in another process has not failed.
    if (!log.durable) invocation.failures.report(error, 'run');
    return { kind: 'failed', error };
  };
  host.logs.forget(log);
  // An app that closes has handed the run over, and does not wait for it.
  if (host.closing.aborted) return failed(lostError(runId));
  let told = false;
  let output: Output | undefined;
  const over = linkSignals(host.closing, invocation.callerGone);
  try {
    if (log.durable) {
      const after = lastOf(attempt);
      ({ told } = await followRun(invocation, runId, { after, over: over.signal }));
    }
    const { requestId } = turn.input;
    output = await retryWhileUnavailable(host.clock, over.signal, () =>
      outputOfRun(invocation, runId, requestId),
    );
  } catch (error) {
    return failed(unknownOutcome(runId, error));
  } finally {
    over.release();
  }
  if (output === undefined) return failed(failure);
  if (!told) {
    const { finishReason = 'unknown', snapshotIds } = output;
    const snapshotId = snapshotIds?.includes(runId) ? runId : undefined;
    const chunk = endChunk(turn, finishReason, snapshotId);
    await chunkSink.relay(chunk, log.stage(chunk));
  }
  return { kind: 'elsewhere', output };
}

/** A write that was refused, or broke: when the run can be ended, nothing of the turn was saved, nor will be. */
async function endUnsaved(
  invocation: InvocationState,
  run: ActiveRun,
  turn: Turn,
  failure: WaymarkError,
): Promise<Outcome> {
  const chunk = endChunk(turn, 'failed');
  try {
    await whileWaitedFor(invocation, run, () => release(invocation, run, chunk));
  } catch (error) {
    // It was saved after all, or somebody else has it.
    if (hasStatus(error, 'ABORTED')) return await endElsewhere(invocation, run, turn, failure);
    if (isUnavailable(error)) return endUnknown(invocation, run, turn, error);
    sendEnd(run, turn);
  }
  invocation.fallBack();
  return { kind: 'failed', error: failure };
}

function endUnknown(
  invocation: InvocationState,
  run: ActiveRun,
  turn: Turn,
  cause: unknown,
): Outcome {
  const { chunkSink, host } = invocation;
  host.logs.forget(run.log);
  // It is no event: a server that has a reader for it goes on to look for the real one.
  chunkSink.deliver(endChunk(turn, 'failed'));
  invocation.fallBack();
  return { kind: 'failed', error: unknownOutcome(run.runId, cause) };
}

/** Ends a turn of which nothing is saved, and lets go of the session; a claim that cannot be given back expires by itself. */
export async function giveUp(
  invocation: InvocationState,
  run: ActiveRun,
  turn: Turn,
): Promise<void> {
  try {
    await release(invocation, run, endChunk(turn, 'failed'));
  } catch {
    sendEnd(run, turn);
  }
  invocation.fallBack();
}

function sendEnd({ log }: ActiveRun, turn: Turn): void {
  const end = endChunk(turn, 'failed');
  log.push(end, end);
}

/**
 * Asks a store that is away again while the caller waits. Of an attached run nobody else saves anything, so it is given up
 * when its claim must have expired.
 */
async function whileWaitedFor(
  invocation: InvocationState,
  { log }: ActiveRun,
  work: () => Promise<void>,
): Promise<void> {
  const { host } = invocation;
  let last: unknown;
  try {
    await work();
    return;
  } catch (error) {
    if (!isUnavailable(error)) throw error;
    last = error;
  }
  const tracked = async (): Promise<void> => {
    try {
      await work();
    } catch (error) {
      last = error;
      throw error;
    }
  };
  const over = linkSignals(host.closing, invocation.callerGone);
  const cancel = log.durable
    ? undefined
    : after(host.clock, host.ttl, () => over.abort(), { keepAlive: true });
  try {
    await retryWhileUnavailable(host.clock, over.signal, tracked);
  } catch {
    // Why it was last away says more than that the wait was over.
    throw last;
  } finally {
    cancel?.();
    over.release();
  }
}

function hasStatus(error: unknown, status: Status): boolean {
  return isWaymarkError(error) && error.status === status;
}
