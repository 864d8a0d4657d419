import type { ErrorBody } from '../../core/error.ts';
import type { Snapshot, SnapshotEvent, SnapshotStatus } from '../../protocol/snapshot.ts';
import type { FinishReason, Usage } from '../../protocol/turn.ts';
import type { RunEvent } from './event-support.ts';
import type { RequestOutcome } from './request.ts';
import type { StateBase, StateWrite } from './state.ts';
import type { Totals } from './usage.ts';

/** A snapshot to be written at the end of a turn or within it. */
export interface CommitWrite extends StateWrite {
  readonly snapshotId: string;
  /** The id of the base it continues from. If that one is not listed, its parent is the nearest listed ancestor. */
  readonly parentId?: string;
  readonly turnIndex: number;
  readonly event: SnapshotEvent;
  readonly status: Exclude<SnapshotStatus, 'pending' | 'expired'>;
  readonly finishReason?: FinishReason;
  readonly error?: ErrorBody;
  readonly usage?: Usage;
  /** The tool calls of the turn so far; only needed where the run continues. */
  readonly toolCalls?: number;
  readonly totals?: Totals;
  readonly stateHash: string;
  /**
   * `false` (succeeded ones only): saved as the session's latest state, not as a snapshot. It is the head, reads with
   * index -1, stands in no list, nothing hangs on it, and it is replaced by the next succeeded commit that goes on from
   * it. It is never lost: when the head leaves it in another way (a restore, a commit that goes on from elsewhere), or it
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
  /** With `end` and `failed`: the run was given up, and its request is kept in the dead-letter list. @default false */
  readonly deadLetter?: boolean;
  /** The result for the run's idempotency keys; written in the same step. */
  readonly requests?: RequestOutcome;
}

/** Whether a snapshot lies within a turn. Such a one is not the head before the turn has ended well. */
export function isWithinTurn({ event, end }: Pick<CommitWrite, 'event' | 'end'>): boolean {
  return event === 'toolIterationEnd' && !end;
}

/** What a commit gave. A succeeded snapshot that ends a turn has become the head. */
export interface Committed {
  readonly base: StateBase;
  readonly snapshot: Snapshot;
}
