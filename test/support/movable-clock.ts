import { abortError } from '../../src/core/async/signal.ts';
import { type Clock, systemClock } from '../../src/core/time.ts';

/** How often timers compare the clock with their time, in milliseconds. */
const pollInterval = 10;

/** The clock of the machine plus an offset. Timers follow it: they fire as soon as the offset has grown past their time. */
export function clockAhead(ahead: () => number): Clock {
  const now = (): number => systemClock.now() + ahead();
  return {
    now,
    async sleep(ms, signal) {
      const end = now() + ms;
      if (signal?.aborted) throw abortError(signal);
      do await systemClock.sleep(Math.min(pollInterval, Math.max(0, end - now())), signal);
      while (now() < end);
    },
    every(ms, fn) {
      let next = now() + ms;
      return systemClock.every(Math.min(ms, pollInterval), () => {
        if (now() < next) return;
        next = now() + ms;
        fn();
      });
    },
  };
}

/** The clock of the machine, which a test may put forward. */
export function movableClock(): { readonly clock: Clock; readonly advance: (ms: number) => void } {
  let ahead = 0;
  return {
    clock: clockAhead(() => ahead),
    advance: (ms) => {
      ahead += ms;
    },
  };
}

let lastLook = 0;

/** The clock of the machine, but no two looks give the same time: what is written does not depend on how fast it is. */
export const tickingClock: Clock = {
  ...systemClock,
  now() {
    lastLook = Math.max(lastLook + 1, systemClock.now());
    return lastLook;
  },
};
