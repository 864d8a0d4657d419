import type { NewId } from '../../core/id.ts';
import type { Clock } from '../../core/time/clock.ts';

export interface FileStoreOptions {
  /** @default the system clock */
  readonly clock?: Clock;
  /** Generates ids for files, and for imported snapshots whose ids are taken. @default time-ordered UUIDs */
  readonly newId?: NewId;
  /** Milliseconds for which the events of a run are kept after its end. @default 60000 */
  readonly eventsTtl?: number;
  /**
   * Whether a write waits for the disk. Without it, writes survive a crash of the process, but perhaps not a power cut. @default true
   */
  readonly durable?: boolean;
  /** Milliseconds that a call waits for the lock of another process before it fails. @default 10000 */
  readonly lockTimeout?: number;
}
