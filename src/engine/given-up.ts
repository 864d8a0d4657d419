import type { AgentHost } from '../agent/persistence/host.ts';
import type { AgentStore } from '../agent/spec/spec.ts';
import { publicMessageOf, toWaymarkError, WaymarkError } from '../core/error.ts';
import { toJson } from '../core/json/json.ts';
import { backoff } from '../core/time.ts';
import type { RunRecord, RunRef } from '../store/contract/store.ts';

/** Number of crashes after which a run moves to the dead-letter queue. */
export const defaultAttempts = 3;

/** Rejects an invalid number of attempts. */
export function checkAttempts(attempts: number): number {
  if (Number.isSafeInteger(attempts) && attempts > 0) return attempts;
  throw new WaymarkError(
    'INVALID_ARGUMENT',
    `\`attempts\` of the engine must be a positive integer, not ${String(attempts)}.`,
  );
}

/** The error of a run that has crashed its process too often; `undefined` while it may be retried. */
export function givenUpError(
  { crashes = [] }: RunRecord,
  attempts: number,
): WaymarkError | undefined {
  if (crashes.length < attempts) return undefined;
  const details = {
    deadLetter: true,
    attempts: crashes.map(({ attempt, lastSeenAt }) => ({
      attempt,
      error: `The process died or lost its connection: no sign of life after ${lastSeenAt}.`,
    })),
  };
  return new WaymarkError(
    'INTERNAL',
    `The run has failed: its process died ${crashes.length} times without progress. Fix the cause, then retry the run; see \`details.attempts\`.`,
    { details: toJson(details, 'details') },
  );
}

/** Failed saves of one run after which the next attempt only marks it as failed. */
const maxSaveFailures = 5;

/** The longest pause before another attempt, in milliseconds. */
const maxPauseMs = 60_000;

/** The last save error of a run, and the number of consecutive failures. */
interface SaveFailure {
  readonly times: number;
  readonly error: unknown;
}

/**
 * The runs of this process whose result could not be saved. Each attempt calls the model again, so a store that rejects a
 * result must not be retried without limit.
 */
interface SaveFailures {
  of(runId: string): SaveFailure | undefined;
  note(runId: string, error: unknown): void;
  forget(runId: string): void;
  /** Waits before another attempt with exponential backoff, and keeps the claim. Resolves to whether this process still holds it. */
  rest(trouble: SaveFailure, store: AgentStore, ref: RunRef): Promise<boolean>;
}

export function createSaveFailures({ clock, ttl, closing }: AgentHost): SaveFailures {
  const known = new Map<string, SaveFailure>();
  return {
    of: (runId) => known.get(runId),
    note(runId, error) {
      known.set(runId, { times: (known.get(runId)?.times ?? 0) + 1, error });
    },
    forget: (runId) => void known.delete(runId),
    async rest({ times }, store, ref) {
      // Waiting for the claim to expire was the first pause.
      const pause = times < 2 ? 0 : backoff(times, { baseMs: ttl, maxMs: maxPauseMs });
      const end = clock.now() + pause;
      while (clock.now() < end) {
        try {
          await clock.sleep(Math.min(ttl / 3, end - clock.now()), closing);
        } catch {
          // Release the claim, so that another worker need not wait for it to expire.
          await store.runs?.handOver(ref).catch(() => {});
          return false;
        }
        if ((await store.runs?.heartbeat(ref)) === 'lost') return false;
      }
      return true;
    },
  };
}

/** The error of a run whose result could not be saved too often; `undefined` while it may be retried. */
export function givenUp(trouble: SaveFailure | undefined): WaymarkError | undefined {
  if (trouble === undefined || trouble.times < maxSaveFailures) return undefined;
  const failure = toWaymarkError(trouble.error);
  const told = (message: string): string =>
    `The run has failed after ${trouble.times} attempts whose result could not be saved: ${message}`;
  return new WaymarkError(failure.status, told(failure.message), {
    cause: trouble.error,
    publicMessage: told(publicMessageOf(failure)),
  });
}
