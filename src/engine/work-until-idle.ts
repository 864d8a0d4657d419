import { invalid } from '../core/error.ts';
import type { Clock } from '../core/time.ts';
import type { Engine, WorkOptions } from './engine.ts';

/** How long a scheduled call works, and on what. */
export interface WorkUntilIdleOptions extends WorkOptions {
  /** Milliseconds after which no further run is started. @default 50000 */
  readonly timeout?: number;
}

/** Milliseconds between two looks, and how many in a row must find nothing: a run may be between the queue and its worker. */
const pollMs = 100;
const quietPolls = 2;

/** Works on background runs until there are none, the time is over, or the app closes. */
export async function workUntilIdle(
  engine: Engine,
  {
    clock,
    running,
    closing,
  }: {
    readonly clock: Clock;
    readonly running: () => number;
    /** Aborts when the app closes: it then takes over nothing more. */
    readonly closing: AbortSignal;
  },
  { timeout = 50_000, ...options }: WorkUntilIdleOptions,
): Promise<{ readonly isIdle: boolean }> {
  if (!(timeout >= 0)) {
    throw invalid(
      `\`timeout\` of work() must be a number of milliseconds, not ${String(timeout)}.`,
    );
  }
  await engine.open?.();
  if (closing.aborted) return { isIdle: false };
  const end = clock.now() + timeout;
  engine.start(options);
  try {
    for (let quiet = 0; quiet < quietPolls; ) {
      const found = await engine.recover();
      const { running: busy, waiting = 0 } = await engine.status();
      quiet = found + busy + waiting + running() === 0 ? quiet + 1 : 0;
      if (clock.now() >= end) return { isIdle: quiet > 0 };
      await clock.sleep(Math.min(pollMs, end - clock.now()));
      if (closing.aborted) return { isIdle: false };
    }
    return { isIdle: true };
  } finally {
    engine.stop();
  }
}
