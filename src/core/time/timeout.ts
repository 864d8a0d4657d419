import { type LinkedSignal, linkSignals } from '../async/signal.ts';
import { WaymarkError } from '../error.ts';
import { after } from './after.ts';
import type { Clock } from './clock.ts';

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
