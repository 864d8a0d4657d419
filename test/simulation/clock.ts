import { abortError } from '../../src/core/async/signal.ts';
import type { Clock } from '../../src/core/time.ts';
import type { Actor, Scheduler } from './scheduler.ts';

/** The clock of an actor: its timers end with it. */
export function clockOf(actor: Actor, scheduler: Scheduler, skew = 0): Clock {
  return {
    now: () => scheduler.now + skew,
    sleep: (ms, signal) =>
      new Promise((resolve, reject) => {
        if (signal?.aborted) return reject(abortError(signal));
        const onAbort = (): void => {
          cancel();
          if (signal) reject(abortError(signal));
        };
        const cancel = scheduler.timer(actor, ms, () => {
          signal?.removeEventListener('abort', onAbort);
          resolve();
        });
        signal?.addEventListener('abort', onAbort, { once: true });
      }),
    every: (ms, fn) => scheduler.timer(actor, ms, fn, true),
  };
}
