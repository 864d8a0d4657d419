import type { JsonObject } from '../core/json/json.ts';
import type { Diff } from '../protocol/diff.ts';
import type { RetryResult } from '../protocol/requests.ts';
import type { DeadRun, RunInfo } from '../protocol/run.ts';
import type { Page, SessionInfo } from '../protocol/session.ts';
import type { SnapshotStatus } from '../protocol/snapshot.ts';
import type { ListOptions, Lookup, SessionFilter } from '../store/contract/store.ts';
import type { InterruptAnswer } from './interrupts.ts';
import type { ResumeInput } from './resume-input.ts';
import type { SnapshotRef } from './snapshot-ref.ts';
import type { TurnInput } from './turn-input.ts';
import type {
  AgentConnection,
  AgentStream,
  AgentTypes,
  EventId,
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
  readonly sessionId?: string;
  readonly snapshotId?: string;
  readonly state?: StateOf<Types>;
  /** Continues from a snapshot, given by itself, by its id, or by the output of its turn. */
  readonly from?: SnapshotRef;
  /**
   * Compare and set: the first turn runs only while this is the head of its session (`null`: it has no snapshot yet). Otherwise
   * the call is `ABORTED` and `details.headId` names the head.
   */
  readonly ifHead?: SnapshotRef | null;
  /**
   * Called, in order with the chunks, when another process has taken over the turn: chunks since its last checkpoint are no
   * longer valid and come again. Turns of this process have no such takeover.
   */
  readonly onReset?: (attempt: number) => void;
}

/** Identifies a conversation: an output, a snapshot or a session. */
export interface SessionRef<Types extends AgentTypes = WireTypes> {
  readonly sessionId: string;
  readonly state?: StateOf<Types> | undefined;
}

/** One answer to an interrupt, several, or all of them by kind. */
export type Answers = InterruptAnswer | readonly InterruptAnswer[] | ResumeInput;

/** The handle of a background run, usable in any process. */
export interface RunHandle<Types extends AgentTypes = WireTypes, Call = ApiCallOptions> {
  /** The id of the run, and of the snapshot it will leave. */
  readonly id: string;
  /** Past and live events, in order, without gaps or repeats. */
  watch(options?: Call & { readonly after?: EventId }): AsyncIterable<WatchEvent<Types>>;
  /** Waits for the end and returns the output. Rejects with a `TurnError` if the run failed. */
  wait(options: Call & { readonly throwOnError: false }): Promise<OutputOf<Types>>;
  wait(options?: Call & FailureOptions): Promise<TurnOutput<Types>>;
  /** Stops the run. Resolves to the status after the attempt, `undefined` for an unknown id. */
  abort(options?: Call): Promise<SnapshotStatus | undefined>;
  /** The status now, `undefined` for an unknown id. */
  status(options?: Call): Promise<SnapshotStatus | undefined>;
}

/** A run that was just started. */
export interface StartedRun<Types extends AgentTypes = WireTypes, Call = ApiCallOptions>
  extends RunHandle<Types, Call> {
  readonly sessionId: string;
}

/** A conversation that keeps track of its snapshot or state from turn to turn. */
export interface Chat<Types extends AgentTypes = WireTypes, Call = ApiCallOptions> {
  readonly sessionId: string | undefined;
  readonly snapshotId: string | undefined;
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
  /** Starts a turn in the background. The next turn of the chat continues after it. */
  start(input: TurnInput, options?: Call & RequestOptions): Promise<StartedRun<Types, Call>>;
}

/** The calls of an agent, the same in process (`Agent`) and over HTTP (`RemoteAgent`). */
export interface AgentApi<
  Types extends AgentTypes = WireTypes,
  Call extends ApiCallOptions = ApiCallOptions,
  Invoke extends ApiInvokeOptions<Types> = ApiInvokeOptions<Types>,
> {
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
   * Answers the interrupts of a turn: `asked` is its output, or the snapshot or session that waits. Rejects with a `TurnError`
   * if the turn fails.
   *
   * @example
   * const asked = await desk.run('Refund order 7');
   * await desk.resume(asked, asked.interrupts.map((request) => request.approve()));
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
  /** The handle of a background run, in any process. */
  attach(run: SnapshotRef): RunHandle<Types, Call>;
  /** Many turns on one connection. */
  streamBidi(options?: Invoke): AgentConnection<Types>;
  /** A conversation that remembers where it is. */
  chat(options?: Invoke): Chat<Types, Call>;

  /** `undefined` for an unknown id. */
  getSnapshot(
    snapshot: SnapshotRef | Lookup,
    options?: Call,
  ): Promise<LoadedSnapshot<Types> | undefined>;
  listSnapshots(
    sessionId: string,
    options?: Call & ListOptions & { readonly includeOrphaned?: boolean },
  ): Promise<Page<SnapshotOf<Types>>>;
  /** With its latest state; `undefined` for an unknown id. */
  getSession(sessionId: string, options?: Call): Promise<LoadedSession<Types> | undefined>;
  /** Newest first. */
  listSessions(options?: Call & ListOptions & SessionFilter): Promise<Page<SessionInfo>>;
  updateSession(
    sessionId: string,
    change: { readonly title?: string | null; readonly metadata?: JsonObject | null },
    options?: Call,
  ): Promise<SessionInfo>;
  /** Deletes the session with its snapshots, runs and events; `false` for an unknown id. */
  deleteSession(sessionId: string, options?: Call): Promise<boolean>;

  /** Waits until the snapshot has a terminal status (or reads `expired`). */
  wait(snapshot: SnapshotRef, options?: Call): Promise<LoadedSnapshot<Types>>;
  /** Past and live events of a run, in order, without gaps or repeats, from any process. */
  watch(
    snapshot: SnapshotRef,
    options?: Call & { readonly after?: EventId },
  ): AsyncIterable<WatchEvent<Types>>;
  /** Stops a run from anywhere. Resolves to the status after the attempt, `undefined` for an unknown id. */
  abort(snapshot: SnapshotRef, options?: Call): Promise<SnapshotStatus | undefined>;
  /** The open runs, attached and detached, oldest first. */
  listRuns(options?: Call): Promise<readonly RunInfo[]>;
  /** The runs in the dead-letter queue, oldest first: they crashed too many workers. */
  listDeadRuns(options?: Call): Promise<readonly DeadRun[]>;
  /** Retries a dead run with its remaining inputs, as a new run of its session. An unknown one is NOT_FOUND. */
  retryRun(run: SnapshotRef, options?: Call): Promise<RetryResult>;

  /** Moves the head of the session to this snapshot. */
  restore(snapshot: SnapshotRef, options?: Call & IfHead): Promise<LoadedSnapshot<Types>>;
  /** A new session that continues from this snapshot. */
  fork(
    snapshot: SnapshotRef,
    options?: Call & IfHead & { readonly sessionId?: string },
  ): Promise<LoadedSnapshot<Types>>;
  diff(from: SnapshotRef, to: SnapshotRef, options?: Call): Promise<Diff>;
  label(
    snapshot: SnapshotRef,
    label: string | null,
    options?: Call & IfHead,
  ): Promise<LoadedSnapshot<Types>>;
}
