import type { NewId } from '../../core/id.ts';
import type { Clock } from '../../core/time.ts';
import type { Snapshot } from '../../protocol/snapshot.ts';
import type { QueueHandoff, RunRef, RunRequest } from '../contract/store.ts';
import type { Cipher } from './content/cipher.ts';
import type { Driver } from './database/driver.ts';
import type { StateContext } from './history/state-rows.ts';
import type { GcScheduler } from './retention/gc-scheduler.ts';

/** The parts of a store over a database. */
export interface SqlParts {
  readonly name: string;
  readonly db: Driver;
  readonly cipher: Cipher;
  readonly clock: Clock;
  readonly newId: NewId;
  /** Milliseconds for which the events of a run are kept after its end. */
  readonly eventsTtl: number;
  /** Detaches runs that are handed over, together with others of the same moment; `undefined` where that does not apply. */
  readonly sender?: (context: StateContext) => SendRun;
}

/** Detaches a run and hands it over. */
export type SendRun = (sent: {
  readonly ref: RunRef;
  readonly request: RunRequest;
  readonly away: QueueHandoff;
}) => Promise<Snapshot | undefined>;

/** Values that the parts of a store share. */
export interface SqlContext extends Omit<SqlParts, 'sender'> {
  readonly state: StateContext;
  readonly gcScheduler: GcScheduler;
  /** Runs of this process that have stored files: what their states do not name goes when they end. */
  readonly uploading: Set<string>;
  readonly send: SendRun | undefined;
}
