import { isReported, markReported } from '../../agent/contract/error-reports.ts';
import { type ErrorBody, isWaymarkError, messageOf, WaymarkError } from '../../core/error.ts';
import { defined } from '../../core/json/json.ts';

/** One line of the server's log: plain data, ready for JSON. */
export interface LogEntry {
  /** How severe it is. */
  readonly level: 'info' | 'warn' | 'error';
  /** Milliseconds since the epoch. */
  readonly time: number;
  /** The event. */
  readonly msg: string;
  readonly [field: string]: unknown;
}

/** Takes the server's log; must not throw. */
export type Log = (entry: LogEntry) => void;

/** Writes an entry with the current time. */
export type ServerLog = (
  level: LogEntry['level'],
  msg: string,
  fields: Readonly<Record<string, unknown>>,
) => void;

/** A log that writes one JSON object per line. */
export function jsonLines(write: (line: string) => void): Log {
  return (entry) => write(`${JSON.stringify(entry)}\n`);
}

/** A log for a terminal: time, message, and the other fields as `name=value`. */
export function readableLines(write: (line: string) => void): Log {
  return ({ level, time, msg, ...fields }) => {
    const clock = new Date(time).toISOString().slice(11, 19);
    const rest = Object.entries(fields)
      .filter(([, value]) => value !== undefined)
      .map(
        ([name, value]) =>
          `${name}=${typeof value === 'string' ? plain(value) : JSON.stringify(value)}`,
      );
    const mark = level === 'info' ? '' : `${level} `;
    write(`${[`${clock} ${mark}${plain(msg)}`, ...rest].join(' ')}\n`);
  };
}

// Text of clients must not move the cursor or change colors.
function plain(text: string): string {
  return /^[\x21-\x7e]+( [\x21-\x7e]+)*$/.test(text) ? text : JSON.stringify(text);
}

/** The fields of a thrown value for the log; never for a client. */
export function describeError(error: unknown, depth = 8): Record<string, unknown> {
  if (!(error instanceof Error)) return { type: typeof error, message: messageOf(error) };
  const { name, message, stack, cause } = error;
  const status = isWaymarkError(error) ? error.status : undefined;
  const inner = cause === undefined || depth === 0 ? undefined : describeError(cause, depth - 1);
  return defined({ name, status, message, stack, cause: inner });
}

/**
 * Logs an error that is answered to a client, where the answer does not say all of it. What the app has reported is in the
 * log already.
 */
export function logFault(
  { log }: { readonly log: ServerLog },
  error: unknown,
  fields: Readonly<Record<string, unknown>> = {},
): void {
  if (!isFault(error) || isReported(error)) return;
  log('error', 'failed', { ...fields, error: describeError(error) });
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
