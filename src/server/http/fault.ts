import { isReported, markReported } from '../../agent/spec/error-reports.ts';
import { type ErrorBody, isWaymarkError, WaymarkError } from '../../core/error.ts';
import { describeError } from './log.ts';
import type { ServerContext } from './server-context.ts';

/**
 * Logs an error that is answered to a client, where the answer does not say all of it. What the app has reported is in the
 * log already.
 */
export function logFault(
  { clock, log }: Pick<ServerContext, 'clock' | 'log'>,
  error: unknown,
  fields: Readonly<Record<string, unknown>> = {},
): void {
  if (!isFault(error) || isReported(error)) return;
  log({
    level: 'error',
    time: clock.now(),
    msg: 'failed',
    ...fields,
    error: describeError(error),
  });
}

/** The error for an answer, once it has been logged. */
export function fromAnswer({ status, message, details }: ErrorBody): WaymarkError {
  const error = new WaymarkError(status, message, { details });
  markReported(error);
  return error;
}

// Not what a caller did wrong, or with a message that the caller does not get.
function isFault(error: unknown): boolean {
  if (!isWaymarkError(error)) return true;
  const { status, publicMessage } = error;
  return status === 'INTERNAL' || status === 'DATA_LOSS' || publicMessage !== undefined;
}
