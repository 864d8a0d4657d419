import type { Clock } from '../../core/time/clock.ts';

/** How long a turn waits for a reader that takes nothing. */
const patienceMs = 5 * 60_000;

/** Looks after sends that wait for a reader, which may be slow but not away. */
export interface ReaderTimeout {
  /** Looks after one more send, until it is done. */
  watch(sent: Promise<void>): void;
  /** Stops looking. */
  end(): void;
}

/** Calls `giveUp` when sends have waited too long and none of them was taken meanwhile. */
export function createReaderTimeout(clock: Clock, giveUp: () => void): ReaderTimeout {
  let waiting = 0;
  let lastTaken = 0;
  let stopLooking: (() => void) | undefined;

  const end = (): void => {
    stopLooking?.();
    stopLooking = undefined;
  };
  const look = (): void => {
    if (waiting === 0) end();
    else if (clock.now() - lastTaken >= patienceMs) giveUp();
  };
  const taken = (): void => {
    waiting--;
    lastTaken = clock.now();
  };
  return {
    watch(sent) {
      if (waiting++ === 0) lastTaken = clock.now();
      // Now and then: a timer for each chunk that waits would cost more than the chunk.
      stopLooking ??= clock.every(patienceMs / 10, look);
      sent.then(taken, taken);
    },
    end,
  };
}
