import { isWaymarkError, messageOf } from '../../core/error.ts';

/** One line of the server's log: plain data, ready for JSON. */
export interface LogEntry {
  readonly level: 'info' | 'warn' | 'error';
  /** Milliseconds since the epoch. */
  readonly time: number;
  readonly msg: string;
  readonly [field: string]: unknown;
}

/** Takes the server's log; must not throw. */
export type Log = (entry: LogEntry) => void;

/** A log that writes one JSON object per line. */
export function jsonLines(write: (line: string) => void): Log {
  return (entry) => write(`${JSON.stringify(entry)}\n`);
}

/** What of a thrown value goes into the log; never to a client. */
export function describeError(error: unknown, depth = 8): Record<string, unknown> {
  if (!(error instanceof Error)) return { type: typeof error, message: messageOf(error) };
  const { name, message, stack, cause } = error;
  const status = isWaymarkError(error) ? { status: error.status } : {};
  const inner =
    cause === undefined || depth === 0 ? {} : { cause: describeError(cause, depth - 1) };
  return { name, ...status, message, stack, ...inner };
}
