import type { EventId } from '../../api/types.ts';
import { isWaymarkError } from '../../core/error.ts';
import { parseEventId } from '../../protocol/ids.ts';
import type { Snapshot } from '../../protocol/snapshot.ts';
import { outputOfSnapshot } from '../../protocol/snapshot-output.ts';
import type { Output } from '../../protocol/turn.ts';
import { retryWhileUnavailable } from '../persistence/outage.ts';
import { outputOfReceipt, receiptOf } from '../persistence/receipt.ts';
import { transformSnapshot } from '../persistence/transform.ts';
import { waitForRun, watchRun } from '../persistence/watch.ts';
import { fullStore } from '../spec/spec.ts';
import type { InvocationState } from './invocation-state.ts';
import { requestKey } from './requests.ts';

/** The end of a run that another worker executed. */
export interface Followed {
  readonly snapshot?: Snapshot;
  /** Whether the caller has seen its `turnEnd`. */
  readonly told: boolean;
}

/**
 * Forwards the events of a run that another worker executes, until it has ended. Retries an unavailable store; rejects when
 * `over` aborts.
 */
export async function followRun(
  { spec, host, scope, chunkSink }: InvocationState,
  runId: string,
  { after, over }: { readonly after?: EventId | undefined; readonly over: AbortSignal },
): Promise<Followed> {
  const watching = { spec, host, scope, runId, signal: over };
  let place = after;
  let told = false;
  return await retryWhileUnavailable(host.clock, over, async () => {
    const run = await fullStore(spec)?.runs?.getRun(scope, runId);
    // The events of an attached run stay in its process, so from here only its end can be waited for.
    if (run?.mode === 'attached' && host.logs.get(runId, scope) === undefined) {
      return { snapshot: await waitForRun(watching), told };
    }
    for await (const event of watchRun(watching, place)) {
      if (event.type === 'end') return { snapshot: event.snapshot as Snapshot, told };
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
    return { told };
  }).catch((error: unknown) => {
    if (isWaymarkError(error) && error.status === 'NOT_FOUND') return { told };
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
      : await fullStore(spec)?.runs?.getRequest(requestKey(scope, requestId));
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
