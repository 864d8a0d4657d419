import { isStatus, isWaymarkError, WaymarkError } from '../core/error.ts';
import type { Output } from '../protocol/turn.ts';
import { describeOutput, type OutputAccessors } from './describe.ts';

/**
 * A failed turn. The status and message are those of the original error, which is the `cause`; `output` is the output
 * of the turn, with the last good snapshot.
 *
 * @example
 * try {
 *   await chat.run('Hello');
 * } catch (error) {
 *   if (isTurnError(error)) await chat.restore(error.output);
 * }
 */
export class TurnError<Result extends Output = Output> extends WaymarkError {
  /** The output of the failed turn, with the last good snapshot. */
  declare readonly output: Result & OutputAccessors;

  constructor(output: Result) {
    const { error } = output;
    const status = isStatus(error?.status) ? error.status : 'UNKNOWN';
    super(status, error?.message ?? 'The turn failed.', {
      details: error?.details,
      cause: causeOf(error),
      publicMessage: isWaymarkError(error) ? error.publicMessage : undefined,
    });
    // Not enumerable: a printed error shows its message and stack only.
    Object.defineProperty(this, 'output', { value: describeOutput(output) });
  }
}

Object.defineProperty(TurnError.prototype, 'name', { value: 'TurnError' });

/** Whether a thrown value is a `TurnError`, also from another copy of this package. */
export function isTurnError(error: unknown): error is TurnError {
  return isWaymarkError(error) && error.name === 'TurnError' && 'output' in error;
}

/** Rejects with a {@link TurnError} if the turn failed. */
export function throwIfFailed<Result extends Output>(output: Result): Result {
  if (output.finishReason === 'failed') throw new TurnError(output);
  return output;
}

// In this process the error of an output is the one that was thrown, or wraps it.
function causeOf(error: Output['error']): unknown {
  if (!(error instanceof Error)) return undefined;
  return error.cause ?? error;
}
