import * as v from 'valibot';
import { toErrorBody } from '../../core/error.ts';
import { contentHash } from '../../core/json/hash.ts';
import type { Json } from '../../core/json/json.ts';
import { parseShape } from '../../protocol/parse.ts';
import type { Snapshot } from '../../protocol/snapshot.ts';
import type { State } from '../../protocol/state.ts';
import { type Output, output as outputShape } from '../../protocol/turn.ts';
import type { RequestOutcome, RequestRecord } from '../../store/contract/store.ts';
import type { HandlerResult } from '../spec/output.ts';
import { type AgentSpec, fullStore } from '../spec/spec.ts';
import type { ActiveRun, InvocationState } from '../turn/invocation-state.ts';
import { transformState } from './transform.ts';

const { sessionId: _sessionId, state: _state, ...kept } = outputShape.entries;

/**
 * What is kept of an output, before it goes through transforms. Artifacts only where a handler gave its own; else they are
 * read from the snapshot, because a receipt must not grow with the state of the session.
 */
const receiptShape = v.object({ ...kept, turnIndex: v.number() });

export interface Receipt extends v.InferOutput<typeof receiptShape> {}

/** What a commit that ends a run says to those who ask again under its request ids; nothing where it has none. */
export function receiptFor(
  { keys }: ActiveRun,
  receipt: () => Receipt,
): { readonly requests?: RequestOutcome } {
  return keys.length === 0 ? {} : { requests: { keys, receipt: toStored(receipt()) } };
}

/** The receipt of a turn that is about to end. */
export function turnReceipt(
  { position, progress }: InvocationState,
  end: Omit<Receipt, 'turnIndex' | 'snapshotIds'>,
  madeNow: readonly string[] = [],
): Receipt {
  const ids = [...progress.snapshotIds.slice(progress.turnSnapshots), ...madeNow];
  return { turnIndex: position.turnIndex, ...(ids.length > 0 && { snapshotIds: ids }), ...end };
}

/**
 * At the end of an invocation: what its handler gave back, or did behind its last turn, belongs to the output, and so to the
 * receipt of that turn.
 */
export async function completeReceipt(
  invocation: InvocationState,
  result: HandlerResult | undefined,
): Promise<void> {
  const { spec, lineage, progress } = invocation;
  const { receipt, failure, last } = invocation.ending;
  const { fallbackSnapshotId } = lineage;
  const { snapshotIds } = progress;
  if (receipt === undefined) return;
  const { run, told, from } = receipt;
  const made = snapshotIds.length - from;
  // Most turns have told everything.
  if (result === undefined && failure === undefined && made === (told.snapshotIds?.length ?? 0)) {
    return;
  }
  const { message } = result ?? invocation.result();
  const { message: _, output: __, snapshotId: ___, snapshotIds: ____, ...same } = told;
  const output = result?.output ?? last?.output;
  const ids = snapshotIds.slice(from);
  const now: Receipt = {
    ...same,
    ...(last && { finishReason: last.finishReason }),
    ...(ids.length > 0 && { snapshotIds: ids }),
    ...(fallbackSnapshotId !== undefined && { snapshotId: fallbackSnapshotId }),
    ...(failure === undefined && message && { message }),
    ...(failure === undefined && output !== undefined && { output }),
    ...(result && { artifacts: [...(result.artifacts ?? [])] }),
    ...(failure && { error: toErrorBody(failure), finishReason: 'failed' as const }),
  };
  const stored = toStored(now);
  if (contentHash(stored) === contentHash(toStored(told))) return;
  await fullStore(spec)
    ?.runs?.replaceReceipt(run.runId, { keys: run.keys, receipt: stored })
    .catch((error: unknown) => invocation.failures.report(error, 'store'));
}

/** A receipt as JSON; what is undefined in it is left out. */
function toStored(receipt: Receipt): Json {
  return JSON.parse(JSON.stringify(receipt));
}

/** The receipt of a request, as it was stored. */
export function receiptOf({ receipt }: RequestRecord): Receipt | undefined {
  return receipt === undefined ? undefined : parseShape(receiptShape, receipt, 'receipt');
}

/** The output that was given for a run, as it may leave. `snapshot` is where the session went on from it, if it is there. */
export function outputOfReceipt(
  { transform }: AgentSpec,
  { turnIndex: _, ...receipt }: Receipt,
  sessionId: string,
  snapshot: Snapshot | undefined,
): Output {
  const { message, artifacts = snapshot?.state?.artifacts ?? [], ...rest } = receipt;
  const state: State = {
    ...snapshot?.state,
    messages: message === undefined ? [] : [message],
    artifacts,
  };
  const shown = transformState(transform, state);
  const last = shown?.messages?.at(-1);
  return {
    sessionId,
    ...rest,
    ...(last && { message: last }),
    ...(shown?.artifacts && shown.artifacts.length > 0 && { artifacts: shown.artifacts }),
  };
}
