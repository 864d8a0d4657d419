import { createKeyedEmitter } from '../../core/async/emitter.ts';
import type { Clock } from '../../core/time.ts';
import { isSnapshotId } from '../../protocol/ids.ts';
import { type Hint, hintKey } from '../sql/database/driver.ts';
import { one, type Plan, statement } from '../sql/database/query.ts';
import { uuidBytes } from '../sql/values/bytes.ts';
import { journal } from '../sql/values/journal.ts';

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
      // A run that was never looked at may have changed since it was listened to.
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

interface MarkRow {
  readonly mark: string;
}

// All that others may do to a run, or that may become of it, except that its worker is alive.
const selectRun = statement<MarkRow>(
  'change_run',
  `SELECT COALESCE((SELECT attempt || ' ' || mode || ' ' || stopping || ' ' || ttl FROM @runs WHERE id = $1), '')
     || '/' || COALESCE((SELECT status || ' ' || updated_at FROM @snapshots WHERE id = $1), '')
     || '/' || (SELECT COUNT(*) FROM @journal WHERE run = $1 AND attempt = ${journal.inbox}) AS mark`,
);
// Rows are only added at the end, until all of them go.
const selectEvents = statement<MarkRow>(
  'change_events',
  `SELECT COALESCE((SELECT attempt FROM @runs WHERE id = $1), '') || '/' || COALESCE((
     SELECT attempt || ' ' || seq FROM @journal WHERE run = $1 ORDER BY attempt DESC, seq DESC LIMIT 1), '')
   AS mark`,
);

/** A text that changes when what a hint is about does; `undefined` for a hint that is about no single run. */
export function* changeMark({ kind, id }: Hint): Plan<string | undefined> {
  if (!isSnapshotId(id)) return undefined;
  const { mark } = yield* one(kind === 'run' ? selectRun : selectEvents, uuidBytes(id));
  return mark;
}
