import type { Json, JsonObject } from '../../core/json/json.ts';
import type { JsonSchema } from '../../core/schema/schema.ts';
import type { ModelRef } from '../../generate/model.ts';
import type { Diff } from '../../protocol/diff.ts';
import type { Message, ToolRequestPart, ToolResponsePart } from '../../protocol/message.ts';
import type { RetryResult } from '../../protocol/requests.ts';
import type { DeadRun, RunInfo } from '../../protocol/run.ts';
import type { Page, SessionInfo } from '../../protocol/session.ts';
import type { Snapshot, SnapshotStatus } from '../../protocol/snapshot.ts';
import type { State } from '../../protocol/state.ts';
import type { Chunk, Input, Output } from '../../protocol/turn.ts';
import type { ListOptions, Lookup } from '../../store/contract/store.ts';
import type { QueueOptions } from './dispatcher.ts';

/**
 * Why a turn failed. From an agent of this process it has the message of what was thrown, the stack, and the thrown value as
 * `cause`; as JSON, and from a server, it is what remote clients may know.
 */
export interface OutputError extends NonNullable<Output['error']> {
  readonly cause?: unknown;
  readonly stack?: string | undefined;
}

/** What an agent's definition says about its types; never written by hand, always inferred. */
export interface AgentTypes {
  readonly custom: unknown;
  readonly status: unknown;
  readonly output: unknown;
}

/** What is known of an agent by its name only: everything is JSON. */
export interface WireTypes {
  readonly custom: Json | undefined;
  readonly status: Json | undefined;
  readonly output: Json | undefined;
}

/** A state whose custom part has the agent's type. */
export type StateOf<Types extends AgentTypes> = Omit<State, 'custom'> & {
  custom?: Types['custom'] | undefined;
};

/** A chunk whose status has the agent's type. */
export type ChunkOf<Types extends AgentTypes> = Omit<Chunk, 'status'> & {
  status?: Types['status'] | undefined;
};

/**
 * Why a turn failed. From an agent of this process it has the message of what was thrown, its stack, and the thrown value as
 * `cause`. As JSON, and from a server, it is what remote clients may know.
 */
export interface OutputError extends NonNullable<Output['error']> {
  readonly cause?: unknown;
  readonly stack?: string | undefined;
}

/** An output with the agent's types. */
export type OutputOf<Types extends AgentTypes> = Omit<Output, 'state' | 'output' | 'error'> & {
  error?: OutputError | undefined;
  state?: StateOf<Types> | undefined;
  output?: Types['output'] | undefined;
};

/** A snapshot with the agent's types. */
export type SnapshotOf<Types extends AgentTypes> = Omit<Snapshot, 'state'> & {
  state?: StateOf<Types> | undefined;
};

/** A session with the agent's types. */
export type SessionOf<Types extends AgentTypes> = Omit<SessionInfo, 'state'> & {
  state?: StateOf<Types> | undefined;
};

/** What every call takes. */
export interface CallOptions {
  /** Ends the wait; of a turn, stops it and keeps the partial answer. */
  readonly signal?: AbortSignal;
  /** Whose sessions: a principal's id. Another owner's ids are unknown. */
  readonly owner?: string;
}

/** Compare and set on a session's head. */
export interface IfHead {
  /** The call is `ABORTED` unless this is the head of the snapshot's session; `details.headId` names the head. */
  readonly ifHead?: string;
}

/** Where to start, and how to run. Of `snapshotId`, `sessionId` and `state` see the table in docs/semantics.md. */
export interface InvokeOptions<Types extends AgentTypes = WireTypes> extends CallOptions {
  readonly snapshotId?: string;
  readonly sessionId?: string;
  readonly state?: StateOf<Types>;
  /**
   * Compare and set: the first turn runs only while this is the head of its session (`null`: it has no snapshot yet). Otherwise
   * the call is `ABORTED` and `details.headId` names the head.
   */
  readonly ifHead?: string | null;
  /** Plain JSON for tools and handlers; kept with a detached run, so no secrets. */
  readonly context?: JsonObject;
  /** Takes the place of the agent's model for this call. */
  readonly model?: ModelRef;
  /**
   * Another process may go on with this turn when this one dies, and its events are kept in the store so that it can be
   * watched from anywhere. A server sets it for the turns it accepts. @default false
   */
  readonly accept?: boolean;
  /**
   * The input and the state come from a remote client: provider options in their metadata are dropped, so that only your
   * code decides what a provider is told. A server sets it. @default false
   */
  readonly remote?: boolean;
  /** How a run that is detached from its start waits for a worker, where the app's engine has a queue. */
  readonly queue?: QueueOptions;
}

/** What a call takes that sends one input. */
export interface RequestOptions {
  /**
   * Idempotency key, 1 to 256 characters. An input that is sent again under the same id, owner and agent within 24 hours joins
   * its first run or gets that run's output, instead of being run twice. The same id with another input is INVALID_ARGUMENT.
   */
  readonly requestId?: string;
}

/** Where to start one turn, and how to run it. */
export interface RunOptions<Types extends AgentTypes = WireTypes>
  extends InvokeOptions<Types>,
    RequestOptions {}

/** A turn's answer as it comes. */
export interface AgentStream<Types extends AgentTypes = WireTypes> {
  readonly stream: AsyncIterable<ChunkOf<Types>>;
  readonly output: Promise<OutputOf<Types>>;
}

/** Answers to interrupted tool requests. */
export interface ResumeInput {
  readonly respond?: readonly ToolResponsePart[];
  readonly restart?: readonly ToolRequestPart[];
}

/** Many turns on one line. */
export interface AgentConnection<Types extends AgentTypes = WireTypes> {
  /** Queues an input; rejects when it is not valid or the connection is closed. */
  send(input: Input): Promise<void>;
  sendText(text: string, options?: RequestOptions): Promise<void>;
  sendMessage(message: Message, options?: RequestOptions): Promise<void>;
  sendResume(resume: ResumeInput, options?: RequestOptions): Promise<void>;
  /** What comes, turn after turn. Leaving the loop ends nothing; the next one goes on where it was left. */
  receive(): AsyncIterable<ChunkOf<Types>>;
  /** As {@link AgentConnection.receive}, but ends by itself after the next `turnEnd`. */
  turn(): AsyncIterable<ChunkOf<Types>>;
  /** Goes on without the caller: what is queued, and this input, is worked off in the background. */
  detach(input?: Input): Promise<OutputOf<Types>>;
  /** Stops the running turn, keeps its partial answer, and ends the connection. */
  abort(reason?: unknown): void;
  /** No more inputs; the queued ones are still worked off. */
  close(): void;
  /** Closes the input, drains what nobody read, and waits for the end. */
  output(): Promise<OutputOf<Types>>;
  /** Resolves when the connection has ended, however it ended. */
  readonly done: Promise<void>;
}

/** A conversation that follows its own snapshot or state from turn to turn. */
export interface Chat<Types extends AgentTypes = WireTypes> {
  readonly sessionId: string | undefined;
  readonly snapshotId: string | undefined;
  readonly state: StateOf<Types> | undefined;
  send(input: string | Input, options?: CallOptions & RequestOptions): Promise<OutputOf<Types>>;
  stream(input: string | Input, options?: CallOptions & RequestOptions): AgentStream<Types>;
}

/** The place in a run's events after which to go on: `attempt.sequence`. */
export type EventId = string;

/** What a watcher sees. `reset`: another worker took the run over; what came since the last checkpoint comes again. */
export type WatchEvent<Types extends AgentTypes = WireTypes> =
  | { readonly type: 'chunk'; readonly id: EventId; readonly chunk: ChunkOf<Types> }
  | { readonly type: 'reset'; readonly id: EventId; readonly attempt: number }
  | { readonly type: 'end'; readonly snapshot: SnapshotOf<Types> };

/**
 * Why a turn failed. From an agent of this process it has the message of what was thrown, the stack, and the thrown value as
 * `cause`; as JSON, and from a server, it is what remote clients may know.
 */
export interface OutputError extends NonNullable<Output['error']> {
  readonly cause?: unknown;
  readonly stack?: string | undefined;
}

/** What an agent and its store can do, for tools that show or hide a button. */
export interface AgentMetadata {
  readonly stateManagement: 'server' | 'client';
  readonly abortable: boolean;
  readonly detachable: boolean;
  readonly watchable: boolean;
  readonly timeline: boolean;
  /** Whether two turns at once on one session are kept apart. */
  readonly claims: boolean;
  /** Whether a `requestId` keeps an input that is sent again from being run twice. */
  readonly requestIds: boolean;
  readonly store?: string;
  readonly stateSchema?: JsonSchema;
}

/** A named, typed conversational actor. The client gives the same surface over HTTP. */
export interface Agent<Types extends AgentTypes = WireTypes> {
  readonly name: string;
  readonly description?: string;
  readonly metadata: AgentMetadata;
  /** Only there for inference; always absent. */
  readonly '~types'?: Types;

  /** One turn. */
  run(input: Input, options?: RunOptions<Types>): Promise<OutputOf<Types>>;
  runText(text: string, options?: RunOptions<Types>): Promise<OutputOf<Types>>;
  stream(input: Input, options?: RunOptions<Types>): AgentStream<Types>;
  streamText(text: string, options?: RunOptions<Types>): AgentStream<Types>;
  /** Many turns on one connection. */
  streamBidi(options?: InvokeOptions<Types>): AgentConnection<Types>;
  chat(options?: InvokeOptions<Types>): Chat<Types>;

  /** `undefined` for an id that is unknown here. */
  getSnapshot(lookup: Lookup, options?: CallOptions): Promise<SnapshotOf<Types> | undefined>;
  listSnapshots(
    sessionId: string,
    options?: CallOptions & ListOptions & { readonly includeOrphaned?: boolean },
  ): Promise<Page<SnapshotOf<Types>>>;
  /** With its latest state; `undefined` for an id that is unknown here. */
  getSession(sessionId: string, options?: CallOptions): Promise<SessionOf<Types> | undefined>;
  listSessions(
    options?: CallOptions & ListOptions & { readonly query?: string },
  ): Promise<Page<SessionInfo>>;
  updateSession(
    sessionId: string,
    change: { readonly title?: string | null; readonly metadata?: JsonObject | null },
    options?: CallOptions,
  ): Promise<SessionInfo>;
  /** Erases it with all that hangs on it; `false` when there is none. */
  deleteSession(sessionId: string, options?: CallOptions): Promise<boolean>;

  /** Resolves when the snapshot has a terminal status (or reads `expired`). */
  wait(snapshotId: string, options?: CallOptions): Promise<SnapshotOf<Types>>;
  /** Past and live events of a run, in order, without gap or repeat, from any process. */
  watch(
    snapshotId: string,
    options?: CallOptions & { readonly after?: EventId },
  ): AsyncIterable<WatchEvent<Types>>;
  /** Stops a run from anywhere. Resolves to the status after the attempt, `undefined` for an unknown id. */
  abort(snapshotId: string, options?: CallOptions): Promise<SnapshotStatus | undefined>;
  /** The runs that are open, attached and detached, oldest first. */
  listRuns(options?: CallOptions): Promise<readonly RunInfo[]>;
  /** The runs that were given up because they cost too many workers, oldest first. Only an engine with a queue has any. */
  listDeadRuns(options?: CallOptions): Promise<readonly DeadRun[]>;
  /** Begins a dead run again with the inputs it had not done, as a new run of its session. An unknown one is NOT_FOUND. */
  retryRun(snapshotId: string, options?: CallOptions): Promise<RetryResult>;

  /** Moves the head of the session to this snapshot. */
  restore(snapshotId: string, options?: CallOptions & IfHead): Promise<SnapshotOf<Types>>;
  /** A new session that goes on from this snapshot. */
  fork(
    snapshotId: string,
    options?: CallOptions & IfHead & { readonly sessionId?: string },
  ): Promise<SnapshotOf<Types>>;
  diff(from: string, to: string, options?: CallOptions): Promise<Diff>;
  label(
    snapshotId: string,
    label: string | null,
    options?: CallOptions & IfHead,
  ): Promise<SnapshotOf<Types>>;
}
