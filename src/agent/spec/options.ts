import type { Json, JsonObject } from '../../core/json/json.ts';
import type { OptionNames } from '../../core/options.ts';
import type { InferSchema, Schema } from '../../core/schema/schema.ts';
import type { Message } from '../../protocol/message.ts';
import type { SnapshotPolicy } from '../../session/policy.ts';
import type { SnapshotStore, Store } from '../../store/contract/store.ts';
import type { ClientStateOptions } from './client-state.ts';
import type { AgentLimits, Concurrency, RunEnd, Transform } from './spec.ts';

/** What the custom state of a session is: `undefined` until it is set, unless the agent has an initial one. */
export type CustomOf<State, Initial> = State extends Schema
  ? undefined extends Initial
    ? InferSchema<State> | undefined
    : InferSchema<State>
  : Json | undefined;

type AnyOptions = AgentOptionsBase<Schema | undefined, unknown, Schema | undefined>;

/** The options of every agent. */
export const agentOptionNames: OptionNames<AnyOptions> = {
  name: true,
  description: true,
  version: true,
  state: true,
  initialState: true,
  upgradeState: true,
  status: true,
  store: true,
  snapshot: true,
  transform: true,
  title: true,
  clientState: true,
  concurrency: true,
  limits: true,
  restoreContext: true,
  onFinish: true,
};

/** What a schema gives, or any JSON when there is none. */
export type Inferred<S> = S extends Schema ? InferSchema<S> : Json | undefined;

/** What a title is made of. */
export interface TitledState<Custom> {
  readonly messages: readonly Message[];
  readonly custom: Custom;
}

/** The options of every agent, with a prompt or with a turn loop of your own. */
export interface AgentOptionsBase<
  State extends Schema | undefined,
  Initial,
  Status extends Schema | undefined,
> {
  readonly name: string;
  readonly description?: string;
  /** Recorded with a run that is dispatched: workers of the same version come first. See docs/deploying.md. */
  readonly version?: string;
  /** The type of the custom state; what is loaded and what a client sends is checked against it. */
  readonly state?: State;
  /** The custom state of a fresh session. */
  readonly initialState?: Initial;
  /** Brings a stored custom state that no longer fits the schema up to it. */
  readonly upgradeState?: (custom: unknown) => Inferred<State> | Promise<Inferred<State>>;
  /** The type of the status chunks; what `respond.status` sends is checked against it. */
  readonly status?: Status;
  /** Where sessions are kept; `false`: by the client. @default the app's store */
  readonly store?: Store | SnapshotStore | false;
  /** What becomes a snapshot. @default the end of each turn and of the invocation */
  readonly snapshot?: SnapshotPolicy<CustomOf<State, Initial>> | 'always' | 'never';
  /**
   * The title of a new session, from its state after the first turn; `false`: none. A session that is renamed keeps its new
   * title. @default the beginning of the first user message
   */
  readonly title?: false | ((state: TitledState<CustomOf<State, Initial>>) => string | undefined);
  /** Changes what leaves. */
  readonly transform?: Transform;
  /** Signs the state that a client holds, so that it cannot be forged. */
  readonly clientState?: ClientStateOptions;
  /** What happens to a second turn on a session that is being worked on. @default 'reject' */
  readonly concurrency?: Concurrency;
  readonly limits?: AgentLimits;
  /** Rebuilds what is not JSON in the context of a run that is taken over. */
  readonly restoreContext?: (context: JsonObject) => JsonObject;
  /** Called when a detached run has ended. */
  readonly onFinish?: (end: RunEnd) => void | Promise<void>;
}
