import type { ErrorBody } from '../../core/error.ts';
import type { EditNote, Snapshot, SnapshotEvent, SnapshotStatus } from '../../protocol/snapshot.ts';
import type { FinishReason, Usage } from '../../protocol/turn.ts';
import type { Totals } from '../../protocol/usage.ts';
import type { RunEvent } from './event-support.ts';
import type { RequestOutcome } from './run.ts';
import type { Spend } from './spend-support.ts';
import type { StateBase, StateWrite } from './state.ts';

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
   * on, and counts as a checkpoint: after a `toolIterationEnd` within the turn, else with one more input done.
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
