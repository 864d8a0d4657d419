import type { JsonObject } from '../core/json/json.ts';
import type { JsonPatch } from '../core/json/patch.ts';
import type { MessageOptions } from '../protocol/message-page.ts';
import type { OpenedFile, OpenFileOptions } from '../protocol/opened-file.ts';
import type {
  Diff,
  FileInfo,
  RetryResult,
  SteerResult,
  UsageReport,
  WaitingSession,
} from '../protocol/requests.ts';
import type { DeadRun, RunInfo } from '../protocol/run.ts';
import type { Page, SessionInfo } from '../protocol/session.ts';
import type { SnapshotStatus } from '../protocol/snapshot.ts';
import type { Artifact } from '../protocol/state.ts';
import type { Reset } from '../protocol/turn.ts';
import type { UndoPlan } from '../protocol/undo.ts';
import type {
  ListOptions,
  Lookup,
  SessionFilter,
  SnapshotListing,
} from '../store/contract/store.ts';
import type { AgentMemory } from './agent-memory.ts';
import type { Answers, Interrupt } from './interrupts.ts';
import type { SnapshotRef, TurnInput } from './turn-values.ts';
import type {
  AgentConnection,
  AgentStream,
  AgentTypes,
  FailureOptions,
  IfHead,
  LoadedSession,
  LoadedSnapshot,
  OutputOf,
  RequestOptions,
  SnapshotOf,
  StateOf,
  TurnOutput,
  WatchEvent,
  WireTypes,
} from './types.ts';

/** Options of every call, in process and over HTTP. */
export interface ApiCallOptions {
  /** Stops waiting. For a turn: stops the turn and keeps the partial answer. */
  readonly signal?: AbortSignal;
}

/** Options of a turn. For `snapshotId`, `sessionId` and `state` together see the table in docs/semantics.md. */
export interface ApiInvokeOptions<Types extends AgentTypes = WireTypes> extends ApiCallOptions {
  /** The session to continue, or the id of a new one. */
  readonly sessionId?: string;
  /** The snapshot to continue from. */
  readonly snapshotId?: string;
  /** The state to continue from, for an agent whose state the client holds. */
  readonly state?: StateOf<Types>;
  /**
   * The snapshot to continue from: the snapshot itself, its id, or the output of its turn. `null`, with a `sessionId`: the beginning of
   * the session, as another first turn.
   */
  readonly from?: SnapshotRef | null;
  /**
   * Compare and set: the first turn runs only while this is the head of its session (`null`: it has no snapshot yet). Otherwise
   * the call is `ABORTED` and `details.headId` names the head.
   */
  readonly ifHead?: SnapshotRef | null;
  /**
   * Called, in order with the chunks, when another process has taken over the turn; `reset` names the messages that no longer
   * stand. Never called for a turn that runs in this process: its stream has a `reset` chunk instead.
   */
  readonly onReset?: (attempt: number, reset: Readonly<Reset>) => void;
  /**
   * How a server streams edits of long artifacts: the whole artifact, or the `artifactPatch` alone, for clients that have the artifact.
   *
   * @default 'whole'
   */
  readonly artifacts?: 'whole' | 'patches';
}

/** Options of `restore`. */
export interface RestoreOptions {
  /** Restores the partial state of an aborted background run. @default false */
  readonly partial?: boolean;
  /** Whether the files of the workspace are restored as well. @default true */
  readonly workspace?: boolean;
  /**
   * Undoes effects first: those of a plan, of which only the id is used, or, with `true`, all of them. A plan that is out of date is
   * `ABORTED`, and `details.plan` is a new one.
   */
  readonly undo?: true | Pick<UndoPlan, 'id'>;
  /** With `undo`: also undoes what another branch needs, and restores although something cannot be undone. @default false */
  readonly force?: boolean;
}

/** Options of `diff`. */
export interface DiffOptions {
  /**
   * Whether files of the workspace are compared. `'now'`: the files in the folder now with those of the second snapshot, so the difference is
   * what a restore changes.
   *
   * @default true
   */
  readonly workspace?: boolean | 'now';
}

/** Options of `watch`. */
export interface WatchOptions extends Pick<ApiInvokeOptions, 'artifacts'> {
  /** The event after which to continue. */
  readonly after?: string;
}

/** Narrows what `getUsage` sums up. */
export interface UsageQuery {
  /** Only this session, with its sub-agents. */
  readonly sessionId?: string;
  /** Also sums by agent (sub-agents apart), model or day. */
  readonly by?: 'agent' | 'model' | 'day';
  /** Only from this day on, as `2026-11-16` (UTC). */
  readonly since?: string;
}

/** The changes of an edit; omitted fields are unchanged. */
export interface EditChange<Types extends AgentTypes = WireTypes> {
  /** The new custom state. */
  readonly custom?: Types['custom'];
  /** Changes the custom state by an RFC 6902 patch instead. */
  readonly customPatch?: JsonPatch;
  /** Added; replaces artifacts with the same names. */
  readonly artifacts?: readonly Artifact[];
  /** The names of artifacts to remove. */
  readonly removeArtifacts?: readonly string[];
}

/** The record of an edit. */
export interface EditOptions {
  /** The reason for the edit, at most 1,000 characters. */
  readonly reason?: string;
  /** Who made the edit, at most 256 characters. Over HTTP, the server records the authenticated caller instead. */
  readonly by?: string;
}

/** Identifies a conversation: an output, a snapshot or a session. */
export interface SessionRef<Types extends AgentTypes = WireTypes> {
  /** The session. */
  readonly sessionId: string;
  /** The state, for an agent whose state the client holds. */
  readonly state?: StateOf<Types> | undefined;
}

/** The handle of a background run, usable in any process. Its calls are made for the owner that `start` or `attach` got. */
export interface RunHandle<Types extends AgentTypes = WireTypes, Call = ApiCallOptions> {
  /** The id of the run, and of the snapshot it will leave. */
  readonly id: string;
  /** Past and live events, in order, without gaps or repeats. */
  watch(options?: Call & WatchOptions): AsyncIterable<WatchEvent<Types>>;
  /** Waits for the end and returns the output. Rejects with a `TurnError` if the run failed. */
  wait(options: Call & { readonly throwOnError: false }): Promise<OutputOf<Types>>;
  wait(options?: Call & FailureOptions): Promise<TurnOutput<Types>>;
  /** Adds a message to the running turn: see {@link AgentApi.steer}. */
  steer(input: TurnInput, options?: Call & RequestOptions): Promise<SteerResult>;
  /** Stops the run. Resolves to the status after the attempt; an unknown run is NOT_FOUND. */
  abort(options?: Call): Promise<SnapshotStatus>;
  /** The status now, `undefined` for an unknown id. */
  status(options?: Call): Promise<SnapshotStatus | undefined>;
}

/** A run that was just started. */
export interface StartedRun<Types extends AgentTypes = WireTypes, Call = ApiCallOptions>
  extends RunHandle<Types, Call> {
  /** The session of the run. */
  readonly sessionId: string;
}

/** A conversation that keeps track of its snapshot or state from turn to turn. */
export interface Chat<Types extends AgentTypes = WireTypes, Call = ApiCallOptions> {
  /** The session; `undefined` before the first turn. */
  readonly sessionId: string | undefined;
  /** The snapshot that the next turn continues from. */
  readonly snapshotId: string | undefined;
  /** The state, for an agent whose state the client holds. */
  readonly state: StateOf<Types> | undefined;
  /** One turn. Rejects with a `TurnError` if it fails. */
  send(
    input: TurnInput,
    options: Call & RequestOptions & { readonly throwOnError: false },
  ): Promise<OutputOf<Types>>;
  send(
    input: TurnInput,
    options?: Call & RequestOptions & FailureOptions,
  ): Promise<TurnOutput<Types>>;
  /** One turn, streamed. */
  stream(input: TurnInput, options?: Call & RequestOptions): AgentStream<Types>;
  /** Answers the interrupts of the last turn. Rejects with a `TurnError` if the turn fails. */
  resume(
    answers: Answers,
    options: Call & RequestOptions & { readonly throwOnError: false },
  ): Promise<OutputOf<Types>>;
  resume(
    answers: Answers,
    options?: Call & RequestOptions & FailureOptions,
  ): Promise<TurnOutput<Types>>;
  /** Adds a message to the running turn of this chat: see {@link AgentApi.steer}. */
  steer(input: TurnInput, options?: RequestOptions): Promise<SteerResult>;
  /** Starts a turn in the background. The next turn of the chat continues after it. */
  start(input: TurnInput, options?: Call & RequestOptions): Promise<StartedRun<Types, Call>>;
}

/** A session that waits for the answer of a person, with the interrupts to answer. */
export interface PendingInterrupts extends WaitingSession {
  /** The tool calls that wait; not part of the JSON. */
  readonly interrupts: readonly Interrupt[];
}

/** The calls of an agent, the same in process (`Agent`) and over HTTP (`RemoteAgent`). */
export interface AgentApi<
  Types extends AgentTypes = WireTypes,
  Call extends ApiCallOptions = ApiCallOptions,
  Invoke extends ApiInvokeOptions<Types> = ApiInvokeOptions<Types>,
> {
  /** The name of the agent. */
  readonly name: string;
  /** Only there for inference; always absent. */
  readonly '~types'?: Types;

  /** One turn. Rejects with a `TurnError` if it fails. */
  run(
    input: TurnInput,
    options: Invoke & RequestOptions & { readonly throwOnError: false },
  ): Promise<OutputOf<Types>>;
  run(
    input: TurnInput,
    options?: Invoke & RequestOptions & FailureOptions,
  ): Promise<TurnOutput<Types>>;
  /** {@link AgentApi.run} for a text. */
  runText(
    text: string,
    options: Invoke & RequestOptions & { readonly throwOnError: false },
  ): Promise<OutputOf<Types>>;
  runText(
    text: string,
    options?: Invoke & RequestOptions & FailureOptions,
  ): Promise<TurnOutput<Types>>;
  /** One turn, streamed. */
  stream(input: TurnInput, options?: Invoke & RequestOptions): AgentStream<Types>;
  /** {@link AgentApi.stream} for a text. */
  streamText(text: string, options?: Invoke & RequestOptions): AgentStream<Types>;
  /**
   * Answers the interrupts of a turn: `asked` is its output, the snapshot or session that waits, or `{ sessionId }`. Rejects
   * with a `TurnError` if the turn fails.
   *
   * @example
   * const asked = await desk.run('Refund order 7');
   * await desk.resume(asked, (request) => request.approve());
   */
  resume(
    asked: SessionRef<Types>,
    answers: Answers,
    options: Invoke & RequestOptions & { readonly throwOnError: false },
  ): Promise<OutputOf<Types>>;
  resume(
    asked: SessionRef<Types>,
    answers: Answers,
    options?: Invoke & RequestOptions & FailureOptions,
  ): Promise<TurnOutput<Types>>;
  /** Starts a turn in the background. Resolves once the run is stored, so that it survives this process. */
  start(input: TurnInput, options?: Invoke & RequestOptions): Promise<StartedRun<Types, Call>>;
  /** The handle of a background run, in any process. It remembers the owner. */
  attach(run: SnapshotRef, options?: Omit<Call, 'signal'>): RunHandle<Types, Call>;
  /** Many turns on one connection. */
  streamBidi(options?: Invoke): AgentConnection<Types>;
  /** A conversation that remembers where it is. */
  chat(options?: Invoke): Chat<Types, Call>;

  /** `undefined` for an unknown id. */
  getSnapshot(
    snapshot: SnapshotRef | Lookup,
    options?: Call & MessageOptions,
  ): Promise<LoadedSnapshot<Types> | undefined>;
  /**
   * The snapshots of a session, without their states. Without options, those of the active branch, oldest first. The session is an id, an
   * output or a snapshot.
   */
  listSnapshots(
    session: string | Pick<SessionRef, 'sessionId'>,
    options?: Call & ListOptions & SnapshotListing,
  ): Promise<Page<SnapshotOf<Types>>>;
  /** The session of an id, an output or a snapshot, with its latest state; `undefined` for an unknown one. */
  getSession(
    session: string | Pick<SessionRef, 'sessionId'>,
    options?: Call & MessageOptions,
  ): Promise<LoadedSession<Types> | undefined>;
  /** Newest first. */
  listSessions(options?: Call & ListOptions & SessionFilter): Promise<Page<SessionInfo>>;
  /**
   * The sessions that wait for the answer of a person, newest first. Answer with `agent.resume(item, …)`.
   *
   * @example
   * const { items } = await desk.listInterrupts();
   * for (const item of items) console.log(item.sessionId, item.interrupts.map(({ toolName }) => toolName));
   */
  listInterrupts(options?: Call & ListOptions): Promise<Page<PendingInterrupts>>;
  /** Changes the title or the metadata of a session; `null` removes them. */
  updateSession(
    session: string | Pick<SessionRef, 'sessionId'>,
    change: { readonly title?: string | null; readonly metadata?: JsonObject | null },
    options?: Call,
  ): Promise<SessionInfo>;
  /** Deletes the session with its snapshots, runs and events; `false` for an unknown id. */
  deleteSession(session: string | Pick<SessionRef, 'sessionId'>, options?: Call): Promise<boolean>;

  /** Waits until the snapshot has a terminal status (or reads `expired`). */
  wait(snapshot: SnapshotRef, options?: Call): Promise<LoadedSnapshot<Types>>;
  /** Past and live events of a run, in order, without gaps or repeats, from any process. */
  watch(snapshot: SnapshotRef, options?: Call & WatchOptions): AsyncIterable<WatchEvent<Types>>;
  /**
   * Adds a message to a running turn, from any process. The turn takes it after its tools or before it would end, and the model
   * answers it in the same turn; the stream then has a `steered` chunk. A turn that was stopped, failed or waits for an answer
   * ends without taking it: the message is refused, or, with `concurrency: 'wait'`, taken by the session's next turn. Once the turn has
   * ended, the call is FAILED_PRECONDITION; a call that is repeated under its `requestId` tells what became of the message.
   *
   * @example
   * const { id } = await agent.start('Write the report');
   * await agent.steer(id, 'Leave out the appendix.');
   */
  steer(run: SnapshotRef, input: TurnInput, options?: Call & RequestOptions): Promise<SteerResult>;
  /** Stops a run from anywhere. Resolves to the status after the attempt, `undefined` for an unknown id. */
  abort(snapshot: SnapshotRef, options?: Call): Promise<SnapshotStatus | undefined>;
  /** The open runs, attached and detached, oldest first. */
  listRuns(options?: Call & ListOptions): Promise<Page<RunInfo>>;
  /**
   * The usage of a session or, without `sessionId`, in all sessions of this agent: all that ever was, also in turns that
   * failed or lie on another branch. The tokens and cost of one turn are in the `usage` of its output and snapshot.
   */
  getUsage(options?: Call & UsageQuery): Promise<UsageReport>;
  /** The runs in the dead-letter queue, oldest first: they crashed too many workers. */
  listDeadRuns(options?: Call & ListOptions): Promise<Page<DeadRun>>;
  /** Retries a dead run with its remaining inputs, as a new run of its session. An unknown one is NOT_FOUND. */
  retryRun(run: SnapshotRef, options?: Call): Promise<RetryResult>;

  /**
   * Moves the head of the session to this snapshot. With `partial`, the snapshot is that of an aborted background run: its partial state
   * is saved as a new snapshot (`event: 'edit'`) that continues from the one which the run started from, and becomes the head. The files of
   * the workspace are restored as well, and changes that no snapshot has are saved first, as an edit of the head; with `workspace: false` the
   * files stay as they are.
   *
   * With `undo`, the effects of calls after the snapshot are undone first, the newest first. If one cannot be undone, the call rejects
   * and the head stays.
   */
  restore(
    snapshot: SnapshotRef,
    options?: Call & IfHead & RestoreOptions,
  ): Promise<LoadedSnapshot<Types>>;
  /**
   * The effects in other systems that happened after this snapshot on the way to the head, and whether they can be undone. Nothing
   * changes. Pass the plan to `restore` to carry it out.
   *
   * @example
   * const plan = await agent.planUndo(first);
   * if (plan.effects.every(({ undo }) => undo === 'possible')) await agent.restore(first, { undo: plan });
   */
  planUndo(snapshot: SnapshotRef, options?: Call): Promise<UndoPlan>;
  /** The memory of the agent: what it has learned across sessions. */
  readonly memory: AgentMemory<Call>;
  /** A new session that continues from this snapshot. */
  fork(
    snapshot: SnapshotRef,
    options?: Call & IfHead & { readonly sessionId?: string },
  ): Promise<LoadedSnapshot<Types>>;
  /**
   * Saves a changed custom state or changed artifacts as a new snapshot (`event: 'edit'`) that continues from this one and becomes
   * the head. The snapshot itself stays as it is. The new state must fit the agent's state schema.
   *
   * @example
   * await trip.edit(snapshot, { custom: { ...snapshot.state.custom, budget: 900 } }, { reason: 'Wrong currency' });
   */
  edit(
    snapshot: SnapshotRef,
    change: EditChange<Types>,
    options?: Call & IfHead & EditOptions,
  ): Promise<LoadedSnapshot<Types>>;
  /**
   * The files of the workspace as a snapshot, or the head of a session, has them, by path; up to 1,000 unless `limit` says otherwise. None
   * for a snapshot that was saved without a workspace.
   *
   * @example
   * for (const { path, size } of (await coder.listFiles(output)).items) console.log(path, size);
   */
  listFiles(snapshot: SnapshotRef | Lookup, options?: Call & ListOptions): Promise<Page<FileInfo>>;
  /**
   * Opens a file that a turn has saved with `session.saveFile`, or a file of the workspace by its path: of the head of a session, or of a
   * snapshot. An artifact of that name wins; `workspace: true` asks for the file. Its bytes are read from the store as the stream is. An unknown
   * session, snapshot, artifact or file is `NOT_FOUND`.
   *
   * @example
   * const { stream, contentType } = await agent.openFile({ sessionId }, 'report.pdf');
   */
  openFile(
    snapshot: SnapshotRef | Lookup,
    name: string,
    options?: Call & OpenFileOptions & { readonly workspace?: boolean },
  ): Promise<OpenedFile>;
  /**
   * The changes from one snapshot to another: messages, custom state, artifacts, and files of the workspace.
   *
   * @example
   * const { files = [] } = await coder.diff(second, first, { workspace: 'now' }); // what a restore of `first` changes
   */
  diff(from: SnapshotRef, to: SnapshotRef, options?: Call & DiffOptions): Promise<Diff>;
  /** Labels a snapshot, which keeps it from being pruned; `null` removes the label. */
  label(
    snapshot: SnapshotRef,
    label: string | null,
    options?: Call & IfHead,
  ): Promise<LoadedSnapshot<Types>>;
}
