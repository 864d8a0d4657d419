import type { SessionInfo } from '../../protocol/session.ts';
import type { FinishReason } from '../../protocol/turn.ts';
import type { Totals } from '../../protocol/usage.ts';
import type { SessionState } from '../../session/session-state.ts';
import type { RequestMark, RunRecord, RunRef, RunRequest } from './run.ts';
import type { RunUsage, StateBase } from './state.ts';

/**
 * A run to accept. With `mode: 'detached'` the claim also lists the pending snapshot, as `detach` does, and says so in `Claim.detached`: a run
 * and its idempotency keys are accepted in one write.
 */
export interface ClaimRequest extends RunRequest {
  /** The reserved snapshot id. */
  readonly runId: string;
  /** The session. */
  readonly sessionId: string;
  /** `head`: the session's latest saved state; `null`: the empty state, as another root. An unknown session is created by both. */
  readonly from: 'head' | null | { readonly snapshotId: string };
  /** When present, the head must still be this one (`null`: none yet), else `ABORTED` with `details.headId`. */
  readonly expectHead?: string | null;
  /** Milliseconds without a heartbeat after which the claim has expired. */
  readonly ttl: number;
  /** Who holds the claim; for people to read. */
  readonly worker: string;
  /** The session in which this one is started as a sub-agent; kept when the session is created. */
  readonly startedBy?: SessionInfo['startedBy'];
  /** The agent limits its sessions: `failedTotals` is needed. @default false */
  readonly limited?: boolean;
  /**
   * Idempotency keys to claim with it. They are checked before anything else: `ALREADY_EXISTS` with `details.request`
   * (`runId` and `sessionId`) when one belongs to a run that is open or has ended with a snapshot or a receipt;
   * `INVALID_ARGUMENT` when its digest is another one. The key of a run that was released without a receipt, and of an
   * attached one whose process died, passes to the new run; an expired attached run gives way and can save nothing any more.
   */
  readonly requests?: readonly RequestMark[];
}

export interface Claim extends RunRef {
  /** The session. */
  readonly sessionId: string;
  /** The session was created by this claim. */
  readonly fresh: boolean;
  /** The snapshot the run continues from; absent in an empty session. Always a succeeded one. */
  readonly parent?: ParentRef;
  /** The session's head when it was claimed: an id to compare a cached state with. */
  readonly headId?: string;
  /** The index that the session's next listed snapshot will have. */
  readonly nextIndex: number;
  /** The usage of failed turns that started from the parent, with all before them. Looked up for `limited` requests only. */
  readonly failedTotals?: Totals;
  /** With `keepInbox`: an earlier run has left messages, which the inbox begins with. */
  readonly steered?: true;
  /** The claim has listed the pending snapshot of a detached run. Without it, the agent calls `detach` for that. */
  readonly detached?: true;
}

/** The snapshot that a turn continues from. */
export interface ParentRef {
  /** The id of the snapshot. */
  readonly snapshotId: string;
  /** The index of its turn. */
  readonly turnIndex: number;
  /** How its turn ended. */
  readonly finishReason?: FinishReason;
  /** Whether a successful turn of this session already continues from it, or from an edit of it; set for interrupted ones only. */
  readonly answered?: boolean;
  /** `false`: it is the latest saved state only, not a snapshot. */
  readonly listed?: boolean;
  /** The usage of the session up to it. */
  readonly totals?: Totals;
}

/** How many suspects a takeover may take: runs whose workers have died since their last progress. */
export interface SuspectLimit {
  /** At most so many suspects. */
  readonly limit: number;
  /** Only suspects that have lost at most so many workers, the last one included. */
  readonly maxCrashes: number;
  /** Runs that have lost so many are no suspects any more: they are taken to be given up. */
  readonly attempts: number;
}

/** A run taken over: the new attempt, and the state of its last checkpoint, or of its parent when it had none. */
export interface TakenRun {
  /** The run as it is stored. */
  readonly run: RunRecord;
  /** `claim.parent` is what the run was first claimed from, never `answered`: its own snapshots do not count. */
  readonly claim: Claim;
  /** The last committed snapshot that the run continues from: its own last one, else that of `claim.parent`. */
  readonly base?: StateBase;
  /** The state of the last checkpoint; absent when there is none and the run starts from `base`. */
  readonly checkpoint?: SessionState;
  /** The usage of the run at its last checkpoint. */
  readonly used?: RunUsage;
}
