import type { ErrorBody } from '../../core/error.ts';
import type { Json } from '../../core/json/json.ts';
import type { Lookup } from '../../protocol/ids.ts';
import type { EditNote, Snapshot, SnapshotEvent, SnapshotStatus } from '../../protocol/snapshot.ts';
import type { FinishReason, Usage } from '../../protocol/turn.ts';
import type { Totals } from '../../protocol/usage.ts';
import type { RunEvent } from './event-support.ts';
import type { MemoryWrite } from './memory-support.ts';
import type {
  Checkpointed,
  Claim,
  ClaimRequest,
  DeadRunRecord,
  LoadedState,
  PartialWrite,
  QueueHandoff,
  RequestOutcome,
  RequestRecord,
  RunRecord,
  RunRef,
  RunRequest,
  RunSignal,
  RunUsage,
  StateBase,
  StateWrite,
  SteeringMessage,
  SuspectLimit,
  TakenRun,
} from './run.ts';
import type { Scope } from './snapshot-store.ts';
import type { Spend } from './spend-support.ts';

/** A snapshot to be written at the end of a turn or within it. */
export interface CommitWrite extends StateWrite {
  /** The id of the snapshot. */
  readonly snapshotId: string;
  /** The id of the base it continues from. If that one is not listed, its parent is the nearest listed ancestor. */
  readonly parentId?: string;
  /** The index of the turn. */
  readonly turnIndex: number;
  /** The cause of the snapshot. */
  readonly event: SnapshotEvent;
  /** How the turn ended. */
  readonly status: Exclude<SnapshotStatus, 'pending' | 'expired'>;
  /** The turn's finish reason. */
  readonly finishReason?: FinishReason;
  /** Why the turn failed. */
  readonly error?: ErrorBody;
  /** The note of an `edit`, which always succeeds and so has no error. */
  readonly edit?: EditNote;
  /** Tokens and cost of the turn. */
  readonly usage?: Usage;
  /** The tool calls of the turn so far; only needed where the run continues. */
  readonly toolCalls?: number;
  /** The usage of the session up to it. */
  readonly totals?: Totals;
  /** The spend that is not recorded yet; recorded in the same step. */
  readonly spend?: Spend;
  /** The entries that the turn has remembered and was given; saved in the same step. Only in a store with memory. */
  readonly memory?: MemoryWrite;
  /** The hash of the state. */
  readonly stateHash: string;
  /**
   * `false` (succeeded ones only): saved as the session's latest state, not as a snapshot. It is the head, reads with
   * index -1, stands in no list, nothing hangs on it, and it is replaced by the next succeeded commit that continues from
   * it. It is never lost: when the head leaves it otherwise (a restore, a commit that continues from elsewhere), or it
   * gets a label, it is listed first. @default true
   */
  readonly listed?: boolean;
  /**
   * Ends the run and frees the session. `false` for a snapshot in the middle of a run, which then is what the run hangs
   * on, and counts as a checkpoint: after a `toolIterationEnd` within the turn, else with one more input done. An `edit` within a run has
   * what others changed in the workspace before its turn: as many inputs are done, and a run that was claimed elsewhere stays as it is.
   */
  readonly end: boolean;
  /** Appended to the run's events in the same step, so that subscribers never see the end of a turn that was not saved. */
  readonly events?: readonly RunEvent[];
  /**
   * With `end`: how many messages of the inbox the state has. The commit is refused (`FAILED_PRECONDITION` with
   * `details.inbox`) when the inbox has more: the turn has to take them before it ends. Absent: none, and it may have more.
   */
  readonly steered?: number;
  /** With `end`: the turn ends without the rest of its inbox. A run with `keepInbox` leaves it to the next one. @default false */
  readonly leavesInbox?: boolean;
  /** With `end` and `failed`: the run was given up, and its request is kept in the dead-letter queue. @default false */
  readonly deadLetter?: boolean;
  /** The result for the run's idempotency keys; written in the same step. */
  readonly requests?: RequestOutcome;
  /** The title for a session that has none; written in the same step. */
  readonly defaultTitle?: string;
}

/** Whether a snapshot lies within a turn. Such a one is not the head before the turn has ended well. */
export function isWithinTurn({ event, end }: Pick<CommitWrite, 'event' | 'end'>): boolean {
  return event === 'toolIterationEnd' && !end;
}

/** The result of a commit. A succeeded snapshot that ends a turn has become the head. */
export interface Committed {
  /** The state that the next turn starts from. */
  readonly base: StateBase;
  /** The stored snapshot, without its state. */
  readonly snapshot: Snapshot;
}

/** Claims: one run at a time works on a session; recovery: an expired one is taken over. */
export interface RunSupport {
  /** Whether others can write in the transaction that detaches a run. @default false */
  readonly transactional?: boolean;
  /**
   * Accepts a run: records its inputs under the reserved id and marks the session as being worked on. One round trip.
   * `ABORTED` with `details.running` when another run holds the session, or the head is not the expected one;
   * `NOT_FOUND` for a `from` that is unknown or of another session; `FAILED_PRECONDITION` when it has not succeeded. An expired `attached` run gives way and stays behind as a snapshot that reads `expired`.
   */
  claim(scope: Scope, request: ClaimRequest): Promise<Claim>;
  /** The state to continue from, verified against its hash (`DATA_LOSS`); `undefined` when there is none. */
  load(scope: Scope, lookup: Lookup): Promise<LoadedState | undefined>;
  /** Prolongs the claim. */
  heartbeat(run: RunRef): Promise<RunSignal>;
  /**
   * Changes an attached run into a detached one with these inputs, and lists its pending snapshot. With `handOver` it is
   * released in the same step. `events` are appended in that step, too: a run that is taken over does not send them again.
   */
  detach(
    run: RunRef,
    request: RunRequest,
    handOver?: QueueHandoff,
    events?: readonly RunEvent[],
  ): Promise<Snapshot>;
  /** Saves the state reached so far with the pending run, for a takeover. Never listed, never the head. */
  checkpoint(
    run: RunRef,
    write: StateWrite & {
      readonly stateHash: string;
      readonly inputsDone: number;
      readonly midTurn: boolean;
      /** As in {@link CommitWrite}: a run that is taken over at this checkpoint does not send them again. */
      readonly events?: readonly RunEvent[];
      readonly used?: RunUsage;
      /** As in {@link CommitWrite}. */
      readonly spend?: Spend;
      /** As in {@link CommitWrite}, without new versions: they are in its note. */
      readonly memory?: MemoryWrite;
    },
  ): Promise<Checkpointed>;
  /**
   * Writes a snapshot, moves the head when it succeeded and is not within a turn, ends the run when asked to: one transaction. The row of a
   * detached run keeps its index, its parent and `createdAt`. `ALREADY_EXISTS` when the id is another snapshot's.
   */
  commit(run: RunRef, write: CommitWrite): Promise<Committed>;
  /**
   * Ends the run without a snapshot and frees the session; `events` and `requests` as in {@link CommitWrite}. Without
   * `requests` its keys are free again, and a session that has no snapshot, title, metadata, events or sub-sessions is removed:
   * a turn that was refused leaves nothing behind.
   * `FAILED_PRECONDITION` for a detached one: its pending snapshot needs a terminal status.
   */
  release(run: RunRef, events?: readonly RunEvent[], requests?: RequestOutcome): Promise<void>;
  /** Puts another receipt in place of the one that the run ended with; keys that belong to another run by now stay as they are. */
  replaceReceipt(runId: string, requests: RequestOutcome): Promise<void>;
  /** The run that was claimed under a key: see {@link RequestMark}. */
  getRequest(key: string): Promise<RequestRecord | undefined>;
  /** Releases an accepted or detached run at once, as if its claim had expired, so that another worker can take it over. */
  handOver(run: RunRef): Promise<void>;
  /**
   * After an abort of a detached run: puts the partial state on its `aborted` snapshot, once, for inspection, and what the run
   * has used. Does nothing when the row is not an aborted one of this attempt.
   */
  attachPartial(run: RunRef, write: PartialWrite): Promise<void>;
  /** The recorded result of a durable step; `undefined` when it has not been recorded. */
  getStep(run: RunRef, key: string): Promise<{ readonly value: Json | undefined } | undefined>;
  /** Records the result of a durable step. Stale attempts are rejected. */
  saveStep(run: RunRef, key: string, value: Json | undefined): Promise<void>;
  /**
   * Takes over expired `accepted` and `detached` runs of these agents, with a higher attempt. A run that has expired without
   * having been handed over counts a crash of its worker, unless that worker is the one that takes it over.
   */
  takeOver(request: {
    readonly agents: readonly string[];
    readonly worker: string;
    readonly ttl: number;
    readonly limit: number;
    /** Only these runs; `limit` does not count for them. */
    readonly runIds?: readonly string[];
    /** With `runIds`: also one that has not expired but waits under this name, as {@link QueueHandoff} left it. */
    readonly waitingAs?: string;
    /** None whose worker's name begins with this. */
    readonly exceptWorker?: string;
    /** Limits how many suspects are taken; those with the fewest crashes first. @default all */
    readonly suspects?: SuspectLimit;
  }): Promise<readonly TakenRun[]>;
  /**
   * Adds a message to the inbox of an open run, and tells its worker through `abort.onChange`. `true`: the inbox has it, perhaps
   * from an earlier call with the same id. `false`: no run with this id takes messages; it has ended or is being stopped.
   * `INVALID_ARGUMENT` when the id is another message's; `RESOURCE_EXHAUSTED` when the inbox is full: see `inboxLimits`.
   */
  steer?(scope: Scope, runId: string, message: SteeringMessage): Promise<boolean>;
  /**
   * The inbox of a run, oldest first. For a run with `keepInbox` it begins with what earlier runs of the session have left, and what this
   * run has not taken stays when it ends: see {@link CommitWrite.steered}. Otherwise it is deleted with the run.
   */
  readInbox?(run: RunRef): Promise<readonly SteeringMessage[]>;
  /** The messages that the runs of a session have left in their inboxes, oldest first. They are deleted after the run that takes them has ended. */
  readLeftInbox?(scope: Scope, sessionId: string): Promise<readonly SteeringMessage[]>;
  /** The open run with this reserved id. */
  getRun(scope: Scope, runId: string): Promise<RunRecord | undefined>;
  /** Open runs, oldest first; without a scope those of everybody. */
  listRuns(scope?: Scope): Promise<readonly RunRecord[]>;
  /** The dead-letter queue, oldest first; without a scope that of everybody. */
  listDeadRuns?(scope?: Scope): Promise<readonly DeadRunRecord[]>;
  /** Removes a run from the dead-letter queue; `false` when it was not there. Its failed snapshot stays. */
  dropDeadRun?(scope: Scope, runId: string): Promise<boolean>;
}

/** Stopping a run from anywhere, and hearing of it at once. */
export interface AbortSupport {
  /**
   * One atomic change. A detached run's pending snapshot becomes `aborted` and its session is free, and so does that of
   * an accepted run that has expired; any other attached or accepted one is asked to stop and stays `pending`.
   * Resolves to the status afterwards, as it reads; `undefined` for an unknown id.
   */
  abortSnapshot(scope: Scope, snapshotId: string): Promise<SnapshotStatus | undefined>;
  /**
   * Calls back soon after anything about this run or snapshot may have changed (stop asked for, status, end), from any
   * process. A hint: read again. Returns the way to stop listening.
   */
  onChange(snapshotId: string, listener: () => void): () => void;
}
