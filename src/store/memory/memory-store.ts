import { createIds } from '../../core/id.ts';
import { checkOptions, type OptionNames } from '../../core/options.ts';
import { type Clock, systemClock } from '../../core/time.ts';
import type { Store } from '../contract/store.ts';
import { checkedStore } from '../rules/checked-store.ts';
import { saveSnapshot } from './commit.ts';
import { CompactRow } from './compact-row.ts';
import { effectSupport } from './effects.ts';
import { eventSupport } from './events.ts';
import { MemoryFiles } from './files.ts';
import { maintenanceSupport } from './maintenance.ts';
import { memorySupport } from './memories.ts';
import { MemoryOwners } from './memory-rows.ts';
import { readSnapshot } from './reading.ts';
import { abortSupport, runSupport } from './runs.ts';
import { SpendCounters, spendSupport } from './spend.ts';
import { emptyTables, type Tables } from './tables.ts';
import { timelineSupport } from './timeline.ts';

/** Options of `memoryStore`. */
export interface MemoryStoreOptions {
  /** @default the system clock */
  readonly clock?: Clock;
  /** Generates ids for imported snapshots whose ids are taken. @default time-ordered UUIDs */
  readonly newId?: () => string;
  /** Milliseconds for which the events of a run are kept after its end. @default 60000 */
  readonly eventsTtl?: number;
}

const optionNames: OptionNames<MemoryStoreOptions> = {
  clock: true,
  newId: true,
  eventsTtl: true,
};

/**
 * A store in memory with every capability. Several apps may share one: they then behave as several processes on one
 * database do. Snapshots share the common parts of their states.
 */
export function memoryStore(options: MemoryStoreOptions = {}): Store {
  checkOptions(options, optionNames, 'memoryStore()');
  const { clock = systemClock, newId = createIds(clock), eventsTtl = 60_000 } = options;
  const files = new MemoryFiles(() => tables);
  const tables: Tables = {
    clock,
    newId,
    newRow: (row) => new CompactRow(row),
    eventsTtl,
    ...emptyTables(),
    spend: new SpendCounters(),
    files,
    memory: new MemoryOwners(),
  };
  return checkedStore({
    name: 'memory',
    getSnapshot: async (scope, lookup, options) => readSnapshot(tables, scope, lookup, options),
    saveSnapshot: async (scope, snapshotId, mutate) =>
      saveSnapshot(tables, scope, snapshotId, mutate),
    runs: runSupport(tables),
    abort: abortSupport(tables),
    events: eventSupport(tables),
    timeline: timelineSupport(tables),
    maintenance: maintenanceSupport(tables),
    spend: spendSupport(tables),
    memory: memorySupport(tables),
    effects: effectSupport(tables),
    files: {
      write: (holder, data) => files.write(holder, data),
      open: async (_place, hash) => files.open(hash),
      writeTree: async (holder, write) => files.writeTree(holder, write),
      readTree: async (_place, hashes) => files.readTree(hashes),
    },
  });
}
