import { createEmitter } from '../core/async/emitter.ts';
import type { Clock } from '../core/time.ts';
import type { RunSupport, TakenRun } from '../store/contract/store.ts';

/** Milliseconds for which no other suspect is started after a run that has lost a worker. */
const aloneMs = 10_000;
/** The same for a run whose next crash would be its last. Limited, because a sub-agent that it waits for may be a suspect too. */
const lastChanceMs = 300_000;

interface Trial {
  /** No other suspect is started meanwhile. */
  isAlone: boolean;
  readonly over: AbortController;
}

/**
 * The suspects that this process executes: runs whose workers have died since their last progress. Any run of a dead process
 * may have killed it, so they are retried one at a time, and the next crash shows which one did.
 */
export class Suspects {
  readonly #clock: Clock;
  readonly #attempts: number;
  readonly #trials = new Map<string, Trial>();
  readonly #freed = createEmitter();
  #isTaking = false;

  constructor(clock: Clock, attempts: number) {
    this.#clock = clock;
    this.#attempts = attempts;
  }

  /** Takes over runs, with at most one suspect. Until it has ended, other calls get no suspects. */
  async take(
    runs: Pick<RunSupport, 'takeOver'> | undefined,
    request: Parameters<RunSupport['takeOver']>[0],
  ): Promise<readonly TakenRun[]> {
    const attempts = this.#attempts;
    const maxCrashes = this.#maxCrashes();
    const limit = maxCrashes > 0 ? 1 : 0;
    if (limit > 0) this.#isTaking = true;
    try {
      const suspects = { limit, maxCrashes, attempts };
      const taken = (await runs?.takeOver({ ...request, suspects })) ?? [];
      for (const { run } of taken) {
        const crashes = run.crashes?.length ?? 0;
        if (crashes > 0 && crashes < attempts) this.#begin(run.runId, crashes);
      }
      return taken;
    } finally {
      if (limit > 0) this.#isTaking = false;
    }
  }

  /** The run has made progress, or has ended. */
  clear(runId: string): void {
    const trial = this.#trials.get(runId);
    if (trial === undefined) return;
    this.#trials.delete(runId);
    trial.over.abort();
    this.#freed.emit();
  }

  /** Calls back when the next suspect may be taken. Returns an unsubscribe function. */
  onFree(listener: () => void): () => void {
    return this.#freed.subscribe(listener);
  }

  /** Cancels all timers. */
  close(): void {
    for (const { over } of this.#trials.values()) over.abort();
    this.#trials.clear();
    this.#freed.clear();
  }

  // A run that one more crash would dead-letter is retried alone, so that another suspect cannot cause that crash.
  #maxCrashes(): number {
    const trials = [...this.#trials.values()];
    if (this.#isTaking || trials.some(({ isAlone }) => isAlone)) return 0;
    return trials.length === 0 ? this.#attempts - 1 : this.#attempts - 2;
  }

  #begin(runId: string, crashes: number): void {
    const trial: Trial = { isAlone: true, over: new AbortController() };
    this.#trials.set(runId, trial);
    const isLast = crashes >= this.#attempts - 1;
    const rest = async (): Promise<void> => {
      if (!isLast) {
        await this.#clock.sleep(aloneMs, trial.over.signal);
        trial.isAlone = false;
        this.#freed.emit();
      }
      await this.#clock.sleep(lastChanceMs, trial.over.signal);
      this.clear(runId);
    };
    rest().catch(() => {});
  }
}
