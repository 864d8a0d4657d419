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

let lastLook = 0;

/** The clock of the machine, but no two looks give the same time: what is written does not depend on how fast it is. */
export const tickingClock: Clock = {
  ...systemClock,
  now() {
    lastLook = Math.max(lastLook + 1, systemClock.now());
    return lastLook;
  },
};
