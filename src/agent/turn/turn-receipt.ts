import { toErrorBody } from '../../core/error.ts';
import { contentHash } from '../../core/json/hash.ts';
import type { RequestOutcome } from '../../store/contract/store.ts';
import { type Receipt, storedReceipt } from '../persistence/receipt.ts';
import { fullStore } from '../spec/spec.ts';
import type { ActiveRun } from './active-run.ts';
import type { HandlerResult } from './invocation-output.ts';
import type { InvocationState } from './invocation-state.ts';

/** The receipt that is stored with the end of a run, for later requests with the same request ids. */
export function receiptFor(
  { keys }: ActiveRun,
  receipt: () => Receipt,
): { readonly requests?: RequestOutcome } {
  return keys.length === 0 ? {} : { requests: { keys, receipt: storedReceipt(receipt()) } };
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
    ...(ids.length > 0 && { snapshotIds: ids }),
    ...(fallbackSnapshotId !== undefined && { snapshotId: fallbackSnapshotId }),
    ...(failure === undefined && message && { message }),
    ...(failure === undefined && output !== undefined && { output }),
    ...(result && { artifacts: [...(result.artifacts ?? [])] }),
    ...(failure && { error: toErrorBody(failure), finishReason: 'failed' as const }),
  };
  const stored = storedReceipt(now);
  if (contentHash(stored) === contentHash(storedReceipt(told))) return;
  await fullStore(spec)
    ?.runs?.replaceReceipt(run.runId, { keys: run.keys, receipt: stored })
    .catch((error: unknown) => invocation.failures.report(error, 'store'));
}
