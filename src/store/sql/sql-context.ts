import type { Clock } from '../../core/time.ts';
import type { Snapshot } from '../../protocol/snapshot.ts';
import type { QueueHandoff, RunRef, RunRequest } from '../contract/store.ts';
import type { Cipher, Encryption } from './content/cipher.ts';
import type { OpenedDriver } from './content/opened-driver.ts';
import type { Driver } from './database/driver.ts';
import type { GcScheduler } from './retention/gc-scheduler.ts';
import type { RunContext } from './runs/known-runs.ts';

/** Options of a store over a driver. */
export interface SqlStoreOptions {
  /** A name for logs and errors. */
  readonly name: string;
  /** The database. */
  readonly driver: Driver;
  /** Encrypts content with your key. @default none */
  readonly encryption?: Encryption | undefined;
  /** Milliseconds for which the events of a run are kept after its end. @default 60000 */
  readonly eventsTtl?: number | undefined;
  /** @default the system clock */
  readonly clock?: Clock | undefined;
  /** @default time-ordered UUIDs */
  readonly newId?: (() => string) | undefined;
}

/** Detaches a run and hands it over. */
export type SendRun = (sent: {
  readonly ref: RunRef;
  readonly request: RunRequest;
  readonly away: QueueHandoff;
}) => Promise<Snapshot | undefined>;

/** Values that the parts of a store share. */
export interface SqlContext {
  readonly db: OpenedDriver;
  readonly cipher: Cipher;
  readonly clock: Clock;
  readonly newId: () => string;
  readonly eventsTtl: number;
  readonly state: RunContext;
  readonly gcScheduler: GcScheduler;
  /** Runs of this process that have stored files: what their states do not name goes when they end. */
  readonly uploading: Set<string>;
  readonly send: SendRun | undefined;
}
