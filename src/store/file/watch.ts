import { systemClock } from '../../core/time.ts';
import { idOfKey } from '../memory/events.ts';
import type { Directory } from './directory.ts';
import type { Transaction } from './transaction.ts';

/** How often the files are read while this process has subscribers, in milliseconds. */
const pollEvery = 100;

/** Reads changes by other processes while this one has subscribers, which notifies them. */
export interface Watch {
  /** Starts for a new subscriber. */
  start(): void;
  close(): void;
}

export function createWatch(directory: Directory, transaction: Transaction): Watch {
  const { emitter } = directory.tables;
  let stop: (() => void) | undefined;
  let isReading = false;

  const close = (): void => {
    stop?.();
    stop = undefined;
  };

  const poll = async (): Promise<void> => {
    // Not as soon as the last subscriber leaves: the next turn subscribes again.
    if (emitter.size === 0) return close();
    if (isReading) return;
    isReading = true;
    // This is only a hint; callers that read get the error.
    await transaction
      .read(() => {
        directory.refreshRuns();
        for (const key of emitter.keys()) directory.run(idOfKey(key));
      })
      .catch(() => {});
    isReading = false;
  };

  return {
    start() {
      stop ??= systemClock.every(pollEvery, () => void poll());
    },
    close,
  };
}
