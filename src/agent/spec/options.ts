import { WaymarkError } from '../../core/error.ts';
import { type Json, type JsonObject, toJson } from '../../core/json/json.ts';
import {
  type InferSchema,
  parseSync,
  type Schema,
  toJsonSchema,
} from '../../core/schema/schema.ts';
import { always, on, type SnapshotPolicy } from '../../session/policy.ts';
import type { SnapshotStore, Store } from '../../store/contract/store.ts';
import { namedStore } from '../persistence/named-store.ts';
import { type ClientStateOptions, checkClientState } from '../persistence/sign-state.ts';
import { reportingTransform } from '../persistence/transform.ts';
import { clientTurnStore, turnStoreOf } from '../persistence/turn-store.ts';
import { invocationKey } from '../turn/invocation-context.ts';
import type { AgentMetadata } from './agent.ts';
import { storedState } from './init.ts';
import {
  type AgentHost,
  type AgentLimits,
  type AgentSpec,
  type Concurrency,
  fullStore,
  type RunEnd,
  type Transform,
} from './spec.ts';

/** What the custom state of a session is: `undefined` until it is set, unless the agent has an initial one. */
export type CustomOf<State, Initial> = State extends Schema
  ? undefined extends Initial
    ? InferSchema<State> | undefined
    : InferSchema<State>
  : Json | undefined;

/** What a schema gives, or any JSON when there is none. */
export type Inferred<S> = S extends Schema ? InferSchema<S> : Json | undefined;

/** What every agent can be told, whoever writes its turn loop. */
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
  /** Changes what leaves. */
  readonly transform?: Transform;
  /** Signs the state that a client holds, so that it cannot be forged. */
  readonly clientState?: ClientStateOptions;
  /** What happens to a second turn on a session that is being worked on. @default 'reject' */
  readonly concurrency?: Concurrency;
  readonly limits?: AgentLimits;
  /** Rebuilds what is not JSON in the context of a run that is taken over. */
  readonly restoreContext?: (context: JsonObject) => JsonObject;
  /** Hears of the end of a detached run. */
  readonly onFinish?: (end: RunEnd) => void | Promise<void>;
}

/** What an agent's definition needs from the app. */
export interface AgentEnv {
  readonly host: AgentHost;
  readonly store: Store | SnapshotStore | undefined;
}

type Common = Omit<AgentSpec, 'recovery' | 'handler' | 'checkInput' | 'receive'>;

/** The part of a spec that does not depend on who writes the turn loop, checked. */
export function commonSpec(
  options: AgentOptionsBase<Schema | undefined, unknown, Schema | undefined>,
  { host, store: appStore }: AgentEnv,
): Common {
  const { name, state: stateSchema, description } = options;
  const given = options.store === false ? undefined : (options.store ?? appStore);
  const store = given && namedStore(given);
  checkOptions(options, store);
  if (stateSchema !== undefined) toJsonSchema(stateSchema);
  const initialState = initialOf(options);
  const spec: Common = {
    name,
    ...(description !== undefined && { description }),
    ...(options.version !== undefined && { version: options.version }),
    store,
    turnStore: clientTurnStore,
    policy: policyOf(options.snapshot),
    concurrency: options.concurrency ?? 'reject',
    limits: options.limits ?? {},
    transform: reportingTransform(options.transform ?? {}, (error) =>
      reportTransform(host, name, error),
    ),
    ...(options.clientState && { clientState: options.clientState }),
    ...(stateSchema && { stateSchema }),
    ...(options.status && { statusSchema: options.status }),
    ...(initialState !== undefined && { initialState }),
    ...(options.upgradeState && { upgradeState: options.upgradeState }),
    ...(options.restoreContext && { restoreContext: options.restoreContext }),
    ...(options.onFinish && { onFinish: options.onFinish }),
  };
  if (store === undefined) return spec;
  const { cache, clock, worker, ttl } = host;
  const upgrade: Parameters<typeof turnStoreOf>[1]['upgrade'] = (state) => storedState(spec, state);
  return { ...spec, turnStore: turnStoreOf(store, { cache, clock, worker, ttl, upgrade }) };
}

// What is read of a session passes through the transform as well, outside of any turn.
function reportTransform(host: AgentHost, agent: string, error: unknown): void {
  const invocation = invocationKey.get();
  if (invocation?.spec.name === agent) invocation.failures.report(error, 'transform');
  else host.report(error, { phase: 'transform', agent });
}

/** What an agent and its store can do. */
export function metadataOf(spec: AgentSpec): AgentMetadata {
  const store = fullStore(spec);
  const claims = store?.runs !== undefined;
  return {
    stateManagement: spec.store === undefined ? 'client' : 'server',
    abortable: store?.abort !== undefined,
    detachable: claims && store?.abort !== undefined,
    watchable: claims && store?.events !== undefined,
    timeline: store?.timeline !== undefined,
    claims,
    requestIds: claims,
    ...(store && { store: store.name }),
    ...(spec.stateSchema && { stateSchema: toJsonSchema(spec.stateSchema) }),
  };
}

function checkOptions(
  {
    name,
    snapshot,
    clientState,
    concurrency,
  }: AgentOptionsBase<Schema | undefined, unknown, Schema | undefined>,
  store: Store | SnapshotStore | undefined,
): void {
  if (!/^[\w.-]{1,128}$/.test(name)) {
    throw new WaymarkError(
      'INVALID_ARGUMENT',
      `"${name.slice(0, 64)}" cannot be the name of an agent: use letters, digits, ".", "_" and "-", at most 128.`,
    );
  }
  if (store === undefined && snapshot !== undefined) {
    throw new WaymarkError(
      'FAILED_PRECONDITION',
      `Agent "${name}" has a snapshot policy but no store to keep snapshots in. Give it, or the app, a \`store\`.`,
    );
  }
  if (store !== undefined && clientState !== undefined) {
    throw new WaymarkError(
      'FAILED_PRECONDITION',
      `Agent "${name}" keeps its sessions in a store, so there is no client-held state to sign. Drop \`clientState\`, or set \`store: false\`.`,
    );
  }
  if (clientState !== undefined) checkClientState(name, clientState);
  const claims = store !== undefined && 'runs' in store && store.runs !== undefined;
  if (concurrency !== undefined && concurrency !== 'reject' && !claims) {
    throw new WaymarkError(
      'FAILED_PRECONDITION',
      `Agent "${name}" cannot ${concurrency} when a session is busy: its store does not know whether one is.`,
    );
  }
}

function initialOf({
  name,
  state,
  initialState,
}: AgentOptionsBase<Schema | undefined, unknown, Schema | undefined>): AgentSpec['initialState'] {
  if (initialState === undefined) return undefined;
  const what = `The initial state of agent "${name}"`;
  return toJson(state === undefined ? initialState : parseSync(state, initialState, what), what);
}

function policyOf(snapshot: SnapshotPolicy | 'always' | 'never' | undefined): SnapshotPolicy {
  if (snapshot === 'always') return always;
  if (snapshot === 'never') return () => false;
  return snapshot ?? on('turnEnd', 'invocationEnd');
}
