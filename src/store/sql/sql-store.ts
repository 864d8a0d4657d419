import type { NewId } from '../../core/id.ts';
import type { Clock } from '../../core/time/clock.ts';
import type { Snapshot } from '../../protocol/snapshot.ts';
import type {
  Claim,
  ClaimRequest,
  CommitWrite,
  QueueHandoff,
  RunEvent,
  RunRef,
  RunRequest,
  Scope,
  Store,
} from '../contract/store.ts';
import { checkedStore } from '../rules/checked-store.ts';
import { abortSupport } from './abort-support.ts';
import type { Cipher } from './content/cipher.ts';
import type { Database } from './database/database.ts';
import { eventSupport } from './event-support.ts';
import type { StateContext } from './history/state-rows.ts';
import { maintenanceSupport } from './maintenance-support.ts';
import { GcScheduler } from './retention/gc-scheduler.ts';
import { runSupport } from './run-support.ts';
import type { CommitResult } from './runs/commit.ts';
import type { TakenRows, TakeOver } from './runs/take-over.ts';
import { readSnapshot } from './snapshots/locate.ts';
import { saveSnapshot } from './snapshots/save-snapshot.ts';
import { timelineSupport } from './timeline-support.ts';

/** What a store over a database is made of. */
export interface SqlParts {
  readonly name: string;
  readonly db: Database;
  readonly cipher: Cipher;
  readonly clock: Clock;
  readonly newId: NewId;
  /** Milliseconds for which the events of a run are kept after its end. */
  readonly eventsTtl: number;
  /** Quicker ways to do the steps of every turn; the plans do the rest. */
  readonly turns?: (context: StateContext) => TurnSteps;
}

/** The steps of a turn. `undefined` or `false` means that this one is not a usual one and takes the long way. */
export interface TurnSteps {
  claim?(scope: Scope, request: ClaimRequest): Promise<Claim | undefined>;
  commit(run: RunRef, write: CommitWrite): Promise<CommitResult | undefined>;
  /** Appends events, and tells listeners everywhere. */
  append?(run: RunRef, events: readonly RunEvent[]): Promise<boolean>;
  /** Detaches a run that is handed over, together with others of the same moment. */
  sendAway?(run: RunRef, request: RunRequest, away: QueueHandoff): Promise<Snapshot | undefined>;
  /** Takes over the runs that it is asked for by their ids. */
  takeOver?(
    request: TakeOver & { readonly runIds: readonly string[] },
  ): Promise<readonly TakenRows[] | undefined>;
}

/** A store with content that can be sealed again. */
export interface SqlStore extends Store {
  /**
   * Seals everything under the first of the given keys, in batches, while the store is in use. Gives how many rows were
   * sealed anew. After it, the other keys are needed no more.
   */
  rotateKeys(): Promise<number>;
}

/** What the parts of a store share. */
export interface SqlContext extends Omit<SqlParts, 'turns'> {
  readonly state: StateContext;
  readonly gcScheduler: GcScheduler;
  readonly turns: TurnSteps | undefined;
}

/** The store over a database: every capability, whichever database it is. */
export function sqlStore(parts: SqlParts): SqlStore {
  const { db, cipher } = parts;
  const state: StateContext = {
    get database() {
      return db.id;
    },
    cipher,
    sumOf: db.sumOf,
    homes: new Map(),
  };
  const gcScheduler = new GcScheduler(parts);
  const context: SqlContext = { ...parts, state, gcScheduler, turns: parts.turns?.(state) };
  const maintenance = maintenanceSupport(context);
  return checkedStore({
    name: parts.name,
    open: () => db.open(),
    async close() {
      await gcScheduler.close();
      await db.close();
    },
    getSnapshot: (scope, lookup) => db.read(() => readSnapshot(scope, lookup, state)),
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
    rotateKeys: () => maintenance.rotateKeys(),
  });
}
