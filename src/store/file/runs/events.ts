import type { AbortSupport, EventSupport } from '../../contract/store.ts';
import { abortSupport as memoryAbort } from '../../memory/abort.ts';
import { eventSupport as memoryEvents } from '../../memory/events.ts';
import type { SessionRow } from '../../memory/tables.ts';
import type { DirectoryCache } from '../directory/cache.ts';
import type { DirectoryTransaction } from '../directory/transaction.ts';
import type { Watch } from '../directory/watch.ts';
import { saveSession } from '../sessions/save.ts';

/** Stopping runs, of any process. */
export function abortSupport(
  cache: DirectoryCache,
  transaction: DirectoryTransaction,
  watch: Watch,
): AbortSupport {
  const { tables } = cache;
  const memory = memoryAbort(tables);
  return {
    abortSnapshot(scope, snapshotId) {
      let session: SessionRow | undefined;
      return transaction.write(
        () => {
          cache.refreshSnapshot(scope, snapshotId);
          session = tables.runs.get(snapshotId)?.session;
          return memory.abortSnapshot(scope, snapshotId);
        },
        () => {
          if (session !== undefined) saveSession(cache, session, { snapshotId });
        },
      );
    },
    onChange: (snapshotId, listener) =>
      both(memory.onChange(snapshotId, listener), watch.add(snapshotId)),
  };
}

/** Events of runs, kept for a while after their end. */
export function eventSupport(
  cache: DirectoryCache,
  transaction: DirectoryTransaction,
  watch: Watch,
): EventSupport {
  const memory = memoryEvents(cache.tables);
  return {
    append: (run, events) =>
      transaction.write(
        () => {
          cache.refreshEvents(run.runId);
          return memory.append(run, events);
        },
        () => {
          cache.events.save(run.runId);
          cache.events.sweep();
        },
      ),
    read: (scope, runId, options) =>
      transaction.read(() => {
        cache.refreshEvents(runId);
        return memory.read(scope, runId, options);
      }),
    onEvents: (runId, listener) => both(memory.onEvents(runId, listener), watch.add(runId)),
  };
}

function both(first: () => void, second: () => void): () => void {
  return () => {
    first();
    second();
  };
}
