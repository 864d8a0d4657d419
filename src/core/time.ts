import { abortError, type LinkedSignal, linkSignals } from './async/signal.ts';
import { WaymarkError } from './error.ts';
import { randomBytes } from './platform.ts';

/** A clock; replace it in tests. */
export interface Clock {
  /** Milliseconds since the epoch. */
  now(): number;
  /** Resolves after some time; rejects as soon as the signal aborts. */
  sleep(ms: number, signal?: AbortSignal): Promise<void>;
  /** Calls a function again and again until the returned function is called; never keeps a process alive. */
  every(ms: number, fn: () => void): () => void;
}

// setTimeout takes a 32-bit delay and fires at once when it is larger.
const longest = 2 ** 31 - 1;

/** The system clock. */
export const systemClock: Clock = {
  now: () => Date.now(),
  sleep,
  every(ms, fn) {
    const timer: unknown = setInterval(fn, Math.min(ms, longest));
    unref(timer);
    return () => clearInterval(timer as ReturnType<typeof setInterval>);
  },
};

// Someone waits for a sleep, so it keeps the process alive.
function sleep(ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    if (signal?.aborted) return reject(abortError(signal));
    let timer: ReturnType<typeof setTimeout>;
    const onAbort = (): void => {
      clearTimeout(timer);
      signal?.removeEventListener('abort', onAbort);
      if (signal) reject(abortError(signal));
    };
    const wait = (left: number): void => {
      timer = setTimeout(
        () => {
          if (left > longest) return wait(left - longest);
          signal?.removeEventListener('abort', onAbort);
          resolve();
        },
        Math.min(left, longest),
      );
    };
    signal?.addEventListener('abort', onAbort);
    wait(ms);
  });
}

// In a browser a timer is a number and there is nothing to release.
function unref(timer: unknown): void {
  if (typeof timer !== 'object' || timer === null) return;
  if ('unref' in timer && typeof timer.unref === 'function') timer.unref();
}

/**
 * Calls a function once, after some time. Returns a function that cancels the call.
 *
 * @example
 * const cancel = after(clock, 5_000, () => socket.terminate());
 * socket.once('close', cancel);
 */
export function after(
  clock: Clock,
  ms: number,
  fn: () => void,
  {
    keepAlive = false,
  }: {
    /** Whether the timer keeps the process alive, for work that a caller awaits. @default false */
    readonly keepAlive?: boolean;
  } = {},
): () => void {
  if (keepAlive) {
    const cancelled = new AbortController();
    clock.sleep(ms, cancelled.signal).then(fn, () => {});
    return () => cancelled.abort();
  }
  const stop = clock.every(ms, () => {
    stop();
    fn();
  });
  return stop;
}

/** A signal that aborts with DEADLINE_EXCEEDED after some time, or with the given one. Release it when the work is done. */
export function timeoutSignal(clock: Clock, ms: number, signal?: AbortSignal): LinkedSignal {
  const linked = linkSignals(signal);
  if (linked.signal.aborted) return linked;
  const expired = (): void =>
    linked.abort(new WaymarkError('DEADLINE_EXCEEDED', `Not done within ${ms} ms.`));
  const cancel = after(clock, ms, expired, { keepAlive: true });
  linked.signal.addEventListener('abort', cancel, { once: true });
  const { release } = linked;
  linked.release = () => {
    cancel();
    release();
  };
  return linked;
}

/** Waits for a promise; rejects with the given error if that takes too long. */
export async function withTimeout<T>(
  promise: Promise<T>,
  { clock, ms, error }: { readonly clock: Clock; readonly ms: number; readonly error: () => Error },
): Promise<T> {
  const late = Promise.withResolvers<never>();
  const cancel = after(clock, ms, () => late.reject(error()));
  try {
    return await Promise.race([promise, late.promise]);
  } finally {
    cancel();
  }
}

/** Waits until a promise settles, but not longer than this. A rejection is passed on. */
export async function waitAtMost(
  clock: Clock,
  ms: number,
  promise: Promise<unknown>,
): Promise<void> {
  const late = Promise.withResolvers<void>();
  const cancel = after(clock, ms, late.resolve, { keepAlive: true });
  try {
    await Promise.race([promise, late.promise]);
  } finally {
    cancel();
  }
}

export interface BackoffOptions {
  /** Milliseconds before the second attempt. */
  readonly baseMs: number;
  /** The longest delay in milliseconds. */
  readonly maxMs: number;
  /** Returns a number from 0 to 1 that shortens the delay by up to half, so that many clients do not retry together. */
  readonly jitter?: (() => number) | undefined;
}

/** Milliseconds to wait after a failed attempt, counted from 1: doubles with each attempt up to the limit. */
export function backoff(attempt: number, { baseMs, maxMs, jitter }: BackoffOptions): number {
  const delay = Math.min(baseMs * 2 ** (attempt - 1), maxMs);
  return jitter === undefined ? delay : delay * (0.5 + jitter() / 2);
}

/** A random number from 0 to 1, fine enough for {@link BackoffOptions.jitter}. */
export function randomFraction(): number {
  const [byte = 0] = randomBytes(new Uint8Array(1));
  return byte / 255;
}
