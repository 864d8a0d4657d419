import { linkSignals } from '../../core/async/signal.ts';
import { hasStatus, invalid, WaymarkError } from '../../core/error.ts';
import { defined } from '../../core/json/json.ts';
import { parseEventId } from '../../protocol/ids.ts';
import { outputOfSnapshot } from '../../protocol/snapshot-output.ts';
import type { Chunk, Input, Output } from '../../protocol/turn.ts';
import type { RequestRecord } from '../../store/contract/store.ts';
import { outputOfReceipt, receiptOf } from '../persistence/receipt.ts';
import { retryWhileUnavailable } from '../persistence/store-errors.ts';
import { transformSnapshot } from '../persistence/transform.ts';
import { isAbandoned, waitForRun, watchRun } from '../persistence/watch.ts';
import { runChange } from './claim-busy.ts';
import { requestKey } from './inputs.ts';
import type { InvocationState } from './invocation-state.ts';

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
    const run = await spec.store?.runs?.getRun(scope, runId);
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
  const stop = (): void => void spec.store?.abort?.abortSnapshot(scope, runId).catch(() => {});
  callerGone.addEventListener('abort', stop, { once: true });
  if (callerGone.aborted) stop();
  try {
    const told = await followRun(invocation, runId, { over: link.signal });
    const output = await retryWhileUnavailable(host.clock, link.signal, () =>
      outputOfRun(invocation, runId, input.requestId),
    );
    if (output !== undefined && !told) await replayOutput(invocation, input, known, output);
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
  throw invalid(
    `This request id was used before in session "${sessionId}". Use a new id for a new request.`,
    { details: { snapshotId: runId } },
  );
}

/** Sends the turn again in a few chunks, for a run whose events are no longer stored. */
async function replayOutput(
  { chunkSink, scope, spec }: InvocationState,
  { requestId = '' }: Input,
  { runId, sessionId }: RequestRecord,
  output: Output,
): Promise<void> {
  const record = await spec.store?.runs?.getRequest(requestKey(scope, requestId));
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
    defined({
      snapshotCreated: isListed ? runId : undefined,
      turnEnd: defined({
        snapshotId: isListed ? runId : undefined,
        finishReason,
        usage,
        output: output.output,
      }),
    }),
  ];
  for (const [seq, chunk] of chunks.entries()) await chunkSink.relay(chunk, { attempt: 1, seq });
}

/**
 * Forwards the events of a run that another worker executes, until it has ended. Retries an unavailable store; rejects when
 * `over` aborts. Returns whether the caller has seen its `turnEnd`.
 */
export async function followRun(
  { spec, host, scope, chunkSink }: InvocationState,
  runId: string,
  { after, over }: { readonly after?: string | undefined; readonly over: AbortSignal },
): Promise<boolean> {
  const watching = { spec, host, scope, runId, signal: over };
  let place = after;
  let told = false;
  return await retryWhileUnavailable(host.clock, over, async () => {
    const run = await spec.store?.runs?.getRun(scope, runId);
    // The events of an attached run stay in its process, so from here only its end can be waited for.
    if (run?.mode === 'attached' && host.logs.get(runId, scope) === undefined) {
      await waitForRun(watching);
      return told;
    }
    for await (const event of watchRun(watching, place)) {
      if (event.type === 'end') return told;
      place = event.id;
      if (event.type === 'reset') {
        const { type: _, id, ...reset } = event;
        await chunkSink.relay({ reset }, parseEventId(id));
        continue;
      }
      const { agent, turnEnd } = event.chunk;
      if (agent === undefined && turnEnd !== undefined) told = true;
      await chunkSink.relay(event.chunk, parseEventId(event.id));
    }
    return told;
  }).catch((error: unknown) => {
    if (hasStatus(error, 'NOT_FOUND')) return told;
    throw error;
  });
}

/** The output of a run that has ended, whichever worker executed it; `undefined` if it was lost. */
export async function outputOfRun(
  {
    spec,
    scope,
    transform = spec.transform,
  }: Pick<InvocationState, 'spec' | 'scope'> & Partial<Pick<InvocationState, 'transform'>>,
  runId: string,
  requestId?: string,
): Promise<Output | undefined> {
  const { store } = spec;
  if (store === undefined) return undefined;
  const record =
    requestId === undefined
      ? undefined
      : await spec.store?.runs?.getRequest(requestKey(scope, requestId));
  const receipt = record?.runId === runId ? receiptOf(record) : undefined;
  if (record !== undefined && receipt !== undefined) {
    const snapshotId = receipt.snapshotId ?? runId;
    const snapshot = await store.getSnapshot(scope, { snapshotId });
    const { status } = snapshot ?? {};
    const good = status === 'succeeded' ? snapshot : undefined;
    return outputOfReceipt(transform, receipt, record.sessionId, good);
  }
  const snapshot = await store.getSnapshot(scope, { snapshotId: runId });
  if (snapshot === undefined || snapshot.status === 'pending' || snapshot.status === 'expired') {
    return undefined;
  }
  const { snapshotId, ...output } = outputOfSnapshot(transformSnapshot(transform, snapshot));
  // The latest state without a snapshot has no id to return.
  if (snapshot.index < 0) return output;
  return {
    ...output,
    ...(snapshotId !== undefined && { snapshotId }),
    ...(snapshot.status === 'succeeded' && { snapshotIds: [runId] }),
  };
}
