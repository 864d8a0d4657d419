import { type EventSupport, type RunEvent, storeRules } from 'waymark/store';
import type { JsonFile } from './json-file.ts';
import { currentRun, findRun, inScope, type RunRow, type Transaction } from './tables.ts';

/** Events of runs, kept for a while after their end. */
export function eventSupport(file: JsonFile, eventsTtl: number): EventSupport {
  const isOld = ({ data, now }: Transaction, runId: string): boolean => {
    const endedAt = data.events[runId]?.endedAt;
    return endedAt !== undefined && endedAt <= now - eventsTtl;
  };
  return {
    append: (ref, events) =>
      file.write((tx) => {
        for (const runId of Object.keys(tx.data.events)) {
          if (isOld(tx, runId)) delete tx.data.events[runId];
        }
        appendTo(tx, currentRun(tx, ref), events);
      }),
    read: (scope, runId, { after, limit }) =>
      file.read((tx) => {
        const log = isOld(tx, runId) ? undefined : tx.data.events[runId];
        if (log === undefined) {
          return findRun(tx, scope, runId) && { events: [], ended: false };
        }
        if (!inScope(tx.data.sessions[log.session], scope)) return undefined;
        const rest = log.events.filter((event) => storeRules.isAfter(event, after));
        const ended = rest.length <= limit && log.endedAt !== undefined;
        return { events: rest.slice(0, limit), ended };
      }),
    onEvents: (runId, listener) => file.subscribe(eventKey(runId), listener),
  };
}

const eventKey = (runId: string): string => `events ${runId}`;

/** Appends the events that are not there yet. */
export function appendTo(
  tx: Transaction,
  run: RunRow,
  events: readonly RunEvent[] | undefined,
): void {
  if (events === undefined) return;
  const log = tx.data.events[run.id] ?? { session: run.session, events: [] };
  tx.data.events[run.id] = log;
  const end = log.events.at(-1);
  log.events.push(...events.filter((event) => storeRules.isAfter(event, end)));
  tx.emit(eventKey(run.id));
}

export function endEvents(tx: Transaction, runId: string): void {
  const log = tx.data.events[runId];
  if (log !== undefined) log.endedAt = tx.now;
  tx.emit(eventKey(runId));
}
