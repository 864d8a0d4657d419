import { inGroups } from '../../core/async/groups.ts';
import type { WaymarkError } from '../../core/error.ts';
import type { EventSupport } from '../contract/store.ts';
import { type AppendedEvents, appendAll, readEvents } from './runs/events.ts';
import type { SqlContext } from './sql-context.ts';

/** Runs whose events are written in one transaction. */
const maxRuns = 100;

/** Events of runs, kept for a while after their end. */
export function eventSupport(context: SqlContext): EventSupport {
  const { db, cipher, gcScheduler } = context;
  const append = inGroups<AppendedEvents, void>((group) => appendGroup(context, group), maxRuns);
  return {
    append: (run, events) => append({ run, events }),
    async read(scope, runId, options) {
      await gcScheduler.forget();
      return db.read(() => readEvents(scope, runId, options, cipher));
    },
    onEvents: (runId, listener) => db.listen({ kind: 'events', id: runId }, listener),
  };
}

/** Appends to the events of several runs. A run that is lost gets its own error, and the others are written. */
async function appendGroup(
  { db, state, turns }: SqlContext,
  group: readonly AppendedEvents[],
): Promise<readonly (WaymarkError | undefined)[]> {
  const hintOf = ({ run }: AppendedEvents) => ({ kind: 'events', id: run.runId }) as const;
  const written = await turns?.append?.(group);
  const rest = written === undefined ? group : group.filter((each) => !written.has(each));
  if (rest.length < group.length) db.tell(group.map(hintOf), 'process');
  if (rest.length === 0) return [];
  const lost = await db.write(() => appendAll(rest, state), { durable: false });
  db.tell(rest.map(hintOf));
  return group.map((each) => lost.get(each));
}
