import { type LinkedSignal, linkSignals } from '../async/signal.ts';
import { WaymarkError } from '../error.ts';
import type { Clock } from './clock.ts';

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
