import { lifelongController } from '../../core/async/signal.ts';
import { WaymarkError } from '../../core/error.ts';
import type { Clock } from '../../core/time/clock.ts';
import { waitAtMost } from '../../core/time/timers.ts';

/** A server's life from the first request to the last stream. */
export interface Lifetime {
  /** Aborts when the server begins to shut down: idle connections end now. */
  readonly closing: AbortSignal;
  /** Aborts when running turns have had their time: all streams end, so that their clients reconnect to another server. */
  readonly ending: AbortSignal;
  /** `UNAVAILABLE` once the server is shutting down. */
  checkOpen(): void;
  /** Keeps the end waiting for this piece of work. */
  track<T>(work: Promise<T>): Promise<T>;
  /** Refuses new work, lets what runs finish for at most `graceMs`, then ends the streams. */
  end(graceMs: number): Promise<void>;
}

/** A lifetime that has just begun. */
export function createLifetime(clock: Clock): Lifetime {
  const closing = lifelongController();
  const ending = lifelongController();
  const running = new Set<Promise<unknown>>();

  const settled = async (): Promise<void> => {
    while (running.size > 0) await Promise.allSettled(running);
  };

  return {
    closing: closing.signal,
    ending: ending.signal,
    checkOpen() {
      if (closing.signal.aborted) throw shuttingDown();
    },
    track(work) {
      running.add(work);
      const done = (): boolean => running.delete(work);
      work.then(done, done);
      return work;
    },
    async end(graceMs) {
      closing.abort(shuttingDown());
      await waitAtMost(clock, graceMs, settled());
      ending.abort(shuttingDown());
    },
  };
}

function shuttingDown(): WaymarkError {
  return new WaymarkError(
    'UNAVAILABLE',
    'This server is shutting down. Try again. To follow a running turn, watch it by its id.',
    { details: { retryAfter: 1 } },
  );
}
