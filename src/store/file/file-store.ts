import { join, resolve } from 'node:path';
import { createKeyedEmitter } from '../../core/async/emitter.ts';
import { createIds } from '../../core/id.ts';
import { checkChoice, checkOptions } from '../../core/options.ts';
import { systemClock } from '../../core/time/clock.ts';
import type { Store } from '../contract/store.ts';
import type { Tables } from '../memory/tables.ts';
import { checkedStore } from '../rules/checked-store.ts';
import { DirectoryCache } from './directory/cache.ts';
import { Disk } from './directory/disk.ts';
import { lockFile } from './directory/layout.ts';
import { createLock, type Lock } from './directory/lock.ts';
import { createDirectoryTransaction, type DirectoryTransaction } from './directory/transaction.ts';
import { createWatch } from './directory/watch.ts';
import { fileSupport } from './files.ts';
import { maintenanceSupport } from './maintenance/maintenance.ts';
import { type FileStoreOptions, fileOptionNames } from './options.ts';
import { abortSupport, eventSupport } from './runs/events.ts';
import { runSupport } from './runs/runs.ts';
import { snapshotSupport } from './sessions/snapshots.ts';
import { timelineSupport } from './sessions/timeline.ts';
import { spendSupport } from './spend.ts';
import { SpendFiles } from './spend-files.ts';

/**
 * A store of plain files in a directory, which you can read and put under version control. Several processes may use one
 * directory. It does its work on the tables of a memory store: what these must say of a session is read from its files
 * before, and what a call has changed is written to them after, under one lock.
 */
export function fileStore(directory: string, options: FileStoreOptions = {}): Store {
  const { cache, transaction, lock } = openParts(directory, options);
  const watch = createWatch(cache, transaction);
  return checkedStore({
    name: 'file',
    open: transaction.open,
    ...snapshotSupport(cache, transaction),
    runs: runSupport(cache, transaction),
    abort: abortSupport(cache, transaction, watch),
    events: eventSupport(cache, transaction, watch),
    timeline: timelineSupport(cache, transaction),
    maintenance: maintenanceSupport(cache, transaction),
    spend: spendSupport(cache.spend, cache.tables, transaction),
    files: fileSupport(cache, transaction),
    async close() {
      watch.close();
      lock.close();
    },
  });
}

/** What the parts of a store over a directory share. */
export function openParts(
  directory: string,
  options: FileStoreOptions = {},
): {
  readonly cache: DirectoryCache;
  readonly transaction: DirectoryTransaction;
  readonly lock: Lock;
} {
  const { clock = systemClock, newId = createIds(clock), eventsTtl = 60_000 } = options;
  const { durability = 'full', lockTimeout = 10_000 } = options;
  checkOptions(options, fileOptionNames, 'fileStore()', { durable: 'durability' });
  checkChoice(durability, ['normal', 'full'], 'durability of fileStore()');
  const disk = new Disk(resolve(directory), { durable: durability === 'full' });
  const spend = new SpendFiles(disk);
  const tables: Tables = {
    clock,
    newId,
    newRow: (row) => row,
    eventsTtl,
    emitter: createKeyedEmitter(),
    sessions: new Map(),
    snapshots: new Map(),
    runs: new Map(),
    events: new Map(),
    endedAt: new Map(),
    dead: new Map(),
    requests: new Map(),
    spend,
    // They are on the disk, where `verify` and `UploadFiles` look after them.
    files: {
      check: (scope, state, before) => cache.checkFiles(scope, state, before),
      problemOf: () => undefined,
      runEnded: () => {},
      removed: () => {},
    },
  };
  const cache = new DirectoryCache(disk, tables, spend);
  const lock = createLock(join(disk.root, lockFile), { timeout: lockTimeout });
  const transaction = createDirectoryTransaction(cache, lock);
  return { cache, transaction, lock };
}
