import { type Clock, systemClock } from '../../src/core/clock.ts';

/** The clock of the machine, which a test may put forward. Waiting still takes real time. */
export function movableClock(): { readonly clock: Clock; readonly advance: (ms: number) => void } {
  let ahead = 0;
  return {
    clock: { ...systemClock, now: () => systemClock.now() + ahead },
    advance: (ms) => {
      ahead += ms;
    },
  };
}
