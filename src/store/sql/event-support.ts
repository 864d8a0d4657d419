import type { EventSupport } from '../contract/store.ts';
import { append, readEvents } from './runs/events.ts';
import type { SqlContext } from './sql-context.ts';

/** Events of runs, kept for a while after their end. */
export function eventSupport({ db, state, cipher, gcScheduler, turns }: SqlContext): EventSupport {
  return {
    async append(run, events) {
      const isQuick = await turns?.append?.(run, events);
      if (isQuick !== true) await db.write(() => append(run, events, state), { durable: false });
      db.tell([{ kind: 'events', id: run.runId }], isQuick === true ? 'process' : 'everywhere');
    },
    async read(scope, runId, options) {
      await gcScheduler.forget();
      return db.read(() => readEvents(scope, runId, options, cipher));
    },
    onEvents: (runId, listener) => db.listen({ kind: 'events', id: runId }, listener),
  };
}
