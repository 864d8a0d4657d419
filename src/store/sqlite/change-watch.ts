import type { Clock } from '../../core/clock.ts';
import type { Hint } from '../sql/database/database.ts';
import { createHub } from '../sql/database/hub.ts';

// SQLite cannot push to another process. Its counter of foreign commits costs a few microseconds to read.
const lookEvery = 40;

/** Hints within a process at once, and from other processes by looking for foreign commits while somebody listens. */
export interface ChangeWatch {
  tell(hint: Hint): void;
  listen(hint: Hint, listener: () => void): () => void;
  close(): void;
}

/** `version` changes whenever another connection has committed; `undefined` when it could not be read this time. */
export function createChangeWatch(clock: Clock, version: () => number | undefined): ChangeWatch {
  const hub = createHub();
  let seen: number | undefined;
  let stop: (() => void) | undefined;
  const look = (): void => {
    const now = version();
    if (now === undefined || now === seen) return;
    seen = now;
    hub.tellAll();
  };
  const end = (): void => {
    stop?.();
    stop = undefined;
  };
  return {
    tell: hub.tell,
    listen(hint, listener) {
      const leave = hub.listen(hint, listener);
      if (stop === undefined) {
        seen = version();
        stop = clock.every(lookEvery, look);
      }
      return () => {
        leave();
        if (hub.size === 0) end();
      };
    },
    close: end,
  };
}
