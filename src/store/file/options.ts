import type { NewId } from '../../core/id.ts';
import type { Clock } from '../../core/time/clock.ts';

export interface FileStoreOptions {
  /** @default the clock of the machine */
  readonly clock?: Clock;
  /** Makes the ids of imported snapshots whose own are taken, and of files. @default time-ordered UUIDs */
  readonly newId?: NewId;
  /** Milliseconds for which the events of a run are kept after its end. @default 60000 */
  readonly eventsTtl?: number;
  /**
   * Whether a write waits until it is on the disk. Without it, what was written survives the death of the process but perhaps not
   * a power cut. @default true
   */
  readonly durable?: boolean;
  /** Milliseconds for which another process may hold the lock before a call gives up. @default 10000 */
  readonly lockTimeout?: number;
}
