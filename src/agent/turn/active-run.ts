import type { Snapshot } from '../../protocol/snapshot.ts';
import type { EventLog } from '../persistence/event-log.ts';
import type { TurnBase } from '../spec/turn-store.ts';

/** The run that is being worked on: one per turn, or one for all inputs that were queued when the caller detached. */
export interface ActiveRun {
  readonly runId: string;
  readonly turnBase: TurnBase;
  readonly log: EventLog;
  /** Stops renewing the run's claim. */
  readonly stopHeartbeat: () => void;
  /** Renews it again. */
  readonly resumeHeartbeat: () => void;
  readonly steering: RunSteering;
  /** The idempotency keys that the run was claimed with. */
  readonly keys: readonly string[];
  /** For a detached run: how many inputs are done, whether the run has ended, and why its end could not be saved. */
  detached?: {
    inputsDone: number;
    /** Its final snapshot, if the run has ended together with its last turn. */
    ended?: Snapshot;
    over?: boolean;
    trouble?: unknown;
  };
  /** Called for each new checkpoint and durable step. */
  onProgress?: () => void;
}

/** The inbox of a run, as its worker knows it. */
export interface RunSteering {
  /** Whether there may be messages that the turn has not taken. */
  isHinted: boolean;
  /** Settles when a hint that has just come is looked up in the store. */
  looking?: Promise<void> | undefined;
  /** The messages of the inbox that the state has, each by its run and id. */
  readonly taken: Set<string>;
  /** Another worker had the run: its last checkpoint may have messages of the inbox, which was not read yet. */
  isUnread?: boolean;
}
