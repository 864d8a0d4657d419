import type { EventSupport, RunEvent } from '../contract/store.ts';
import { type EventBatch, KeptEvents } from './kept-events.ts';
import {
  currentRun,
  findRun,
  inScope,
  type RunRow,
  type SessionRow,
  type Tables,
} from './tables.ts';

/** Events of runs, kept for a while after their end. */
export function eventSupport(tables: Tables): EventSupport {
  return {
    async append(ref, events) {
      appendTo(tables, currentRun(tables, ref), events);
    },
    async read(scope, runId, { after, limit }) {
      tables.refresh?.snapshot(scope, runId);
      forgetOldEvents(tables);
      const log = tables.events.get(runId);
      if (log === undefined) {
        return findRun(tables, scope, runId) && { events: [], ended: false };
      }
      if (!inScope(log.session, scope)) return undefined;
      const { events, isLast } = log.kept.read(after, limit);
      return { events, ended: isLast && tables.endedAt.has(runId) };
    },
    onEvents: (runId, listener) => tables.emitter.subscribe(eventKey(runId), listener),
  };
}

/** Appends to the events of a run that is open under the caller's attempt. Those that are there already are left out. */
export function appendTo(tables: Tables, run: RunRow, events: readonly RunEvent[]): void {
  forgetOldEvents(tables);
  logOf(tables, run.session, run.id).append(events);
  tables.emitter.emit(eventKey(run.id));
}

/** Adds events that a store has kept. */
export function keepEvents(
  tables: Tables,
  session: SessionRow,
  runId: string,
  batches: readonly EventBatch[],
): void {
  for (const batch of batches) logOf(tables, session, runId).add(batch);
  tables.emitter.emit(eventKey(runId));
}

function logOf({ events }: Tables, session: SessionRow, runId: string): KeptEvents {
  const log = events.get(runId) ?? { session, kept: new KeptEvents() };
  events.set(runId, log);
  return log.kept;
}

const eventMark = 'events ';

/** The key under which the emitter tells of new events. */
function eventKey(runId: string): string {
  return `${eventMark}${runId}`;
}

/** The id of the run or snapshot that a key of the emitter is about. */
export function idOfKey(key: string): string {
  return key.startsWith(eventMark) ? key.slice(eventMark.length) : key;
}

/** Notes that a run is over: its events are complete, and are removed some time later. */
export function endEvents(tables: Tables, runId: string): void {
  if (tables.events.has(runId)) tables.endedAt.set(runId, tables.clock.now());
  tables.emitter.emit(eventKey(runId));
}

function forgetOldEvents(tables: Tables): void {
  const before = tables.clock.now() - tables.eventsTtl;
  for (const [runId, endedAt] of tables.endedAt) {
    if (endedAt > before) return;
    tables.endedAt.delete(runId);
    tables.events.delete(runId);
  }
}
