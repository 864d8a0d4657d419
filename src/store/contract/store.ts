import type { ErrorBody } from '../../core/error.ts';
import type { Json, JsonObject } from '../../core/json/json.ts';
import type { JsonPatch } from '../../core/json/patch.ts';
import type { Lookup } from '../../protocol/lookup.ts';
import type { RunMode } from '../../protocol/run.ts';
import type { Page, SessionInfo } from '../../protocol/session.ts';
import type { Snapshot, SnapshotEvent, SnapshotStatus } from '../../protocol/snapshot.ts';
import type { Chunk, FinishReason, Init, Input, Usage } from '../../protocol/turn.ts';
import type { SessionState } from '../../session/session-state.ts';

/**
 * What a store must and may do. The minimum is {@link SnapshotStore}: read a snapshot, save one atomically.
 * Everything else is a capability of its own, an optional property that is looked at once, when an agent is defined.
 *
 * An id that is not a string is `INVALID_ARGUMENT` in every call.
 *
 * Times are stamped by the store, from its own clock (Postgres: the database's), so that machines whose clocks differ
 * agree on what has expired.
 */

/**
 * Whose data. Ids live under (owner, agent): another agent's or another owner's id is simply unknown. Snapshot ids are
 * UUIDs, unique over the whole store; session ids are the callers' and unique within a scope. See ids.ts.
 */
export interface Scope {
  readonly agent: string;
  readonly owner?: string;
}

export type { Lookup } from '../../protocol/lookup.ts';

/** Milliseconds after its last write at which a pending snapshot that was written by `saveSnapshot` reads `expired`. */
export const savedPendingTtl = 60_000;

/** The least a store can be: plain snapshots, saved by an atomic read-modify-write. */
export interface SnapshotStore {
  /**
   * The snapshot with its plain state, `orphaned` and `expired` worked out and `metadata.snapshotId` on the last
   * message of each turn; `undefined` when there is none in this scope. The reserved id of a turn that is being
   * worked on reads as `pending`. `{ sessionId }` gives the session's latest saved state that succeeded.
   */
  getSnapshot(scope: Scope, lookup: Lookup): Promise<Snapshot | undefined>;
  /**
   * Reads the snapshot, asks `mutate` what it should become, and writes that, as one atomic step.
   * `mutate` is synchronous, has no side effects and may be called again; `undefined` from it means "leave it".
   * A snapshot with a terminal status stays as it is, but for its label. A succeeded one becomes the head of its session,
   * which is created when it is new. The store works out index, hash, times and `orphaned`. `ABORTED` while the session is
   * being worked on; an expired attached run gives way. Resolves to what is stored afterwards.
   */
  saveSnapshot(
    scope: Scope,
    snapshotId: string,
    mutate: (current: Snapshot | undefined) => Snapshot | undefined,
  ): Promise<Snapshot | undefined>;
  /** Releases files, connections and timers. A second call waits for the first one. */
  close?(): Promise<void>;
}

/** A store with whatever capabilities it has. */
export interface Store extends SnapshotStore {
  /** Shown in metadata and logs: `memory`, `sqlite`, … */
  readonly name: string;
  /** Makes the store usable (opens files, migrates); called before the first use, safe to call again. */
  open?(): Promise<void>;
  readonly runs?: RunSupport;
  readonly abort?: AbortSupport;
  readonly events?: EventSupport;
  readonly timeline?: TimelineSupport;
  readonly maintenance?: MaintenanceSupport;
}

// Claims and runs ------------------------------------------------------------------------------------------------

export type { RunMode } from '../../protocol/run.ts';

/** A run under one attempt. Every write names it, and is refused (`ABORTED`) when the attempt is no longer current. */
export interface RunRef {
  /** The reserved snapshot id. */
  readonly runId: string;
  readonly attempt: number;
}

/** What is needed to start a run over, in this or another process. */
export interface RunRequest {
  readonly mode: RunMode;
  readonly init?: Init;
  readonly inputs: readonly Input[];
  /** The caller's context as JSON. */
  readonly context?: JsonObject;
  /** The version of the agent that accepted it. */
  readonly version?: string;
}

/** How long a request id is remembered after the end of its run, in milliseconds: 24 hours. */
export const requestTtl = 86_400_000;

/** An idempotency key that a run is claimed under. Both are SHA-256 in lower-case hex. */
export interface RequestMark {
  /** Of owner, agent and the caller's request id; unique in the store. */
  readonly key: string;
  /** Of what was asked for, to tell a retry from another request under the same id. */
  readonly digest: string;
}

/** What a store knows of a request. */
export interface RequestRecord {
  readonly runId: string;
  readonly sessionId: string;
  /** What the run came to; absent while it is open, and when it ended without its worker. */
  readonly receipt?: Json;
}

/** What a run came to, for those who ask again under its keys. Kept for {@link requestTtl}. */
export interface RequestOutcome {
  readonly keys: readonly string[];
  readonly receipt: Json;
}

export interface ClaimRequest extends RunRequest {
  readonly runId: string;
  readonly sessionId: string;
  /** `head`: the session's latest saved state; an unknown session is created. */
  readonly from: 'head' | { readonly snapshotId: string };
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
  readonly sessionId: string;
  /** The session was created by this claim. */
  readonly fresh: boolean;
  /** The snapshot the run goes on from; absent in an empty session. Always a succeeded one. */
  readonly parent?: ParentRef;
  /** The session's head when it was claimed: an id to compare a cached state with. */
  readonly headId?: string;
  /** The index that the session's next listed snapshot will have. */
  readonly nextIndex: number;
  /** What failed turns have used that started from the parent, with all before them. Looked up for `limited` requests only. */
  readonly failedTotals?: Totals;
}

/** What a turn must know of the snapshot it goes on from. */
export interface ParentRef {
  readonly snapshotId: string;
  readonly turnIndex: number;
  readonly finishReason?: FinishReason;
  /** Whether a turn of this session that ended well already goes on from it; filled in for interrupted ones only. */
  readonly answered?: boolean;
  /** `false`: it is the latest saved state only, not a snapshot. */
  readonly listed?: boolean;
  readonly totals?: Totals;
}

/** What a session has used along the path to a snapshot; kept only where an agent limits it. */
export interface Totals {
  readonly tokens: number;
  readonly toolCalls: number;
}

/** What one turn has used. */
export interface Spent {
  readonly usage: Usage;
  readonly toolCalls: number;
}

/** What a run has used up to a checkpoint, so that a takeover continues the count. */
export interface RunUsage {
  /** The turn that the checkpoint lies in. */
  readonly turn: Spent;
  /** All turns of the invocation before it. */
  readonly before: Usage;
  /** The session's totals without the turn, where an agent limits them. */
  readonly totals?: Totals;
}

/** A state as it was loaded or saved, with what its store needs to save the next one as a difference to it. */
export interface StateBase {
  readonly snapshotId: string;
  readonly state: SessionState;
  /** The store's own note of where the state lies. */
  readonly ref: unknown;
}

/** A loaded state together with its snapshot's metadata. */
export interface LoadedState extends StateBase {
  readonly snapshot: Snapshot;
}

/** A state to be written, as it grew from the one before. */
export interface StateWrite {
  /** What `state` grew from; absent when the session was empty. */
  readonly base?: StateBase;
  readonly state: SessionState;
  /** The change from the base's custom state to this one; absent: not known or unchanged, the store compares. */
  readonly customPatch?: JsonPatch;
}

/** A snapshot to be written at the end of a turn or within it. */
export interface CommitWrite extends StateWrite {
  readonly snapshotId: string;
  /** What it goes on from: the base's id. When that one is not listed, the store hangs it on the nearest listed one. */
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
  /** Appended to the run's events in the same step, so that nobody sees the end of a turn that was not saved. */
  readonly events?: readonly RunEvent[];
  /** With `end` and `failed`: the run was given up, and its request is kept in the dead-letter list. @default false */
  readonly deadLetter?: boolean;
  /** What the keys of the run are told from now on; written in the same step. */
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

/** A run as it stands, for taking it over and for showing it. */
export interface RunRecord extends RunRef, RunRequest {
  readonly scope: Scope;
  readonly sessionId: string;
  readonly worker: string;
  readonly parentId?: string;
  readonly createdAt: string;
  readonly heartbeatAt: string;
  /** No heartbeat for longer than its ttl. */
  readonly expired: boolean;
  /** Somebody asked for it to be stopped. */
  readonly stopping: boolean;
  /** How many of `inputs` the last checkpoint has behind it. */
  readonly inputsDone: number;
  /** The last checkpoint lies within the turn of the next input, after a tool iteration, not before it. */
  readonly midTurn: boolean;
  /** Workers that died with the run since its last progress (a checkpoint or a durable step), oldest first. */
  readonly crashes?: readonly RunCrash[];
}

/** A worker that died, or lost its connection, while it held a run. */
export interface RunCrash {
  readonly attempt: number;
  /** Its last heartbeat, as ISO 8601. */
  readonly lastSeenAt: string;
}

/** A run that was given up: what is needed to start it again. It is deleted with its snapshot. */
export interface DeadRunRecord extends RunRequest {
  readonly runId: string;
  readonly scope: Scope;
  readonly sessionId: string;
  readonly inputsDone: number;
  /** When it was given up, as ISO 8601. */
  readonly since: string;
  /** The error of its failed snapshot. */
  readonly error?: NonNullable<Snapshot['error']>;
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
  readonly run: RunRecord;
  /** `claim.parent` is what the run was first claimed from, never `answered`: its own snapshots do not count. */
  readonly claim: Claim;
  /** The last committed snapshot that the run goes on from: its own last one, else that of `claim.parent`. */
  readonly base?: StateBase;
  /** The state of the last checkpoint; absent when there is none and the run starts from `base`. */
  readonly checkpoint?: SessionState;
  /** What the run had used at its last checkpoint. */
  readonly used?: RunUsage;
}

/** What a heartbeat tells: go on, stop gracefully, or stop at once because the run is no longer yours. */
export type RunSignal = 'held' | 'stop' | 'lost';

/** The id under which `abort.onChange` tells that some run has been handed over as it was detached. */
export const handedOverHint = 'handed-over';

/** A transaction of a store's, for what others keep in the same database. */
export interface Transaction {
  query(text: string, values: readonly unknown[]): Promise<{ readonly rows: unknown[] }>;
}

/** How long a run that waits for a worker reads as `pending`: 24 days. */
export const waitingTtl = 2_147_483_647;

/** For whom a run is let go of as it is detached. It does not expire, and waits for a `takeOver` with its id. */
export interface QueueHandoff {
  /** The name of the worker that it waits under. */
  readonly worker: string;
  /**
   * Writes to the same database in the same transaction; may be called again. Runs that are detached at the same time may
   * share a transaction, and are then called together with the same one. Only where `runs.transactional`.
   */
  readonly within?: (transaction: Transaction) => Promise<void>;
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
  /** The state to go on from, verified against its hash (`DATA_LOSS`); `undefined` when there is none. */
  load(scope: Scope, lookup: Lookup): Promise<LoadedState | undefined>;
  /** Prolongs the claim. */
  heartbeat(run: RunRef): Promise<RunSignal>;
  /**
   * Changes an attached run into a detached one with these inputs, and lists its pending snapshot. With `handOver` it is
   * let go of in the same step. `events` are appended in that step, too: a run that is taken over does not send them again.
   */
  detach(
    run: RunRef,
    request: RunRequest,
    handOver?: QueueHandoff,
    events?: readonly RunEvent[],
  ): Promise<Snapshot>;
  /** Keeps the state reached so far with the pending run, for whoever takes it over. Never listed, never the head. */
  checkpoint(
    run: RunRef,
    write: StateWrite & {
      readonly stateHash: string;
      readonly inputsDone: number;
      readonly midTurn: boolean;
      /** As in {@link CommitWrite}: a run that is taken over at this checkpoint does not send them again. */
      readonly events?: readonly RunEvent[];
      readonly used?: RunUsage;
    },
  ): Promise<StateBase>;
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
  /** Lets go of an accepted or detached run at once, as if its claim had expired, so that another may take it over. */
  handOver(run: RunRef): Promise<void>;
  /**
   * After an abort of a detached run: puts the partial state on its `aborted` snapshot, once, for inspection, and what the run
   * has used. Does nothing when the row is not an aborted one of this attempt.
   */
  attachPartial(run: RunRef, write: PartialWrite): Promise<void>;
  /** The recorded result of a durable step; `undefined` when it has not been recorded. */
  getStep(run: RunRef, key: string): Promise<{ readonly value: Json | undefined } | undefined>;
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
  /** The open run with this reserved id. */
  getRun(scope: Scope, runId: string): Promise<RunRecord | undefined>;
  /** Open runs, oldest first; without a scope those of everybody. */
  listRuns(scope?: Scope): Promise<readonly RunRecord[]>;
  /** The dead-letter list, oldest first; without a scope that of everybody. */
  listDeadRuns?(scope?: Scope): Promise<readonly DeadRunRecord[]>;
  /** Removes a run from the dead-letter list; `false` when it was not there. Its failed snapshot stays. */
  dropDeadRun?(scope: Scope, runId: string): Promise<boolean>;
}

// Abort and watch ------------------------------------------------------------------------------------------------

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

/** One event of a run. `attempt.seq` is the cursor that a reader comes back with. */
export interface RunEvent {
  readonly attempt: number;
  readonly seq: number;
  readonly chunk: Chunk;
}

/** The place in a run's events after which to go on. */
export interface EventCursor {
  readonly attempt: number;
  readonly seq: number;
}

/** What an aborted run had come to. */
export interface PartialWrite extends StateWrite {
  readonly stateHash: string;
  readonly usage?: Usage;
  readonly totals?: Totals;
}

/** Events of detached and accepted runs, kept until shortly after the end. */
export interface EventSupport {
  /** Appends events in order; refused (`ABORTED`) when the attempt is no longer current or the run is over. */
  append(run: RunRef, events: readonly RunEvent[]): Promise<void>;
  /**
   * Events after the cursor, in order of (attempt, seq), at most `limit`. `ended`: the run is over and these are the last.
   * `undefined` when nothing is known of the run (never was, or its events have been dropped).
   */
  read(
    scope: Scope,
    runId: string,
    options: { readonly after?: EventCursor; readonly limit: number },
  ): Promise<{ readonly events: readonly RunEvent[]; readonly ended: boolean } | undefined>;
  /** Calls back soon after events were appended or the run ended, from any process. A hint: read again. */
  onEvents(runId: string, listener: () => void): () => void;
}

// Timeline -------------------------------------------------------------------------------------------------------

export interface ListOptions {
  /** @default 50 */
  readonly limit?: number;
  readonly cursor?: string;
}

/** Compare and set: a caller that has read an older head changes nothing. */
export interface ExpectHead {
  /** When present, the head of the snapshot's session must still be this one, else `ABORTED` with `details.headId`. */
  readonly expectHead?: string;
}

/** Sessions and their trees: heads, branches, labels. */
export interface TimelineSupport {
  /** With its latest state when `state` is asked for. */
  getSession(
    scope: Scope,
    sessionId: string,
    options?: { readonly state?: boolean },
  ): Promise<SessionInfo | undefined>;
  /** Newest first; `query` looks in id, title and metadata. */
  listSessions(
    scope: Scope,
    options?: ListOptions & { readonly query?: string },
  ): Promise<Page<SessionInfo>>;
  /** `null` removes the title. `NOT_FOUND` when there is no such session. */
  updateSession(
    scope: Scope,
    sessionId: string,
    change: { readonly title?: string | null; readonly metadata?: JsonObject | null },
  ): Promise<SessionInfo>;
  /**
   * Erases the session with its snapshots, runs, events, steps and its sub-agents' sessions; what a fork shares stays.
   * `ABORTED` when it is being worked on. `false` when there is no such session.
   */
  deleteSession(scope: Scope, sessionId: string): Promise<boolean>;
  /** Metadata only, by index ascending, pending ones included; one query. */
  listSnapshots(
    scope: Scope,
    sessionId: string,
    options?: ListOptions & { readonly includeOrphaned?: boolean },
  ): Promise<Page<Snapshot>>;
  /**
   * Moves the head. Checked in this order: `NOT_FOUND` for an unknown id; `FAILED_PRECONDITION` unless it succeeded;
   * `ABORTED` while the session is being worked on, or when the head is not the expected one. An expired attached run
   * gives way, as to a claim, so that it cannot move the head back later.
   */
  restore(scope: Scope, snapshotId: string, options?: ExpectHead): Promise<Snapshot>;
  /** A new session under `sessionId` whose first snapshot shares the state of this one without copying it. */
  fork(
    scope: Scope,
    snapshotId: string,
    target: { readonly sessionId: string; readonly snapshotId: string } & ExpectHead,
  ): Promise<Snapshot>;
  /** `null` removes the label. */
  label(
    scope: Scope,
    snapshotId: string,
    label: string | null,
    options?: ExpectHead,
  ): Promise<Snapshot>;
}

// Maintenance ----------------------------------------------------------------------------------------------------

/** What to keep. A snapshot goes when `olderThan` or `keepLast` says so and nothing below keeps it. */
export interface RetentionPolicy {
  /** Per session, the newest n snapshots stay. */
  readonly keepLast?: number;
  /** Milliseconds since the last write. */
  readonly olderThan?: number;
  /** @default true */
  readonly keepLabelled?: boolean;
  /** Whole sessions that never go, by id. */
  readonly keepSessions?: readonly string[];
  /** Also drops sessions of which nothing but an old head would be left. @default false */
  readonly dropSessions?: boolean;
}

export interface PruneReport {
  readonly snapshots: number;
  readonly sessions: number;
}

/** A fault that `verify` found. */
export interface Fault {
  /** `unfinished`: a file ends within a line, because a process died while it wrote or because it was cut. */
  readonly kind: 'hash' | 'parent' | 'head' | 'unreachable' | 'run' | 'unfinished';
  readonly sessionId?: string;
  readonly snapshotId?: string;
  readonly message: string;
}

/** One session as one JSON document, with its whole tree. */
export interface SessionExport {
  readonly format: 1;
  readonly session: SessionInfo;
  /** Messages, custom states and artifacts each stand once; snapshots name them by hash. */
  readonly content: JsonObject;
  readonly snapshots: readonly JsonObject[];
}

/** Keeping a store small, whole and portable. */
export interface MaintenanceSupport {
  /** Never breaks a live branch, a head, or a pending interrupt. Without a scope, over the whole store. */
  prune(policy: RetentionPolicy, scope?: Scope): Promise<PruneReport>;
  /** Erases all sessions of one owner over all agents. */
  eraseOwner(owner: string): Promise<number>;
  /** Walks the store; an empty list means that it is whole. */
  verify(options?: { readonly onProgress?: (done: number) => void }): Promise<readonly Fault[]>;
  exportSession(scope: Scope, sessionId: string): Promise<SessionExport | undefined>;
  /** `ALREADY_EXISTS` when the id is taken; `sessionId` gives it another. Hashes are checked (`DATA_LOSS`). */
  importSession(
    scope: Scope,
    document: SessionExport,
    options?: { readonly sessionId?: string },
  ): Promise<SessionInfo>;
}
