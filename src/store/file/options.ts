import type { NewId } from '../../core/id.ts';
import type { OptionNames } from '../../core/options.ts';
import type { Clock } from '../../core/time/clock.ts';

/** Options of `fileStore`. */
export interface FileStoreOptions {
  /** @default the system clock */
  readonly clock?: Clock;
  /** Generates ids for files, and for imported snapshots whose ids are taken. @default time-ordered UUIDs */
  readonly newId?: NewId;
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
export const fileOptionNames: OptionNames<FileStoreOptions> = {
  clock: true,
  newId: true,
  eventsTtl: true,
  durability: true,
  lockTimeout: true,
};
