import type { Json, JsonObject } from '../../core/json/json.ts';
import type { JsonPatch } from '../../core/json/patch.ts';
import type { Message } from '../../protocol/message.ts';
import type { RunMode } from '../../protocol/run.ts';
import type { SessionInfo } from '../../protocol/session.ts';
import type { Snapshot } from '../../protocol/snapshot.ts';
import type { FinishReason, Init, Input, Usage } from '../../protocol/turn.ts';
import type { Totals } from '../../protocol/usage.ts';
import type { SessionState } from '../../session/session-state.ts';
import type { Scope } from './snapshot-store.ts';

/** A run under one attempt. Every write names it, and is refused (`ABORTED`) when the attempt is no longer current. */
export interface RunRef {
  /** The reserved snapshot id. */
  readonly runId: string;
  /** The attempt number, a fencing token. */
  readonly attempt: number;
}

/** The data that starts a run over, in this or another process. */
export interface RunRequest {
  /** Whether a caller waits for it. */
  readonly mode: RunMode;
  /** The state that it starts from. */
  readonly init?: Init;
  /** The inputs, in order. */
  readonly inputs: readonly Input[];
  /** The caller's context as JSON. */
  readonly context?: JsonObject;
  /** The version of the agent that accepted it. */
  readonly version?: string;
  /** Keeps messages that the run leaves in its inbox for the session's next run that keeps its inbox. @default false */
  readonly keepInbox?: boolean;
  /** The run has no inputs: it undoes effects and then moves the head. */
  readonly undo?: UndoRequest;
}

/** A restore that undoes effects first. */
export interface UndoRequest {
  /** The snapshot that becomes the head. */
  readonly to: string;
  /** The plan that was approved; absent: whatever can be undone now. */
  readonly planId?: string;
  /** Also undoes what another branch needs, and restores although something cannot be undone. @default false */
  readonly force?: boolean;
  /** Whether the files of the workspace are restored as well. @default true */
  readonly workspace?: boolean;
}

/** A run as it stands, for taking it over and for showing it. */
export interface RunRecord extends RunRef, RunRequest {
  /** The agent and the owner. */
  readonly scope: Scope;
  /** The session. */
  readonly sessionId: string;
  /** The worker that holds the claim. */
  readonly worker: string;
  /** The snapshot that the run started from. */
  readonly parentId?: string;
  /** When the run was accepted, as ISO 8601. */
  readonly createdAt: string;
  /** The last heartbeat, as ISO 8601. */
  readonly heartbeatAt: string;
  /** No heartbeat for longer than its ttl. */
  readonly expired: boolean;
  /** An abort was requested. */
  readonly stopping: boolean;
  /** How many of `inputs` the last checkpoint has behind it. */
  readonly inputsDone: number;
  /** The last checkpoint lies within the turn of the next input, after a tool iteration, not before it. */
  readonly midTurn: boolean;
  /** Its inbox has messages. */
  readonly steered?: true;
  /** Workers that died with the run since its last progress (a checkpoint or a durable step), oldest first. */
  readonly crashes?: readonly RunCrash[];
}

/** A worker that died, or lost its connection, while it held a run. */
export interface RunCrash {
  /** The attempt that crashed. */
  readonly attempt: number;
  /** Its last heartbeat, as ISO 8601. */
  readonly lastSeenAt: string;
}

/** A run that was given up: what is needed to start it again. It is deleted with its snapshot. */
export interface DeadRunRecord
  extends RunRequest,
    Pick<RunRecord, 'runId' | 'scope' | 'sessionId' | 'inputsDone'> {
  /** When it was given up, as ISO 8601. */
  readonly since: string;
  /** The error of its failed snapshot. */
  readonly error?: NonNullable<Snapshot['error']>;
}

/**
 * The answer to a heartbeat: continue, continue and read the inbox, stop gracefully, or stop at once because another worker
 * has the run.
 */
export type RunSignal = 'held' | 'steered' | 'stop' | 'lost';

/** How long a request id is remembered after the end of its run, in milliseconds: 24 hours. */
export const requestTtl = 86_400_000;

/** An idempotency key that a run is claimed under. Both are SHA-256 in lower-case hex. */
export interface RequestMark {
  /** A hash of owner, agent and the caller's request id; unique in the store. */
  readonly key: string;
  /** A hash of the request, to tell a retry from another request under the same id. */
  readonly digest: string;
}

/** A request that the store knows. */
export interface RequestRecord extends Pick<RunRecord, 'runId' | 'sessionId'> {
  /** The result of the run; absent while it is open, and when it ended without its worker. */
  readonly receipt?: Json;
}

/** The result of a run, for repeated requests under its keys. Kept for {@link requestTtl}. */
export interface RequestOutcome {
  /** The idempotency keys that the run answers. */
  readonly keys: readonly string[];
  /** The result that a repeated request gets. */
  readonly receipt: Json;
}

/** A message for a running turn. */
export interface SteeringMessage {
  /** Chosen by the sender: the same id twice is the same message. */
  readonly id: string;
  /** The message to add. */
  readonly message: Message;
  /** The run that it was sent to, if that run has ended without it. @default the run whose inbox has it */
  readonly runId?: string;
}

/** The most messages that the inbox of one run takes, and the most characters of JSON that they may have together. */
export const inboxLimits = { messages: 100, length: 1_000_000 } as const;

/** The id under which `abort.onChange` tells that some run has been handed over as it was detached. */
export const handedOverHint = 'handed-over';

/** A transaction of a store's, for what others keep in the same database. */
export interface Transaction {
  /** Runs one statement inside the transaction. */
  query(text: string, values: readonly unknown[]): Promise<{ readonly rows: unknown[] }>;
}

/** How long a run that waits for a worker reads as `pending`: 24 days. */
export const waitingTtl = 2_147_483_647;

/** The worker that a detached run is handed over to. Such a run does not expire; it waits for a `takeOver` with its id. */
export interface QueueHandoff {
  /** The name of the worker that it waits under. */
  readonly worker: string;
  /**
   * Writes to the same database in the same transaction; may be called again. Runs that are detached at the same time may
   * share a transaction, and are then called together with the same one. Only where `runs.transactional`.
   */
  readonly within?: (transaction: Transaction) => Promise<void>;
}

/** A state as it was loaded or saved, with what its store needs to save the next one as a difference to it. */
export interface StateBase {
  /** The id of the snapshot. */
  readonly snapshotId: string;
  /** Its state. */
  readonly state: SessionState;
  /** The store's own note of where the state lies. */
  readonly ref: unknown;
}

/** The state that a checkpoint has saved. */
export interface Checkpointed extends StateBase {
  /** How many messages the run's own inbox has. A store that has no inboxes leaves it out. */
  readonly inbox?: number;
}

/** A loaded state together with its snapshot's metadata. */
export interface LoadedState extends StateBase {
  /** The snapshot, without its state. */
  readonly snapshot: Snapshot;
}

/** A state to be written, as it grew from the one before. */
export interface StateWrite {
  /** The state that `state` grew from; absent when the session was empty. */
  readonly base?: StateBase;
  /** The state to write. */
  readonly state: SessionState;
  /** The change from the base's custom state to this one; absent: not known or unchanged, the store compares. */
  readonly customPatch?: JsonPatch;
}

/** The partial result of an aborted run. */
export interface PartialWrite extends StateWrite {
  /** The hash of the state. */
  readonly stateHash: string;
  /** Tokens and cost so far. */
  readonly usage?: Usage;
  /** The usage of the session so far. */
  readonly totals?: Totals;
}

/** The usage of one turn. */
export interface Spent {
  /** Tokens and cost. */
  readonly usage: Usage;
  /** Number of tool calls. */
  readonly toolCalls: number;
}

/** The usage of a run up to a checkpoint, so that a takeover continues the count. */
export interface RunUsage {
  /** The turn that the checkpoint lies in. */
  readonly turn: Spent;
  /** All turns of the invocation before it. */
  readonly before: Usage;
  /** The session's totals without the turn, where an agent limits them. */
  readonly totals?: Totals;
}

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
