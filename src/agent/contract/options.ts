import type { Json, JsonObject } from '../../core/json/json.ts';
import type { OptionNames } from '../../core/options.ts';
import type { InferSchema, Schema } from '../../core/schema/schema.ts';
import type { Undo } from '../../generate/tool/undo.ts';
import type { Message } from '../../protocol/message.ts';
import type { SnapshotPolicy } from '../../session/policy.ts';
import type { SnapshotStore, Store } from '../../store/contract/store.ts';
import type { Workspace } from '../../workspace/contract/contract.ts';
import type { Memory } from './memory.ts';
import type { AgentLimits, ClientStateOptions, RunEnd, Transform, WorkspaceOf } from './spec.ts';

/** The type of a session's custom state: `undefined` until it is set, unless the agent has an initial one. */
export type CustomOf<State, Initial> = State extends Schema
  ? undefined extends Initial
    ? InferSchema<State> | undefined
    : InferSchema<State>
  : Json | undefined;

/** The options of any agent, without the types that a caller infers. */
export type AnyAgentOptions = AgentOptionsBase<Schema | undefined, unknown, Schema | undefined>;

/** The options of every agent, with the kinds of value that they take. */
export const agentOptionNames: OptionNames<AnyAgentOptions> = {
  name: true,
  description: 'text',
  version: 'text',
  state: true,
  initialState: true,
  upgradeState: 'function',
  status: true,
  store: true,
  snapshot: ['text', 'function'],
  transform: 'object',
  title: ['boolean', 'function'],
  clientState: 'object',
  concurrency: true,
  limits: 'object',
  memory: 'object',
  restoreContext: 'function',
  onFinish: 'function',
  workspace: ['object', 'function'],
  undo: 'object',
};

/** The parts of a state that a title can use. */
interface TitledState<Custom> {
  /** The messages so far. */
  readonly messages: readonly Message[];
  /** The custom state. */
  readonly custom: Custom;
}

/** The options of every agent, with a prompt or with a turn loop of your own. */
export interface AgentOptionsBase<
  State extends Schema | undefined,
  Initial,
  Status extends Schema | undefined,
> {
  /** The name, unique in the app. */
  readonly name: string;
  /** A description for users, and for models that can call the agent. */
  readonly description?: string;
  /** The version, recorded with dispatched runs: workers of the same version take them first. See docs/deploying.md. */
  readonly version?: string;
  /** The schema of the custom state. Loaded and client-held states are validated with it. */
  readonly state?: State;
  /** The custom state of a new session. */
  readonly initialState?: Initial;
  /** Converts a stored custom state that no longer matches the schema. */
  readonly upgradeState?: (
    custom: unknown,
  ) => InferSchema<State, Json | undefined> | Promise<InferSchema<State, Json | undefined>>;
  /** The schema of the status chunks that `respond.status` sends. */
  readonly status?: Status;
  /** The store for sessions; with `false` the client holds the state. @default the app's store */
  readonly store?: Store | SnapshotStore | false;
  /** When snapshots are taken. @default the end of each turn and of the invocation */
  readonly snapshot?: SnapshotPolicy<CustomOf<State, Initial>> | 'always' | 'never';
  /**
   * Returns the title of a new session, from its state after the first turn; `false` for no title. A session that is renamed keeps
   * its new title. @default the beginning of the first user message
   */
  readonly title?: false | ((state: TitledState<CustomOf<State, Initial>>) => string | undefined);
  /** Changes what clients receive. */
  readonly transform?: Transform;
  /** Signs the state that a client holds, so that it cannot be forged. */
  readonly clientState?: ClientStateOptions;
  /** Decides about a second turn on a busy session. @default 'reject' */
  readonly concurrency?: 'reject' | 'wait' | 'fork';
  /** Limits of time, tokens, cost and tool calls. */
  readonly limits?: AgentLimits;
  /**
   * A memory of `app.defineMemory`. A prompt agent gets entries that fit the input in its prompt, and tools to remember, recall and forget; the
   * turns of any agent can use the memory in code.
   */
  readonly memory?: Memory;
  /** Rebuilds the parts of the context that are not JSON when a run is taken over. */
  readonly restoreContext?: (context: JsonObject) => JsonObject;
  /** Called when a detached run has ended. */
  readonly onFinish?: (end: RunEnd) => void | Promise<void>;
  /**
   * The files that the agent works on, such as `directory('./project')` of waymark/workspace, or a function that chooses them. Each snapshot
   * has the whole tree, so that `restore`, `diff`, `fork` and `checkout` include the files.
   */
  readonly workspace?: Workspace | WorkspaceOf;
  /** Undoes effects of `session.step(…, { undo: name, input })`, by name. Tools have their own `undo`. */
  readonly undo?: Readonly<Record<string, Undo>>;
}
