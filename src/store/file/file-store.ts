import { join, resolve } from 'node:path';
import { createIds } from '../../core/id.ts';
import { checkChoice, checkOptions, type OptionNames } from '../../core/options.ts';
import { type Clock, systemClock } from '../../core/time.ts';
import type { Store } from '../contract/store.ts';
import { checkedStore } from '../rules/checked-store.ts';
import { memoryCalls } from './calls.ts';
import { Directory } from './directory.ts';
import { Disk } from './disk.ts';
import { fileSupport } from './file-support.ts';
import { lockFile } from './layout.ts';
import { createLock } from './lock.ts';
import { maintenanceSupport } from './maintenance.ts';
import { createTransaction } from './transaction.ts';
import { createWatch } from './watch.ts';

/** Options of `fileStore`. */
export interface FileStoreOptions {
  /** @default the system clock */
  readonly clock?: Clock;
  /** Generates ids for files, and for imported snapshots whose ids are taken. @default time-ordered UUIDs */
  readonly newId?: () => string;
  /** Milliseconds for which the events of a run are kept after its end. @default 60000 */
  readonly eventsTtl?: number;
  /**
   * `full` waits until a write is on the disk. `normal` survives a crash of the process, but a power cut may lose the most
   * recent writes. @default 'full'
   */
  readonly durability?: 'normal' | 'full';
  /** Milliseconds that a call waits for the lock of another process before it fails. @default 10000 */
  readonly lockTimeout?: number;
}

/** The options of the store; `durable` was the one of 0.1. */
const fileOptionNames: OptionNames<FileStoreOptions> = {
  clock: true,
  newId: true,
  eventsTtl: true,
  durability: true,
  lockTimeout: true,
};

/**
 * A store of plain files in a directory, for development and for one host: you can read the files and put them under version control,
 * and several processes may use one directory. It works on the tables of a memory store: before a call, the rows that it needs
 * are read from the files, and after it, the changed rows are written to them, under one lock.
 */
export function fileStore(directory: string, options: FileStoreOptions = {}): Store {
  const { files, transaction, lock, fresh } = openParts(directory, options);
  const watch = createWatch(files, transaction);
  const calls = memoryCalls(files, transaction, watch);
  return checkedStore({
    name: 'file',
    paths: [resolve(directory)],
    open: transaction.open,
    ...calls,
    maintenance: { ...calls.maintenance, ...maintenanceSupport(files, transaction, fresh) },
    files: fileSupport(files, transaction),
    async close() {
      watch.close();
      lock.close();
    },
  });
}

/** Opens the parts of a store in a directory. */
export function openParts(directory: string, options: FileStoreOptions = {}) {
  const { clock = systemClock, newId = createIds(clock), eventsTtl = 60_000 } = options;
  const { durability = 'full', lockTimeout = 10_000 } = options;
  checkOptions(options, fileOptionNames, 'fileStore()', { durable: 'durability' });
  checkChoice(durability, ['normal', 'full'], 'durability of fileStore()');
  const disk = new Disk(resolve(directory), { durable: durability === 'full' });
  // Another view of the files, which has read nothing yet.
  const fresh = (): Directory => new Directory(disk, { clock, newId, eventsTtl });
  const files = fresh();
  const lock = createLock(join(disk.root, lockFile), { timeout: lockTimeout });
  return { files, transaction: createTransaction(files, lock), lock, fresh };
}
