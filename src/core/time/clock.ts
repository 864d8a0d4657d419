import { abortError } from '../async/signal.ts';

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
