import type { Clock } from '../../core/time/clock.ts';
import type { Scope } from '../../store/contract/store.ts';
import { EventFlusher } from './event-flusher.ts';
import { EventLog, type EventLogOptions } from './event-log.ts';

/** The logs of the runs of this process, and of recently ended runs whose events no store has. */
export interface EventLogs {
  open(options: EventLogOptions): EventLog;
  /** The log of a run in this scope; the runs of other owners are unknown. */
  get(runId: string, scope: Scope): EventLog | undefined;
  close(log: EventLog): void;
  /** Removes the log of a run that another process has: the store has its events. */
  forget(log: EventLog): void;
}

/** How many ended runs can still be watched from memory. */
const maxEnded = 100;

export function createEventLogs(clock: Clock): EventLogs {
  // Each log has a slot that is emptied: a deleted map entry stays in the heap for a while.
  const slots = new Map<string, { log: EventLog | undefined }>();
  /** A ring: `oldest` is the place of the one that ended first. */
  const ended: EventLog[] = [];
  let oldest = 0;
  const flusher = new EventFlusher(clock);
  const remove = (log: EventLog): void => {
    const slot = slots.get(log.runId);
    if (slot?.log !== log) return;
    slots.delete(log.runId);
    slot.log = undefined;
  };
  return {
    open(options) {
      const log = new EventLog({ ...options, flusher });
      slots.set(options.runId, { log });
      return log;
    },
    get(runId, { agent, owner }) {
      const log = slots.get(runId)?.log;
      return log?.scope.agent === agent && log.scope.owner === owner ? log : undefined;
    },
    forget(log) {
      log.end();
      remove(log);
    },
    close(log) {
      log.end();
      if (log.isStored) {
        log.buffer.release();
        return remove(log);
      }
      const replaced = ended[oldest];
      ended[oldest] = log;
      oldest = (oldest + 1) % maxEnded;
      if (replaced !== undefined) remove(replaced);
    },
  };
}
