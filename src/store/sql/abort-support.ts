import type { AbortSupport } from '../contract/store.ts';
import { abortSnapshot } from './runs/abort.ts';
import type { SqlContext } from './sql-context.ts';

/** Stopping runs. */
export function abortSupport({ db, state, gcScheduler }: SqlContext): AbortSupport {
  return {
    async abortSnapshot(scope, snapshotId) {
      const status = await db.write(() => abortSnapshot(scope, snapshotId, state));
      if (status === undefined) return undefined;
      db.tell([
        { kind: 'run', id: snapshotId },
        { kind: 'events', id: snapshotId },
      ]);
      gcScheduler.later();
      return status;
    },
    onChange: (snapshotId, listener) => db.listen({ kind: 'run', id: snapshotId }, listener),
  };
}
