import { linkSignals } from '../../core/async/signal.ts';
import { hasStatus, type WaymarkError } from '../../core/error.ts';
import { after } from '../../core/time.ts';
import type { Output } from '../../protocol/turn.ts';
import { isUntaken } from '../../store/rules/decide-steer.ts';
import {
  isUnavailable,
  retryWhileUnavailable,
  unknownOutcome,
} from '../persistence/store-errors.ts';
import { endChunk, release } from './commit.ts';
import type { InvocationState } from './invocation-state.ts';
import { followRun, outputOfRun } from './join.ts';
import { type ActiveRun, lostError, type Outcome, type Turn } from './turn-state.ts';

/** A cursor after all events of an attempt. */
const lastOf = (attempt: number): string => `${attempt}.999999999`;

interface Ending {
  /** Saves the end of the turn; may be called again. */
  readonly write: () => Promise<void>;
  readonly outcome: Outcome;
  readonly failure: (cause: unknown) => WaymarkError;
}

/**
 * Saves the end of a turn and returns its real outcome. An unavailable store is retried for as long as the caller waits. A run
 * that another worker has taken over is followed to its end. If the outcome cannot be found out, it fails with `UNKNOWN`.
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
    if (isUntaken(error)) return { kind: 'steered' };
    if (hasStatus(error, 'ABORTED')) {
      return await endElsewhere(invocation, run, turn, failure(error));
    }
    // The caller may get an earlier error instead.
    invocation.failures.report(error, 'store');
    if (isUnavailable(error)) return endUnknown(invocation, run, turn, error);
    return await endUnsaved(invocation, run, turn, failure(error));
  }
}

/** The outcome of a turn that another worker has taken over. */
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
    // The run's log belongs to the other worker now, but the caller here still has to see the end of the turn.
    chunkSink.deliver(endChunk(turn, 'failed'));
    invocation.fallBack();
    // A run that continues in another process has not failed.
    if (!log.durable) invocation.failures.report(error, 'run');
    return { kind: 'failed', error };
  };
  host.logs.forget(log);
  // A closing app has handed the run over and does not wait for it.
  if (host.closing.aborted) return failed(lostError(runId));
  let told = false;
  let output: Output | undefined;
  const over = linkSignals(host.closing, invocation.callerGone);
  try {
    if (log.durable) {
      const after = lastOf(attempt);
      told = await followRun(invocation, runId, { after, over: over.signal });
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
    const shown = chunkSink.shown(chunk) ?? {};
    await chunkSink.relay(shown, log.stage(chunk, shown));
  }
  return { kind: 'elsewhere', output };
}

/** After a failed write: releases the run. If that succeeds, nothing of the turn was saved or will be. */
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
    // It was saved after all, or another worker has it.
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
  // Sent to the caller only, not logged: a server keeps looking for the real end of the turn.
  chunkSink.deliver(endChunk(turn, 'failed'));
  invocation.fallBack();
  return { kind: 'failed', error: unknownOutcome(run.runId, cause) };
}

/** Ends a turn of an agent without a store, of which nothing is saved. */
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
 * Retries an unavailable store while the caller waits. No other worker continues an attached run, so it is given up when its
 * claim must have expired.
 */
async function whileWaitedFor(
  invocation: InvocationState,
  { log }: ActiveRun,
  work: () => Promise<void>,
): Promise<void> {
  const { host } = invocation;
  let last: unknown;
  const tracked = (): Promise<void> =>
    work().catch((error: unknown) => {
      last = error;
      throw error;
    });
  try {
    return await tracked();
  } catch (error) {
    if (!isUnavailable(error)) throw error;
  }
  const over = linkSignals(host.closing, invocation.callerGone);
  const cancel = log.durable
    ? undefined
    : after(host.clock, host.ttl, () => over.abort(), { keepAlive: true });
  try {
    await retryWhileUnavailable(host.clock, over.signal, tracked);
  } catch {
    // The last error says more than that the wait was over.
    throw last;
  } finally {
    cancel?.();
    over.release();
  }
}
