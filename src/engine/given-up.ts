import type { AgentStore } from '../agent/contract/spec.ts';
import type { AgentHost } from '../agent/persistence/host.ts';
import { invalid, publicMessageOf, toWaymarkError, WaymarkError } from '../core/error.ts';
import { toJson } from '../core/json/json.ts';
import { backoff } from '../core/time.ts';
import type { RunRecord, RunRef } from '../store/contract/store.ts';

/** Number of crashes after which a run moves to the dead-letter queue. */
export const defaultAttempts = 3;

export function checkAttempts(attempts: number): number {
  if (Number.isSafeInteger(attempts) && attempts > 0) return attempts;
  throw invalid(`\`attempts\` of the engine must be a positive integer, not ${String(attempts)}.`);
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

/**
 * The runs of this process whose result could not be saved, each with its last error and the number of consecutive failures.
 * Each attempt calls the model again, so a store that rejects a result must not be retried without limit.
 */
export class SaveFailures {
  readonly #host: AgentHost;
  readonly #known = new Map<string, { readonly times: number; readonly error: unknown }>();

  constructor(host: AgentHost) {
    this.#host = host;
  }

  note(runId: string, error: unknown): void {
    this.#known.set(runId, { times: (this.#known.get(runId)?.times ?? 0) + 1, error });
  }

  forget(runId: string): void {
    this.#known.delete(runId);
  }

  /** Waits before another attempt with exponential backoff, and keeps the claim. Resolves to whether this process still holds it. */
  async rest({ runs }: AgentStore, ref: RunRef): Promise<boolean> {
    const { clock, ttl, closing } = this.#host;
    const { times } = this.#known.get(ref.runId) ?? { times: 0 };
    // Waiting for the claim to expire was the first pause.
    const pause = times < 2 ? 0 : backoff(times, { baseMs: ttl, maxMs: maxPauseMs });
    const end = clock.now() + pause;
    while (clock.now() < end) {
      try {
        await clock.sleep(Math.min(ttl / 3, end - clock.now()), closing);
      } catch {
        // Release the claim, so that another worker need not wait for it to expire.
        await runs?.handOver(ref).catch(() => {});
        return false;
      }
      if ((await runs?.heartbeat(ref)) === 'lost') return false;
    }
    return true;
  }

  /** The error of a run whose result could not be saved too often; `undefined` while it may be retried. */
  errorOf(runId: string): WaymarkError | undefined {
    const { times, error } = this.#known.get(runId) ?? { times: 0 };
    if (times < maxSaveFailures) return undefined;
    const failure = toWaymarkError(error);
    const told = (message: string): string =>
      `The run has failed after ${times} attempts whose result could not be saved: ${message}`;
    return new WaymarkError(failure.status, told(failure.message), {
      cause: error,
      publicMessage: told(publicMessageOf(failure)),
    });
  }
}
