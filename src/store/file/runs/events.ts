import type { AbortSupport, EventSupport } from '../../contract/store.ts';
import { abortSupport as memoryAbort } from '../../memory/abort.ts';
import { eventSupport as memoryEvents } from '../../memory/events.ts';
import type { SessionRow } from '../../memory/tables.ts';
import type { DirectoryCache } from '../directory/cache.ts';
import type { DirectoryTransaction } from '../directory/transaction.ts';
import type { Watch } from '../directory/watch.ts';
import { saveSession } from '../sessions/save.ts';

/** Stopping runs, of any process. */
export function abortSupport(mirror: DirectoryCache, gate: DirectoryTransaction, watch: Watch): AbortSupport {
  const { tables } = mirror;
  const memory = memoryAbort(tables);
  return {
    abortSnapshot(scope, snapshotId) {
      let session: SessionRow | undefined;
      return gate.write(
        () => {
          mirror.reachSnapshot(scope, snapshotId);
          session = tables.runs.get(snapshotId)?.session;
          return memory.abortSnapshot(scope, snapshotId);
        },
        () => {
          if (session !== undefined) saveSession(mirror, session, { snapshotId });
        },
      );
    },
    onChange: (snapshotId, listener) =>
      both(memory.onChange(snapshotId, listener), watch.add(snapshotId)),
  };
}

/** Events of runs, kept for a while after their end. */
export function eventSupport(mirror: DirectoryCache, gate: DirectoryTransaction, watch: Watch): EventSupport {
  const memory = memoryEvents(mirror.tables);
  return {
    append: (run, events) =>
      gate.write(
        () => {
          mirror.reachEvents(run.runId);
          return memory.append(run, events);
        },
        () => {
          mirror.events.save(run.runId);
          mirror.events.sweep();
        },
      ),
    read: (scope, runId, options) =>
      gate.read(() => {
        mirror.reachEvents(runId);
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
