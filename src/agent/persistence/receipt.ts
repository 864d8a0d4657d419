import * as v from 'valibot';
import type { Json } from '../../core/json/json.ts';
import { parseShape } from '../../protocol/parse.ts';
import type { Snapshot } from '../../protocol/snapshot.ts';
import type { State } from '../../protocol/state.ts';
import { type Output, output as outputShape } from '../../protocol/turn.ts';
import type { RequestRecord } from '../../store/contract/store.ts';
import type { Transform } from '../contract/spec.ts';
import { transformAnswer, transformError } from './transform.ts';

const { sessionId: _sessionId, state: _state, ...kept } = outputShape.entries;

/**
 * The stored part of an output, before transforms. Artifacts only where a handler gave its own; else they are
 * read from the snapshot, because a receipt must not grow with the state of the session.
 */
const receiptShape = v.object({ ...kept, turnIndex: v.number() });

interface StoredReceipt extends v.InferOutput<typeof receiptShape> {}

/** A receipt before it is stored: fields may be undefined. */
export type Receipt = {
  readonly [Name in keyof StoredReceipt]: StoredReceipt[Name] | undefined;
};

/** A receipt as JSON; what is undefined in it is left out. */
export function storedReceipt(receipt: Receipt): Json {
  return JSON.parse(JSON.stringify(receipt));
}

export function receiptOf({ receipt }: RequestRecord): StoredReceipt | undefined {
  return receipt === undefined ? undefined : parseShape(receiptShape, receipt, 'receipt');
}

/** The output of a run, after its transforms. `snapshot` is the one that the run ended with, if it still exists. */
export function outputOfReceipt(
  transform: Transform,
  { turnIndex: _, ...receipt }: StoredReceipt,
  sessionId: string,
  snapshot: Snapshot | undefined,
): Output {
  const { message, artifacts = snapshot?.state?.artifacts, output, error, ...rest } = receipt;
  const state = (): State => snapshot?.state ?? {};
  return {
    sessionId,
    ...rest,
    ...transformAnswer(transform, state, {
      message,
      artifacts,
      output,
      snapshotId: receipt.snapshotId,
    }),
    ...(error && { error: transformError(transform, error) }),
  };
}
