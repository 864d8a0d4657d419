import type { ErrorBody } from '../../core/error.ts';
import type { Json, JsonObject } from '../../core/json/json.ts';
import type { Schema } from '../../core/schema/schema.ts';
import type { GenerateSettings, Limits } from '../../generate/generate-options.ts';
import type { ModelConfig, ModelRef } from '../../generate/model.ts';
import type { Skill } from '../../generate/skill/skill.ts';
import type { Template } from '../../generate/template.ts';
import type { Tool } from '../../generate/tool/tool.ts';
import type { UndoAction } from '../../generate/tool/undo.ts';
import type { Message, ToolRequestPart } from '../../protocol/message.ts';
import type { AgentInfo } from '../../protocol/requests.ts';
import type { Snapshot } from '../../protocol/snapshot.ts';
import type { State } from '../../protocol/state.ts';
import type { Chunk, Cost, Input } from '../../protocol/turn.ts';
import type { SnapshotPolicy } from '../../session/policy.ts';
import type { SessionState } from '../../session/session-state.ts';
import type { SnapshotStore, Store } from '../../store/contract/store.ts';
import type { Workspace } from '../../workspace/contract/contract.ts';
import type { TurnLoopHandler } from './handler.ts';
import type { MemoryDefinition } from './memory.ts';
import type { TurnStore } from './turn-store.ts';

/**
 * Changes what callers receive. The handler, the tools and the store see the original. With `state`, whatever has no hook of its own
 * leaves only as far as `state` lets it.
 */
export interface Transform {
  /** Gets a copy of the state; return `undefined` to omit it. */
  readonly state?: (state: State) => State | undefined;
  /** Gets a copy of the chunk; return `undefined` to omit it. `turnStart`, `snapshotCreated` and `turnEnd` are always sent. */
  readonly chunk?: (chunk: Chunk) => Chunk | undefined;
  /** Gets a copy of the structured output; return `undefined` to omit it. @default with `state`, only the JSON that the transformed message has */
  readonly output?: (output: Json) => Json | undefined;
  /** Gets the title of a session; return `undefined` to omit it. @default with `state`, no title */
  readonly title?: (title: string) => string | undefined;
  /** Gets the error of a failed turn; return `undefined` to send its status only. @default with `state`, its texts as those of a message */
  readonly error?: (error: ErrorBody) => ErrorBody | undefined;
}

/** Limits of a turn, a session and an owner. */
export interface AgentLimits {
  /** Custom agents keep `timeout`, `tokens` and `toolCalls`; the others are those of their own `generate` calls. */
  readonly turn?: Limits;
  /** Limits of a session. */
  readonly session?: {
    /** Tokens of all turns, those of sub-agents and summaries included. Restoring an earlier snapshot gives none back. */
    readonly tokens?: number;
    /** Cost of all turns, in micro-units by currency: `{ USD: 5_000_000 }` is $5. Restoring an earlier snapshot gives none back. */
    readonly cost?: Cost;
    /** Tool calls along the path to the session's head. */
    readonly toolCalls?: number;
    /** Characters of the custom state as JSON. @default 16777216 */
    readonly customLength?: number;
    /** Bytes of a file that `session.saveFile` stores. @default 1073741824 */
    readonly fileSize?: number;
  };
  /** Limits of an owner over all sessions and agents, checked before each model call. Needs a store that records spend. */
  readonly owner?: {
    readonly tokens?: number;
    /** In micro-units by currency, as in `session`. */
    readonly cost?: Cost;
    /** The day or month, in UTC, that is counted. @default everything that was ever spent */
    readonly per?: 'day' | 'month';
  };
  /**
   * The amount that a model call of the agent reserves of the budgets of its session and owner before it begins.
   * @default the price of the request and `maxOutputTokens`
   */
  readonly reserve?: {
    readonly tokens?: number;
    /** In micro-units by currency, as in `session`. */
    readonly cost?: Cost;
  };
}

/** The end of a detached run, as passed to `onFinish`. */
export interface RunEnd {
  /** The name of the agent. */
  readonly agent: string;
  /** The owner of the session. */
  readonly owner?: string;
  /** The snapshot of the run, with its final status. */
  readonly snapshot: Snapshot;
}

/** Settings of a prompt agent that a replay changes. */
export interface PromptChanges {
  /** The system message. */
  readonly system?: Template;
  /** Settings of the model; merged with the agent's own. */
  readonly config?: ModelConfig;
  /** The tools, instead of the agent's own. */
  readonly tools?: GenerateSettings['tools'];
}

/** The store of an agent, of which every capability may be missing. */
export type AgentStore = SnapshotStore & Partial<Store>;

/** An agent as the turn loop knows it: every option checked and filled in. */
export interface AgentSpec {
  readonly name: string;
  readonly description?: string | undefined;
  readonly version?: string | undefined;
  /** Where a second attempt of a turn starts: at its last tool iteration, or over. */
  readonly recovery: 'checkpoint' | 'restart';
  readonly store: AgentStore | undefined;
  readonly turnStore: TurnStore;
  readonly policy: SnapshotPolicy;
  readonly concurrency: 'reject' | 'wait' | 'fork';
  readonly limits: AgentLimits;
  /** The title of a session after its first turn; `undefined`: none. */
  titleOf(state: SessionState): string | undefined;
  /** The agent's transform, complete: with hooks for what its definition has none for. */
  readonly transform: Transform;
  /** The hooks of the definition alone. */
  readonly ownTransform: Transform;
  /** How the state that clients hold is signed. */
  readonly clientState?: ClientStateOptions | undefined;
  readonly stateSchema?: Schema | undefined;
  readonly statusSchema?: Schema | undefined;
  readonly initialState?: Json | undefined;
  /** The state of a session in which nothing has happened. */
  readonly freshState: SessionState;
  readonly upgradeState?: ((custom: Json) => unknown) | undefined;
  readonly handler: TurnLoopHandler;
  /** The model of calls that name none, also of runs that were taken over; set by tests. */
  readonly testModel?: ModelRef | undefined;
  /** Throws when an input is not one for this agent. */
  checkInput(input: Input): void;
  /** Throws when the agent names something that does not exist; `model` is the one of the call. */
  checkSetup?(model: ModelRef | undefined): void;
  /** The messages that an input adds to a state at the start of its turn; rejects when it is no input for that state. */
  receive(state: SessionState, input: Input, context: JsonObject): Promise<readonly Message[]>;
  /** Its model, tools, skills and output as they are now; absent where only its handler knows them. */
  describe?(): Promise<AgentContent>;
  /** The skills that it can load for a caller; absent if it has none. */
  skills?(context: JsonObject): Promise<readonly Skill[]>;
  /** Its tools as they are now, those of tool sources included; absent where only its handler knows them. */
  tools?(): Promise<ReadonlyMap<string, Tool>>;
  /** The schema of its structured output alone, which needs no tool source. */
  outputSchema?(): Promise<JsonObject | undefined>;
  readonly initialMessages?: readonly Message[] | undefined;
  /** The parts of a prompt agent that differ with other settings; absent on custom agents. */
  withChanges?(changes: PromptChanges): Pick<AgentSpec, 'handler' | 'receive'>;
  /** The memory that its turns use. */
  readonly memory?: MemoryDefinition | undefined;
  /** The undo functions that its steps name. */
  readonly undo?: ReadonlyMap<string, UndoAction> | undefined;
  /** Rebuilds the parts of the context that are not JSON when a run is taken over. */
  readonly restoreContext?: ((context: JsonObject) => JsonObject) | undefined;
  readonly onFinish?: ((end: RunEnd) => void | Promise<void>) | undefined;
  readonly workspace?: WorkspaceSpec | undefined;
}

/** The part of an agent's description that only its prompt knows. */
export type AgentContent = Pick<AgentInfo, 'model' | 'tools' | 'skills' | 'outputSchema'>;

/** The files that an agent works on. */
export interface WorkspaceSpec {
  readonly from: Workspace | WorkspaceOf;
  /** Whether files that others have changed become a snapshot of their own. */
  readonly listsEdits: boolean;
  /** Whether a policy may want a snapshot after the tools of one model message. */
  readonly eachIteration: boolean;
}

/** Chooses the workspace of a session. `context` is that of the call. */
export type WorkspaceOf = (
  session: {
    /** The id of the session. */
    readonly sessionId: string;
    /** The name of the agent. */
    readonly agent: string;
    /** The owner of the session. */
    readonly owner?: string;
  },
  context: JsonObject,
) => Workspace | Promise<Workspace>;

/** How an agent without a store protects the state that its clients hold. */
export interface ClientStateOptions {
  /**
   * Signs the state, so that a changed one is rejected. At least 32 bytes, known only to the server. To rotate it, pass
   * several: the first one signs, and signatures of all of them are accepted.
   */
  readonly secret: string | readonly string[];
  /** Milliseconds after which a signed state is rejected. @default no limit */
  readonly maxAge?: number;
  /** Accepts a state only from the owner it was issued to. @default false */
  readonly bindOwner?: boolean;
  /**
   * A store that records which interrupts have been answered, so that sending the same state and the same approval again
   * does not run the tool again. You open and close it. @default none: tools see the same `idempotencyKey` again
   */
  readonly replayGuard?: Store | SnapshotStore;
}

/** A turn that waits for the answer of a person, as passed to `onInterrupt`. */
export interface InterruptEvent {
  /** The name of the agent. */
  readonly agent: string;
  /** The owner of the session. */
  readonly owner?: string;
  /** The session. */
  readonly sessionId: string;
  /** The run whose turn was interrupted; with the snapshots of every turn, also the snapshot. The same in every attempt to tell. */
  readonly runId: string;
  /** The tool calls that wait, as they are stored. */
  readonly requests: readonly ToolRequestPart[];
}
