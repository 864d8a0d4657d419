import { abortError } from '../core/async/signal.ts';
import { WaymarkError } from '../core/error.ts';
import type { Clock } from '../core/time/clock.ts';

/** A clock that stands still until it is told to go on. */
export interface FakeClock extends Clock {
  /** Moves time on and wakes everything whose time has come, in order; resolves when what woke up has run. */
  advance(ms: number): Promise<void>;
  /** How many sleeps and intervals are waiting. */
  readonly waiting: number;
}

interface Timer {
  due: number;
  /** Set for an interval, which goes on. */
  readonly every?: number;
  readonly wake: () => void;
}

/** A clock for tests, standing at a time: a date, its ISO form, or milliseconds since the epoch. */
export function fakeClock(start: Date | string | number = 0): FakeClock {
  let now = new Date(start).getTime();
  if (Number.isNaN(now)) throw new WaymarkError('INVALID_ARGUMENT', `Not a time: ${start}.`);
  // In the order they were set, which is the order in which those that are due together go off.
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
      // An interval of nothing would go off for ever within one step.
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

// A turn of the event loop: everything that is ready to run, and what that makes ready, has run by then.
function settle(): Promise<void> {
  return new Promise((resolve) => {
    setTimeout(resolve, 0);
  });
}
