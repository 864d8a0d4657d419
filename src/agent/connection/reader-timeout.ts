import type { Clock } from '../../core/time/clock.ts';

/** How long a turn waits for a caller that reads nothing. */
const timeoutMs = 5 * 60_000;

/** Watches sends that wait for a slow caller. */
export interface ReaderTimeout {
  /** Watches one more send until it is done. */
  watch(sent: Promise<void>): void;
  /** Stops watching. */
  end(): void;
}

/** Calls `giveUp` when sends have waited for the timeout and the caller has read nothing meanwhile. */
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
    else if (clock.now() - lastTaken >= timeoutMs) giveUp();
  };
  const taken = (): void => {
    waiting--;
    lastTaken = clock.now();
  };
  return {
    watch(sent) {
      if (waiting++ === 0) lastTaken = clock.now();
      // One interval for all sends: a timer for each chunk would cost more than the chunk.
      stopLooking ??= clock.every(timeoutMs / 10, look);
      sent.then(taken, taken);
    },
    end,
  };
}
