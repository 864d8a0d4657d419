import type { NewId } from '../../core/id.ts';
import type { Clock } from '../../core/time.ts';
import type { Snapshot } from '../../protocol/snapshot.ts';
import type {
  Claim,
  ClaimRequest,
  CommitWrite,
  QueueHandoff,
  RunRef,
  RunRequest,
  Scope,
} from '../contract/store.ts';
import type { Cipher } from './content/cipher.ts';
import type { Database } from './database/database.ts';
import type { StateContext } from './history/state-rows.ts';
import type { GcScheduler } from './retention/gc-scheduler.ts';
import type { CommitResult } from './runs/commit.ts';
import type { AppendedEvents } from './runs/events.ts';

/** The parts of a store over a database. */
export interface SqlParts {
  readonly name: string;
  readonly db: Database;
  readonly cipher: Cipher;
  readonly clock: Clock;
  readonly newId: NewId;
  /** Milliseconds for which the events of a run are kept after its end. */
  readonly eventsTtl: number;
  /** Shortcuts for the steps of every turn; the plans do the rest. */
  readonly turns?: (context: StateContext) => TurnSteps;
}

/** Shortcuts for the steps of a turn. `undefined` or `false`: the shortcut does not apply, and the plan is used. */
export interface TurnSteps {
  claim?(scope: Scope, request: ClaimRequest): Promise<Claim | undefined>;
  commit(run: RunRef, write: CommitWrite): Promise<CommitResult | undefined>;
  /** Appends to the events of runs and notifies listeners in other processes. Gives those it has written. */
  append?(group: readonly AppendedEvents[]): Promise<ReadonlySet<AppendedEvents> | undefined>;
  /** Detaches a run that is handed over, together with others of the same moment. */
  sendAway?(run: RunRef, request: RunRequest, away: QueueHandoff): Promise<Snapshot | undefined>;
}

/** Values that the parts of a store share. */
export interface SqlContext extends Omit<SqlParts, 'turns'> {
  readonly state: StateContext;
  readonly gcScheduler: GcScheduler;
  /** Runs of this process that have stored files: what their states do not name goes when they end. */
  readonly uploading: Set<string>;
  readonly turns: TurnSteps | undefined;
}
