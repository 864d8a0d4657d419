import type { MaintenanceOptions, Store } from '../contract/store.ts';
import { checkedStore } from '../rules/checked-store.ts';
import { abortSupport } from './abort-support.ts';
import { eventSupport } from './event-support.ts';
import { fileSupport } from './file-support.ts';
import type { StateContext } from './history/state-rows.ts';
import { maintenanceSupport } from './maintenance-support.ts';
import { GcScheduler } from './retention/gc-scheduler.ts';
import { runSupport } from './run-support.ts';
import { HeldRuns } from './runs/held-runs.ts';
import { readSnapshot } from './snapshots/locate.ts';
import { saveSnapshot } from './snapshots/save-snapshot.ts';
import { spendSupport } from './spend-support.ts';
import type { SqlContext, SqlParts } from './sql-context.ts';
import { timelineSupport } from './timeline-support.ts';

/** A store whose content can be encrypted again. */
export interface SqlStore extends Store {
  /**
   * Encrypts all content with the first of the given keys, in batches, while the store is in use. Returns how many rows it
   * encrypted. Afterwards the other keys are no longer needed. When it is stopped, doing it again encrypts the rest.
   */
  rotateKeys(options?: MaintenanceOptions): Promise<number>;
}

/** The store over a database: every capability, whichever database it is. */
export function sqlStore(parts: SqlParts): SqlStore {
  const { db, cipher } = parts;
  const state: StateContext = {
    get database() {
      return db.id;
    },
    cipher,
    homes: new Map(),
    held: new HeldRuns(),
  };
  const gcScheduler = new GcScheduler(parts);
  const context: SqlContext = {
    ...parts,
    state,
    gcScheduler,
    uploading: new Set(),
    turns: parts.turns?.(state),
  };
  const maintenance = maintenanceSupport(context);
  return checkedStore({
    name: parts.name,
    encrypted: cipher.keyId !== undefined,
    open: () => db.open(),
    async close() {
      await gcScheduler.close();
      await db.close();
    },
    getSnapshot: (scope, lookup, options) =>
      db.read(() => readSnapshot(scope, lookup, state, options)),
    async saveSnapshot(scope, snapshotId, mutate) {
      const saved = await db.write(() => saveSnapshot(scope, snapshotId, mutate, state));
      db.tell([{ kind: 'run', id: snapshotId }]);
      gcScheduler.later();
      return saved;
    },
    runs: runSupport(context),
    abort: abortSupport(context),
    events: eventSupport(context),
    timeline: timelineSupport(context),
    maintenance,
    spend: spendSupport(context),
    files: fileSupport(context),
    rotateKeys: (options) => maintenance.rotateKeys(options),
  });
}
