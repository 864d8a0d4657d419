import { inGroups } from '../../../core/async/groups.ts';
import { isWaymarkError } from '../../../core/error.ts';
import type { AbortSupport, EventSupport, RunEvent, RunRef } from '../../contract/store.ts';
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

/** Runs whose events are written under one lock. */
const maxRuns = 100;

interface AppendedEvents {
  readonly run: RunRef;
  readonly events: readonly RunEvent[];
}

/** Events of runs, kept for a while after their end. */
export function eventSupport(
  cache: DirectoryCache,
  transaction: DirectoryTransaction,
  watch: Watch,
): EventSupport {
  const memory = memoryEvents(cache.tables);
  // A run that is lost gets its own error, and the others are written.
  const appendGroup = (group: readonly AppendedEvents[]): Promise<readonly (void | Error)[]> =>
    transaction.write(
      () => {
        for (const { run } of group) cache.refreshEvents(run.runId);
        const appended = group.map(({ run, events }) => memory.append(run, events).catch(lost));
        return Promise.all(appended);
      },
      () => {
        for (const { run } of group) cache.events.save(run.runId);
        cache.events.sweep();
      },
    );
  const append = inGroups(appendGroup, maxRuns);
  return {
    append: (run, events) => append({ run, events }),
    read: (scope, runId, options) =>
      transaction.read(() => {
        cache.refreshEvents(runId);
        return memory.read(scope, runId, options);
      }),
    onEvents: (runId, listener) => both(memory.onEvents(runId, listener), watch.add(runId)),
  };
}

function lost(error: unknown): Error {
  if (isWaymarkError(error)) return error;
  throw error;
}

function both(first: () => void, second: () => void): () => void {
  return () => {
    first();
    second();
  };
}
