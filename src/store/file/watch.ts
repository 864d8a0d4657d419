import { systemClock } from '../../core/time.ts';
import type { Directory } from './directory.ts';
import type { Transaction } from './transaction.ts';

/** How often the files are read while this process has subscribers, in milliseconds. */
const pollEvery = 100;

/** Reads changes by other processes while this one has subscribers, which notifies them. */
export interface Watch {
  /** Watches a run or snapshot. Returns a function that stops it and calls `unsubscribe`. */
  add(id: string, unsubscribe: () => void): () => void;
  close(): void;
}

export function createWatch(directory: Directory, transaction: Transaction): Watch {
  const listened = new Map<string, number>();
  let stop: (() => void) | undefined;
  let isReading = false;

  const close = (): void => {
    stop?.();
    stop = undefined;
  };

  const poll = async (): Promise<void> => {
    // Not as soon as the last subscriber leaves: the next turn subscribes again.
    if (listened.size === 0) return close();
    if (isReading) return;
    isReading = true;
    // This is only a hint; callers that read get the error.
    await transaction
      .read(() => {
        directory.refreshRuns();
        for (const id of listened.keys()) directory.run(id);
      })
      .catch(() => {});
    isReading = false;
  };

  return {
    add(id, unsubscribe) {
      listened.set(id, (listened.get(id) ?? 0) + 1);
      stop ??= systemClock.every(pollEvery, () => void poll());
      let isOver = false;
      return () => {
        if (isOver) return;
        isOver = true;
        unsubscribe();
        const left = (listened.get(id) ?? 1) - 1;
        if (left > 0) listened.set(id, left);
        else listened.delete(id);
      };
    },
    close,
  };
}
