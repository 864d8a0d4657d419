import type { AgentHost } from '../agent/persistence/host.ts';
import { publicMessageOf, toWaymarkError, WaymarkError } from '../core/error.ts';
import { backoff } from '../core/time/backoff.ts';
import type { RunRef, Store } from '../store/contract/store.ts';

/** Attempts of one run whose end could not be saved; the next one only writes that it failed. */
const maxTroubles = 5;

/** The longest pause before another attempt, in milliseconds. */
const longestPause = 60_000;

/** What went wrong with a run here, and how often in a row. */
export interface Trouble {
  readonly times: number;
  readonly error: unknown;
}

/**
 * The runs of this process whose end could not be saved. Each attempt asks its models again, so a store that refuses what a
 * run has come to must not be tried for ever.
 */
export interface Troubles {
  of(runId: string): Trouble | undefined;
  note(runId: string, error: unknown): void;
  forget(runId: string): void;
  /** Waits before another attempt, longer each time, and keeps the claim. Gives whether the run is still this process's. */
  rest(trouble: Trouble, store: Store, ref: RunRef): Promise<boolean>;
}

export function createSaveFailures({ clock, ttl, closing }: AgentHost): Troubles {
  const known = new Map<string, Trouble>();
  return {
    of: (runId) => known.get(runId),
    note(runId, error) {
      known.set(runId, { times: (known.get(runId)?.times ?? 0) + 1, error });
    },
    forget: (runId) => void known.delete(runId),
    async rest({ times }, store, ref) {
      // The claim that expired was the first pause.
      const pause = times < 2 ? 0 : backoff(times, { baseMs: ttl, maxMs: longestPause });
      const end = clock.now() + pause;
      while (clock.now() < end) {
        try {
          await clock.sleep(Math.min(ttl / 3, end - clock.now()), closing);
        } catch {
          // Somebody else need not wait for the claim to expire.
          await store.runs?.handOver(ref).catch(() => {});
          return false;
        }
        if ((await store.runs?.heartbeat(ref)) === 'lost') return false;
      }
      return true;
    },
  };
}

/** What a run ends with when its end could not be saved too often; `undefined` while it is worth another attempt. */
export function givenUp(trouble: Trouble | undefined): WaymarkError | undefined {
  if (trouble === undefined || trouble.times < maxTroubles) return undefined;
  const failure = toWaymarkError(trouble.error);
  const told = (message: string): string =>
    `The run was given up after ${trouble.times} attempts whose end could not be saved: ${message}`;
  return new WaymarkError(failure.status, told(failure.message), {
    cause: trouble.error,
    publicMessage: told(publicMessageOf(failure)),
  });
}
