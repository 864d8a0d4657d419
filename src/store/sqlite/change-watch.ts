import { createKeyedEmitter } from '../../core/async/emitter.ts';
import type { Clock } from '../../core/time/clock.ts';
import { type Hint, hintKey } from '../sql/database/database.ts';

// SQLite cannot push to another process. Its counter of foreign commits costs a few microseconds to read, so looking often
// is cheap, and an abort from another process waits no longer than this.
const pollInterval = 10;

/** Hints within a process at once, and from other processes by polling for foreign commits while there are subscribers. */
export interface ChangeWatch {
  tell(hint: Hint): void;
  listen(hint: Hint, listener: () => void): () => void;
  close(): void;
}

/** The polled value. `undefined` if it could not be read this time. */
export interface Watched {
  /** Changes whenever another connection has committed. */
  version(): number | undefined;
  /** Changes whenever what a hint is about does; a heartbeat is no change. */
  mark(hint: Hint): string | undefined;
}

/**
 * Watches a database. After a foreign commit only the subscribers of changed runs are notified: each notification
 * writes a heartbeat, and two processes that notified all would keep each other busy forever. Polling ends by itself
 * after a while without subscribers, so consecutive turns do not pay for starting it again.
 */
export function createChangeWatch(clock: Clock, watched: Watched): ChangeWatch {
  const emitter = createKeyedEmitter(hintKey);
  const marks = new Map<string, string>();
  let seen: number | undefined;
  let stop: (() => void) | undefined;
  const look = (): void => {
    if (emitter.size === 0) {
      end();
      return;
    }
    const now = watched.version();
    if (now === undefined || now === seen) return;
    seen = now;
    const before = new Map(marks);
    marks.clear();
    for (const hint of emitter.keys()) {
      const key = hintKey(hint);
      const mark = watched.mark(hint);
      // What was never looked at may have changed since it was listened to.
      if (mark === undefined || mark !== before.get(key)) emitter.emit(hint);
      if (mark !== undefined) marks.set(key, mark);
    }
  };
  const end = (): void => {
    stop?.();
    stop = undefined;
    marks.clear();
  };
  return {
    tell: emitter.emit,
    listen(hint, listener) {
      const leave = emitter.subscribe(hint, listener);
      if (stop === undefined) {
        seen = watched.version();
        stop = clock.every(pollInterval, look);
      }
      return leave;
    },
    close: end,
  };
}
