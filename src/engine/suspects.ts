import { createEmitter } from '../core/async/emitter.ts';
import type { Clock } from '../core/time.ts';
import type { SuspectLimit } from '../store/contract/store.ts';

/** Milliseconds for which no other suspect is started after a run that has lost a worker. */
const aloneMs = 10_000;
/** The same for a run whose next crash would be its last. Limited, because a sub-agent that it waits for may be a suspect too. */
const lastChanceMs = 300_000;

/** Permission to take over suspects, held until the caller reports which were taken. */
export interface SuspectPermit extends SuspectLimit {
  /** Reports which runs were taken. */
  settle(taken: readonly { readonly runId: string; readonly crashes: number }[]): void;
}

/**
 * The suspects that this process executes: runs whose workers have died since their last progress. Any run of a dead process
 * may have killed it, so they are retried one at a time, and the next crash shows which one did.
 */
export interface Suspects {
  /** Permits the next takeover. Until it is settled, other callers get none. */
  permit(): SuspectPermit;
  /** The run has made progress, or has ended. */
  clear(runId: string): void;
  /** Calls back when the next suspect may be taken. Returns an unsubscribe function. */
  onFree(listener: () => void): () => void;
  /** Cancels all timers. */
  close(): void;
}

interface Trial {
  /** No other suspect is started meanwhile. */
  isAlone: boolean;
  readonly over: AbortController;
}

export function createSuspects(clock: Clock, attempts: number): Suspects {
  const trials = new Map<string, Trial>();
  const freed = createEmitter();
  let isAsked = false;

  const clear = (runId: string): void => {
    const trial = trials.get(runId);
    if (trial === undefined) return;
    trials.delete(runId);
    trial.over.abort();
    freed.emit();
  };
  const begin = (runId: string, crashes: number): void => {
    const trial: Trial = { isAlone: true, over: new AbortController() };
    trials.set(runId, trial);
    const isLast = crashes >= attempts - 1;
    const rest = async (): Promise<void> => {
      if (!isLast) {
        await clock.sleep(aloneMs, trial.over.signal);
        trial.isAlone = false;
        freed.emit();
      }
      await clock.sleep(lastChanceMs, trial.over.signal);
      clear(runId);
    };
    rest().catch(() => {});
  };
  // A run that one more crash would dead-letter is retried alone, so that another suspect cannot cause that crash.
  const maxCrashes = (): number => {
    if (isAsked || [...trials.values()].some(({ isAlone }) => isAlone)) return 0;
    return trials.size === 0 ? attempts - 1 : attempts - 2;
  };

  return {
    permit() {
      const most = maxCrashes();
      const mine = most > 0;
      isAsked ||= mine;
      return {
        limit: mine ? 1 : 0,
        maxCrashes: most,
        attempts,
        settle(taken) {
          if (mine) isAsked = false;
          for (const { runId, crashes } of taken) {
            if (crashes > 0 && crashes < attempts) begin(runId, crashes);
          }
        },
      };
    },
    clear,
    onFree: freed.subscribe,
    close() {
      for (const { over } of trials.values()) over.abort();
      trials.clear();
      freed.clear();
    },
  };
}
