import type { DatesAsText } from '../../core/json/dates.ts';
import type { Json, JsonObject } from '../../core/json/json.ts';
import type { ModelRef } from '../../generate/model.ts';
import type { Message } from '../../protocol/message.ts';
import type { Artifact } from '../../protocol/state.ts';
import type { Chunk, FinishReason, Init, Input, ModelChunk, Usage } from '../../protocol/turn.ts';
import type { Session } from '../../session/session.ts';
import type { SessionState } from '../../session/session-state.ts';
import type { WorkspaceFolder } from '../../workspace/contract/contract.ts';

/** Information about the turn for a turn function. */
export interface TurnInfo {
  /** Reserved before the turn runs; the snapshot of the turn's end will have it. Absent without a store. */
  readonly snapshotId?: string;
  /** The snapshot that the turn starts from. */
  readonly parentId?: string;
  /** 0-based along the path from the root. */
  readonly turnIndex: number;
  /** The files of the agent's workspace; `undefined` if it has none. */
  readonly workspace?: WorkspaceFolder;
  /** Aborts when the turn is stopped. */
  readonly signal: AbortSignal;
}

/** The optional result of a turn function. */
export interface TurnResult {
  /** @default 'interrupted' when the last message waits for an answer, else 'stop' */
  readonly finishReason?: FinishReason;
  /** Structured output of the turn. */
  readonly output?: unknown;
  /** Tokens that were used besides those of `generate` calls, which count by themselves. */
  readonly usage?: Usage;
}

/** Processes one input. */
export type TurnFunction = (
  input: Input,
  turn: TurnInfo,
) => Promise<TurnResult | void> | TurnResult | void;

/** The result of a handler. The default is the last message and all artifacts. */
export interface AgentResult {
  /** The answer. */
  readonly message?: Message;
  /** The artifacts of the session. */
  readonly artifacts?: readonly Artifact[];
  /** The structured output. */
  readonly output?: unknown;
  /** How the invocation ended. @default how its last turn ended */
  readonly finishReason?: FinishReason;
}

/** How a step is undone. */
export interface UndoableStep {
  /** The name of a function in the agent's option `undo`. */
  readonly undo: string;
  /** Data of the step that the function needs, besides its result. @default null */
  readonly input?: Json;
}

/** The session of a custom agent, with its turn loop. */
export interface AgentSession<Custom = unknown> extends Session<Custom> {
  /** The turn loop: calls `fn` for each input, with the user's message already added, until no more inputs come. */
  run(fn: TurnFunction): Promise<void>;
  /** The default result: the last message and all artifacts. */
  result(): AgentResult;
  /**
   * Takes the messages that callers have sent to the running turn with `steer`: adds them to the session, oldest first, and returns them.
   * Messages that a turn has not taken when it ends are refused, or input of the next turn, as the agent's `concurrency` says.
   *
   * @example
   * for (const file of files) {
   *   await review(file);
   *   for (const message of await session.takeSteering()) note(message);
   * }
   */
  takeSteering(): Promise<readonly Message[]>;
  /**
   * Does something once per run: its result is recorded as JSON, dates as text, and a second attempt of the run gets it instead of doing the work
   * again. `key` must be the same in each attempt, and unlike that of the other steps of the turn: a second use is refused, unless
   * another step has failed, so that this is a retry: it returns the result. With `undo`, `agent.restore(…, { undo })` can undo it by the
   * function that the agent's option `undo` has under that name; it gets the `input`, which is stored before `fn` is called, and the result.
   */
  step<Value>(
    key: string,
    fn: () => Promise<Value> | Value,
    undoable?: UndoableStep,
  ): Promise<DatesAsText<Value>>;
}

/** Sends chunks to the caller and to watchers. After a stop chunks are dropped; on a normal end none are. */
export interface Responder<Status = unknown> {
  /** Sends a piece of the model's answer. */
  modelChunk(chunk: ModelChunk): Promise<void>;
  /** Rejects with `INVALID_ARGUMENT` when it does not fit the agent's `status` schema. */
  status(status: Status): Promise<void>;
  /** Also adds it to the session; it replaces an artifact of the same name. */
  artifact(artifact: Artifact): Promise<void>;
  /** A chunk with several fields. */
  send(
    chunk: Omit<
      Chunk,
      'status' | 'turnStart' | 'turnEnd' | 'reset' | 'snapshotCreated' | 'customPatch'
    > & {
      status?: Status;
    },
  ): Promise<void>;
}

/** The second argument of a handler. */
export interface HandlerIo<Status = unknown> {
  /** Sends chunks to the client. */
  readonly respond: Responder<Status>;
  /** Aborts when the invocation is stopped. */
  readonly signal: AbortSignal;
  /** The caller's context. */
  readonly context: JsonObject;
  /** The start that the caller chose. */
  readonly init: Init;
  /** The model that the caller wants. `generate` calls that name no model use it; pass it on to those that do. */
  readonly model?: ModelRef;
}

/** The running turn, for the prompt agent. Other handlers do not get it. */
export interface RunningTurn {
  /** The state at the start of the turn, with its input. */
  readonly state: SessionState;
  /** Another worker started the turn and saved a checkpoint: the answers to interrupts are in the state already. */
  readonly isContinued: boolean;
  /** The index of the next message that the turn adds. */
  readonly firstIndex: number;
  /** Adds the messages of a generate call that the turn has not added yet. */
  appendGenerated(messages: readonly Message[]): void;
  reportPromptError(error: unknown): void;
  /** Puts what is known before the input; absent without a memory. */
  withMemory?(messages: readonly Message[]): Promise<readonly Message[]>;
}

/** A handler as the turn loop calls it. */
export type TurnLoopHandler = (
  session: AgentSession,
  io: HandlerIo,
  runningTurn: () => RunningTurn,
) => Promise<AgentResult | void> | AgentResult | void;

/** The turn loop of a custom agent. */
export type AgentHandler<Custom = unknown, Status = unknown> = (
  session: AgentSession<Custom>,
  io: HandlerIo<Status>,
) => Promise<AgentResult | void> | AgentResult | void;
