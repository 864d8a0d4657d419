import type { Status } from '../core/error.ts';
import { backoff, randomFraction } from '../core/time/backoff.ts';
import type { ReconnectOptions } from './options.ts';

/** When to try again, and when to give up. */
export interface Reconnect {
  /** Milliseconds of silence after which a stream counts as dropped. */
  readonly idleTimeout: number;
  /** How long to wait before a try, from 1 on; `undefined` when it is one too many. */
  delayOf(attempt: number): number | undefined;
}

export function toReconnect(options: ReconnectOptions | false): Reconnect {
  const {
    attempts = 10,
    delay = 200,
    maxDelay = 10_000,
    idleTimeout = 60_000,
  } = options || { attempts: 0 };
  return {
    idleTimeout,
    delayOf(attempt) {
      if (attempt > attempts) return undefined;
      return backoff(attempt, { baseMs: delay, maxMs: maxDelay, jitter: randomFraction });
    },
  };
}

const passing: ReadonlySet<Status> = new Set([
  'UNAVAILABLE',
  'DEADLINE_EXCEEDED',
  'RESOURCE_EXHAUSTED',
  'INTERNAL',
  'UNKNOWN',
]);

/** Whether the same request may well succeed a little later. */
export function isPassing(status: Status): boolean {
  return passing.has(status);
}
