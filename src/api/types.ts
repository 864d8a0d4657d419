import type { InferOutput } from 'valibot';
import type { Json } from '../core/json/json.ts';
import type { Message } from '../protocol/message.ts';
import type { SteerResult } from '../protocol/requests.ts';
import type { SessionInfo } from '../protocol/session.ts';
import type { Snapshot } from '../protocol/snapshot.ts';
import type { State } from '../protocol/state.ts';
import type { Chunk, errorBody, Input, Output, Reset } from '../protocol/turn.ts';
import type { ResumeInput } from './interrupts.ts';
import type {
  CallerTool,
  OutputAccessors,
  SnapshotRef,
  StateAccessors,
  TurnInput,
} from './turn-values.ts';

/** The types of an agent, inferred from its definition. */
export interface AgentTypes {
  /** The custom state. */
  readonly custom: unknown;
  /** The status that a custom agent sends. */
  readonly status: unknown;
  /** The structured output. */
  readonly output: unknown;
}

/** The types of an agent that is known only by name: everything is JSON. */
export interface WireTypes {
  /** The custom state, as JSON. */
  readonly custom: Json | undefined;
  /** The status, as JSON. */
  readonly status: Json | undefined;
  /** The structured output, as JSON. */
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
 * Why a turn failed. In process it has the message and stack of the thrown error, and the thrown value as `cause`. As JSON, and from a server, it has the public message only.
 */
interface OutputError extends InferOutput<typeof errorBody> {
  /** The thrown value; only in the process that ran the turn. */
  readonly cause?: unknown;
  /** The stack; only in the process that ran the turn. */
  readonly stack?: string | undefined;
}

/** An output with the agent's types, whether or not the turn succeeded. */
export type OutputOf<Types extends AgentTypes> = Omit<Output, 'state' | 'output' | 'error'> & {
  error?: OutputError | undefined;
  /** The state, for an agent whose state the client holds. With a store it is absent: read it with `getSnapshot(output)`. */
  state?: StateOf<Types> | undefined;
  output?: Types['output'] | undefined;
} & OutputAccessors;

/** The output of a turn that did not fail. It has the structured output if the agent defines one. */
export type TurnOutput<Types extends AgentTypes> = Omit<OutputOf<Types>, 'output'> &
  (undefined extends Types['output']
    ? { output?: Types['output'] | undefined }
    : { output: Types['output'] });

/** A snapshot with the agent's types. */
export type SnapshotOf<Types extends AgentTypes> = Omit<Snapshot, 'state'> & {
  state?: StateOf<Types> | undefined;
};

/** A snapshot that was read, with `text` and `interrupts`. */
export type LoadedSnapshot<Types extends AgentTypes> = SnapshotOf<Types> & StateAccessors;

/** A session with the agent's types. */
export type SessionOf<Types extends AgentTypes> = Omit<SessionInfo, 'state'> & {
  state?: StateOf<Types> | undefined;
};

/** A session that was read, with `text` and `interrupts`. */
export type LoadedSession<Types extends AgentTypes> = SessionOf<Types> & StateAccessors;

/** Compare and set on a session's head. */
export interface IfHead {
  /** The call is `ABORTED` unless this is the head of the snapshot's session; `details.headId` names the head. */
  readonly ifHead?: SnapshotRef;
}

/** Options of a call that sends one input. */
export interface RequestOptions {
  /**
   * Idempotency key, 1 to 256 characters. An input that is sent again under the same id, owner and agent within 24 hours joins
   * its first run or gets that run's output, instead of being run twice. The same id with another input is INVALID_ARGUMENT.
   */
  readonly requestId?: string;
  /**
   * Tools that you execute, for this turn only. When the model calls one, the turn ends `interrupted` and `output.interrupts` lists
   * the call: answer it with `resume` and `respond`. Pass the tools again there if the model may call them again.
   */
  readonly tools?: readonly CallerTool[];
}

/** Options of a call that waits for a turn. */
export interface FailureOptions {
  /** `false`: a failed turn resolves to its output, with `finishReason: 'failed'` and `error`. @default true */
  readonly throwOnError?: boolean;
}

/** A streaming turn. Read `stream` or `textStream`, not both. */
export interface AgentStream<Types extends AgentTypes = WireTypes> {
  /** Everything: text, reasoning, tool calls, status, artifacts, patches, chunks of sub-agents. */
  readonly stream: AsyncIterable<ChunkOf<Types>>;
  /** The text of this agent only. Rejects with a `TurnError` at its end if the turn failed. */
  readonly textStream: AsyncIterable<string>;
  /** The output, also of a failed turn. */
  readonly output: Promise<OutputOf<Types>>;
  /** Adds a message to this turn while it runs: see {@link AgentApi.steer}. */
  steer(input: TurnInput, options?: RequestOptions): Promise<SteerResult>;
}

/** Many turns on one connection. */
export interface AgentConnection<Types extends AgentTypes = WireTypes> {
  /** Queues an input; rejects when it is not valid or the connection is closed. */
  send(input: Input): Promise<void>;
  /** Queues a message with this text. */
  sendText(text: string, options?: RequestOptions): Promise<void>;
  /** Queues a message. */
  sendMessage(message: Message, options?: RequestOptions): Promise<void>;
  /** Queues the answers to interrupts. */
  sendResume(resume: ResumeInput, options?: RequestOptions): Promise<void>;
  /** Adds a message to the running turn, or to the next one that starts: see {@link AgentApi.steer}. */
  steer(input: TurnInput, options?: RequestOptions): Promise<SteerResult>;
  /** The chunks of all turns. Leaving the loop ends nothing; the next loop continues where it stopped. */
  receive(): AsyncIterable<ChunkOf<Types>>;
  /** As {@link AgentConnection.receive}, but ends after the next `turnEnd`. */
  turn(): AsyncIterable<ChunkOf<Types>>;
  /** Continues in the background without the caller: with the queued inputs, and this one. */
  detach(input?: Input): Promise<OutputOf<Types>>;
  /** Stops the running turn, keeps its partial answer, and ends the connection. */
  abort(reason?: unknown): void;
  /** Takes no more inputs; the queued ones still run. */
  close(): void;
  /** Closes the input, discards unread chunks, and waits for the end. */
  output(): Promise<OutputOf<Types>>;
  /** Resolves when the connection has ended, however it ended. */
  readonly done: Promise<void>;
}

/**
 * An event of `watch`; `id` is its position in the run's events, as `attempt.sequence`. `reset`: another worker took over the run; it names the
 * messages that no longer stand.
 */
export type WatchEvent<Types extends AgentTypes = WireTypes> =
  | { readonly type: 'chunk'; readonly id: string; readonly chunk: ChunkOf<Types> }
  | ({ readonly type: 'reset'; readonly id: string } & Readonly<Reset>)
  | { readonly type: 'end'; readonly snapshot: SnapshotOf<Types> };
