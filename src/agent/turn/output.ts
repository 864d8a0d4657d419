import { toErrorBody } from '../../core/error.ts';
import { contentHash } from '../../core/json/hash.ts';
import { defined, type Json, toJson } from '../../core/json/json.ts';
import { parseArtifact, parseMessage, parseShape } from '../../protocol/parse.ts';
import type { State } from '../../protocol/state.ts';
import { finishReason as finishReasonShape, type Output } from '../../protocol/turn.ts';
import { toPlainState } from '../../session/session-state.ts';
import type { RequestOutcome } from '../../store/contract/store.ts';
import type { AgentResult } from '../contract/handler.ts';
import { signState } from '../persistence/client-state.ts';
import { type Receipt, storedReceipt } from '../persistence/receipt.ts';
import { transformAnswer, transformError, transformState } from '../persistence/transform.ts';
import type { InvocationState } from './invocation-state.ts';
import { type ActiveRun, usageOf } from './turn-state.ts';

export interface HandlerResult extends Omit<AgentResult, 'output'> {
  readonly output?: Json;
}

export function parseResult(result: AgentResult | undefined): HandlerResult | undefined {
  if (result === undefined) return undefined;
  const { message, artifacts, output, finishReason } = result;
  return defined({
    message: message && parseMessage(message),
    artifacts: artifacts?.map(parseArtifact),
    output: output === undefined ? undefined : toJson(output, 'The output of the handler'),
    finishReason:
      finishReason && parseShape(finishReasonShape, finishReason, 'finish reason of the handler'),
  });
}

/** The output of an invocation, after its transforms. */
export function outputOf(invocation: InvocationState, result: HandlerResult | undefined): Output {
  const { spec, control, position, progress, lineage, working, transform } = invocation;
  const { failure, last } = invocation.ending;
  const { snapshotIds } = progress;
  const { fallbackSnapshotId } = lineage;
  const { message, artifacts } = result ?? invocation.result();
  const answer = failure === undefined ? { message, output: result?.output ?? last?.output } : {};
  const whole = (): State => toPlainState(working.state, { sessionId: position.sessionId });
  const state = spec.store === undefined ? clientHeld(invocation) : undefined;
  // A stop between two turns changes nothing about the one that has ended.
  const ended = last?.finishReason ?? (control.cause && 'aborted');
  const finishReason = failure === undefined ? ended : 'failed';
  return defined({
    sessionId: position.sessionId,
    snapshotId: fallbackSnapshotId,
    snapshotIds: snapshotIds.length > 0 ? [...snapshotIds] : undefined,
    state,
    ...transformAnswer(transform, whole, {
      ...answer,
      artifacts,
      snapshotId: fallbackSnapshotId,
    }),
    finishReason,
    usage: usageOf(progress),
    // Callers in this process get message, stack and cause. As JSON it has only what remote clients may see.
    error: failure && transformError(transform, failure),
  });
}

function clientHeld({
  spec,
  host,
  request: { owner },
  position: { sessionId },
  working,
  transform,
}: InvocationState): State | undefined {
  const state = transformState(transform, toPlainState(working.state, { sessionId }));
  if (state === undefined || spec.clientState === undefined) return state;
  const subject = { agent: spec.name, owner, now: host.clock.now() };
  return { ...state, seal: signState(spec.clientState, subject, state) };
}

/** The receipt that is stored with the end of a run, for later requests with the same request ids. */
export function receiptFor(
  { keys }: ActiveRun,
  receipt: () => Receipt,
): { readonly requests?: RequestOutcome } {
  return keys.length === 0 ? {} : { requests: { keys, receipt: storedReceipt(receipt()) } };
}

export function turnReceipt(
  { position, progress }: InvocationState,
  end: Omit<Receipt, 'turnIndex' | 'snapshotIds'>,
  madeNow: readonly string[] = [],
): Receipt {
  const ids = [...progress.snapshotIds.slice(progress.turnSnapshots), ...madeNow];
  return { turnIndex: position.turnIndex, snapshotIds: ids.length > 0 ? ids : undefined, ...end };
}

/**
 * At the end of an invocation: what its handler returned or changed after the last turn belongs to the output, and so to the
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
  // Most receipts are complete already.
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
    snapshotIds: ids.length > 0 ? ids : undefined,
    snapshotId: fallbackSnapshotId,
    message: failure ? undefined : message,
    output: failure ? undefined : output,
    ...(result && { artifacts: [...(result.artifacts ?? [])] }),
    ...(failure && { error: toErrorBody(failure), finishReason: 'failed' as const }),
  };
  const stored = storedReceipt(now);
  if (contentHash(stored) === contentHash(storedReceipt(told))) return;
  await spec.store?.runs
    ?.replaceReceipt(run.runId, { keys: run.keys, receipt: stored })
    .catch((error: unknown) => invocation.failures.report(error, 'store'));
}
