import type {
  AgentConnection,
  AgentStream,
  AgentTypes,
  Chat,
  EventId,
  IfHead,
  OutputOf,
  RequestOptions,
  SessionOf,
  SnapshotOf,
  StateOf,
  WatchEvent,
  WireTypes,
} from '../agent/spec/agent.ts';
import type { Diff } from '../protocol/diff.ts';
import type { AgentInfo, RetryResult, SessionChange } from '../protocol/requests.ts';
import type { DeadRun, RunInfo } from '../protocol/run.ts';
import type { Page, SessionInfo } from '../protocol/session.ts';
import type { SnapshotStatus } from '../protocol/snapshot.ts';
import type { Input } from '../protocol/turn.ts';
import type { ListOptions, Lookup } from '../store/contract/store.ts';

/** What every call over the wire takes. Owner and context are not a client's to say: the server's auth gives them. */
export interface RemoteCallOptions {
  /** Ends the wait; of a turn, stops it on the server and keeps the partial answer. */
  readonly signal?: AbortSignal;
}

/** Where a turn starts, and who hears of a takeover. */
export interface RemoteInvokeOptions<Types extends AgentTypes = WireTypes>
  extends RemoteCallOptions {
  readonly snapshotId?: string;
  readonly sessionId?: string;
  readonly state?: StateOf<Types>;
  /**
   * Compare and set: the first turn runs only while this is the head of its session (`null`: it has no snapshot yet). Otherwise
   * the call is `ABORTED` and `details.headId` names the head.
   */
  readonly ifHead?: string | null;
  /**
   * Called, in order with the chunks, when another process took the turn over: of this turn only what came before its
   * last checkpoint still stands, and what came after it comes again.
   */
  readonly onReset?: (attempt: number) => void;
}

/** Where one turn starts, and the id under which it may be sent again. */
export interface RemoteRunOptions<Types extends AgentTypes = WireTypes>
  extends RemoteInvokeOptions<Types>,
    RequestOptions {}

/**
 * An agent on a server: the surface of `Agent`, over HTTP. What is missing is what only the process of the agent can
 * give (`metadata` at once, `context`, `model`, `owner`).
 */
export interface RemoteAgent<Types extends AgentTypes = WireTypes> {
  readonly name: string;
  /** Only there for inference; always absent. */
  readonly '~types'?: Types;

  /** What the agent is and what its store can do. */
  describe(options?: RemoteCallOptions): Promise<AgentInfo>;

  /** One turn. */
  run(input: Input, options?: RemoteRunOptions<Types>): Promise<OutputOf<Types>>;
  runText(text: string, options?: RemoteRunOptions<Types>): Promise<OutputOf<Types>>;
  /** One turn as it comes. Chunks that nobody reads are kept until the stream is dropped. */
  stream(input: Input, options?: RemoteRunOptions<Types>): AgentStream<Types>;
  streamText(text: string, options?: RemoteRunOptions<Types>): AgentStream<Types>;
  /** Many turns on one connection, over a WebSocket. */
  streamBidi(options?: RemoteInvokeOptions<Types>): AgentConnection<Types>;
  chat(options?: RemoteInvokeOptions<Types>): Chat<Types>;

  /** `undefined` for an id that is unknown there. */
  getSnapshot(lookup: Lookup, options?: RemoteCallOptions): Promise<SnapshotOf<Types> | undefined>;
  listSnapshots(
    sessionId: string,
    options?: RemoteCallOptions & ListOptions & { readonly includeOrphaned?: boolean },
  ): Promise<Page<SnapshotOf<Types>>>;
  /** With its latest state; `undefined` for an id that is unknown there. */
  getSession(sessionId: string, options?: RemoteCallOptions): Promise<SessionOf<Types> | undefined>;
  listSessions(
    options?: RemoteCallOptions & ListOptions & { readonly query?: string },
  ): Promise<Page<SessionInfo>>;
  updateSession(
    sessionId: string,
    change: Readonly<SessionChange>,
    options?: RemoteCallOptions,
  ): Promise<SessionInfo>;
  /** Erases it with all that hangs on it; `false` when there is none. */
  deleteSession(sessionId: string, options?: RemoteCallOptions): Promise<boolean>;

  /** Resolves when the snapshot has a terminal status (or reads `expired`). */
  wait(snapshotId: string, options?: RemoteCallOptions): Promise<SnapshotOf<Types>>;
  /** Past and live events of a run, in order, without gap or repeat, also over a line that drops. */
  watch(
    snapshotId: string,
    options?: RemoteCallOptions & { readonly after?: EventId },
  ): AsyncIterable<WatchEvent<Types>>;
  /** Stops a run from anywhere. Resolves to the status after the attempt, `undefined` for an unknown id. */
  abort(snapshotId: string, options?: RemoteCallOptions): Promise<SnapshotStatus | undefined>;
  /** The runs that are open, attached and detached, oldest first. */
  listRuns(options?: RemoteCallOptions): Promise<readonly RunInfo[]>;
  /** The runs that were given up because they cost too many workers, oldest first. Only an engine with a queue has any. */
  listDeadRuns(options?: RemoteCallOptions): Promise<readonly DeadRun[]>;
  /** Begins a dead run again with the inputs it had not done, as a new run of its session. An unknown one is NOT_FOUND. */
  retryRun(snapshotId: string, options?: RemoteCallOptions): Promise<RetryResult>;

  /** Moves the head of the session to this snapshot. */
  restore(snapshotId: string, options?: RemoteCallOptions & IfHead): Promise<SnapshotOf<Types>>;
  /** A new session that goes on from this snapshot. */
  fork(
    snapshotId: string,
    options?: RemoteCallOptions & IfHead & { readonly sessionId?: string },
  ): Promise<SnapshotOf<Types>>;
  diff(from: string, to: string, options?: RemoteCallOptions): Promise<Diff>;
  label(
    snapshotId: string,
    label: string | null,
    options?: RemoteCallOptions & IfHead,
  ): Promise<SnapshotOf<Types>>;
}

/** The types of an agent, read off the agent: `TypesOf<typeof chat>`. */
export type TypesOf<A> = A extends { readonly '~types'?: infer Types extends AgentTypes }
  ? Types
  : WireTypes;
