import { linkSignals } from '../../core/async/signal.ts';
import { WaymarkError } from '../../core/error.ts';
import type { Chunk, Input, Output } from '../../protocol/turn.ts';
import type { RequestRecord } from '../../store/contract/store.ts';
import { retryWhileUnavailable } from '../persistence/outage.ts';
import { receiptOf } from '../persistence/receipt.ts';
import { isAbandoned } from '../persistence/watch.ts';
import { fullStore } from '../spec/spec.ts';
import { runChange } from './concurrency.ts';
import { followRun, outputOfRun } from './follow.ts';
import type { InvocationState } from './invocation-state.ts';
import { requestKey } from './requests.ts';

/** The output of a detaching caller whose request id belongs to an earlier run. */
export function detachedBefore({ runId, sessionId }: RequestRecord): Output {
  return { sessionId, snapshotId: runId, snapshotIds: [], finishReason: 'detached' };
}

/**
 * Whether the run that an earlier request with the same id started continues without its caller, or has ended. Waits while that is
 * open: a process that accepts the run may still refuse it, or die. `false`: it was refused or lost, and the input may be claimed again.
 */
export async function wasDetached(
  invocation: InvocationState,
  input: Input,
  known: RequestRecord,
): Promise<boolean> {
  checkSession(invocation, known);
  const { spec, host, scope, control } = invocation;
  const { runId } = known;
  for (;;) {
    const run = await fullStore(spec)?.runs?.getRun(scope, runId);
    if (run === undefined) {
      return (await outputOfRun(invocation, runId, input.requestId)) !== undefined;
    }
    if (run.mode === 'detached') return true;
    if (isAbandoned(run)) return false;
    await runChange(invocation, runId);
    host.checkOpen();
    if (control.signal.aborted) {
      throw new WaymarkError('CANCELLED', 'Stopped while another process was accepting the run.');
    }
  }
}

/**
 * Joins the run that an earlier request with the same id started: forwards its chunks, waits for its end and returns its
 * output. `undefined` if the run was lost with its process: then the input may be run again.
 */
export async function joinRun(
  invocation: InvocationState,
  input: Input,
  known: RequestRecord,
): Promise<Output | undefined> {
  checkSession(invocation, known);
  const { runId } = known;
  const { spec, host, scope, callerGone } = invocation;
  const link = linkSignals(host.closing);
  // Stopping the request stops its run, which keeps its partial answer.
  const stop = (): void =>
    void fullStore(spec)
      ?.abort?.abortSnapshot(scope, runId)
      .catch(() => {});
  callerGone.addEventListener('abort', stop, { once: true });
  if (callerGone.aborted) stop();
  try {
    const { told } = await followRun(invocation, runId, { over: link.signal });
    const output = await retryWhileUnavailable(host.clock, link.signal, () =>
      outputOfRun(invocation, runId, input.requestId),
    );
    if (output !== undefined && !told) await retell(invocation, input, known, output);
    return output;
  } catch (error) {
    if (!host.closing.aborted) throw error;
    throw new WaymarkError(
      'UNAVAILABLE',
      'The app is closing while the turn runs elsewhere. Send it again with the same request id.',
      { details: { snapshotId: runId }, cause: error },
    );
  } finally {
    link.release();
    callerGone.removeEventListener('abort', stop);
  }
}

// With `fork`, the first request may have run in a new session.
function checkSession(
  { request, spec }: InvocationState,
  { runId, sessionId }: RequestRecord,
): void {
  const given = request.init.sessionId;
  if (given === undefined || given === sessionId || spec.concurrency === 'fork') return;
  throw new WaymarkError(
    'INVALID_ARGUMENT',
    `This request id was used before in session "${sessionId}". Use a new id for a new request.`,
    { details: { snapshotId: runId } },
  );
}

/** Sends the turn again in a few chunks, for a run whose events are no longer stored. */
async function retell(
  { chunkSink, scope, spec }: InvocationState,
  { requestId = '' }: Input,
  { runId, sessionId }: RequestRecord,
  output: Output,
): Promise<void> {
  const record = await fullStore(spec)?.runs?.getRequest(requestKey(scope, requestId));
  const snapshot = await spec.store?.getSnapshot(scope, { snapshotId: runId });
  const receipt = record && receiptOf(record);
  const { message, finishReason, usage } = output;
  const isListed = output.snapshotIds?.includes(runId) === true;
  const chunks: readonly Chunk[] = [
    {
      turnStart: {
        sessionId,
        snapshotId: runId,
        turnIndex: receipt?.turnIndex ?? snapshot?.turnIndex ?? 0,
      },
    },
    ...(message ? [{ modelChunk: { role: message.role, content: message.content } }] : []),
    {
      ...(isListed && { snapshotCreated: runId }),
      turnEnd: {
        ...(isListed && { snapshotId: runId }),
        ...(finishReason && { finishReason }),
        ...(usage && { usage }),
        ...(output.output !== undefined && { output: output.output }),
      },
    },
  ];
  for (const [seq, chunk] of chunks.entries()) await chunkSink.relay(chunk, { attempt: 1, seq });
}
