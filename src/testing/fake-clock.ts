import { abortError } from '../core/async/signal.ts';
import { WaymarkError } from '../core/error.ts';
import type { Clock } from '../core/time.ts';

/** A clock that only moves when a test advances it. */
export interface FakeClock extends Clock {
  /** Advances the time and fires due timers in order; resolves after their callbacks have run. */
  advance(ms: number): Promise<void>;
  /** Number of pending sleeps and intervals. */
  readonly waiting: number;
}

interface Timer {
  due: number;
  /** Set for an interval, which repeats. */
  readonly every?: number;
  readonly wake: () => void;
}

/**
 * Creates a clock for tests that starts at a date, an ISO string, or milliseconds since the epoch.
 *
 * @example
 * const clock = fakeClock('2026-01-01');
 * const app = waymark({ store: memoryStore({ clock }), clock });
 * await clock.advance(60_000);
 */
export function fakeClock(start: Date | string | number = 0): FakeClock {
  let now = new Date(start).getTime();
  if (Number.isNaN(now)) throw new WaymarkError('INVALID_ARGUMENT', `Not a time: ${start}.`);
  // In insertion order: timers that are due at the same time fire in the order they were set.
  const timers = new Set<Timer>();

  const nextDue = (until: number): Timer | undefined => {
    let next: Timer | undefined;
    for (const timer of timers) {
      if (timer.due <= until && (!next || timer.due < next.due)) next = timer;
    }
    return next;
  };

  return {
    now: () => now,
    get waiting() {
      return timers.size;
    },
    sleep: (ms, signal) =>
      new Promise((resolve, reject) => {
        if (signal?.aborted) return reject(abortError(signal));
        const onAbort = (): void => {
          timers.delete(timer);
          if (signal) reject(abortError(signal));
        };
        const timer: Timer = {
          due: now + Math.max(ms, 0),
          wake: () => {
            signal?.removeEventListener('abort', onAbort);
            resolve();
          },
        };
        timers.add(timer);
        signal?.addEventListener('abort', onAbort, { once: true });
      }),
    every(ms, fn) {
      // An interval of 0 ms would fire endlessly within one step.
      const timer: Timer = { due: now + Math.max(ms, 1), every: Math.max(ms, 1), wake: fn };
      timers.add(timer);
      return () => timers.delete(timer);
    },
    async advance(ms) {
      const until = now + ms;
      await settle();
      for (let timer = nextDue(until); timer; timer = nextDue(until)) {
        now = Math.max(now, timer.due);
        if (timer.every === undefined) timers.delete(timer);
        else timer.due += timer.every;
        timer.wake();
        await settle();
      }
      now = until;
    },
  };
}

// One turn of the event loop: all pending microtasks, and those they queue, have run by then.
function settle(): Promise<void> {
  return new Promise((resolve) => {
    setTimeout(resolve, 0);
  });
}
