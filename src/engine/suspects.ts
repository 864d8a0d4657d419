import { createEmitter } from '../core/async/emitter.ts';
import type { Clock } from '../core/time/clock.ts';
import type { SuspectLimit } from '../store/contract/store.ts';

/** Milliseconds for which a run that has lost a worker is the only suspect that is started. */
const aloneMs = 10_000;
/** The same for a run whose next crash would be its last; a sub-agent that it waits for may be a suspect, too. */
const lastChanceMs = 300_000;

/** Permission to take over suspects, until it is known which were taken. */
export interface SuspectPermit extends SuspectLimit {
  /** Says which were taken. */
  settle(taken: readonly { readonly runId: string; readonly crashes: number }[]): void;
}

/**
 * The suspects that this process works on: runs whose workers have died since their last progress. Nobody knows which of the
 * runs of a process has killed it, so they are retried one at a time, and the next crash shows which it was.
 */
export interface Suspects {
  /** What may be taken over now. Until it is settled, nobody else gets any. */
  permit(): SuspectPermit;
  /** The run has made progress, or has ended. */
  clear(runId: string): void;
  /** Calls back when the next suspect may be taken. Returns the way to stop. */
  onFree(listener: () => void): () => void;
  /** Ends all waiting. */
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
  // A run that may be given up wrongly is tried with no other suspect about.
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
