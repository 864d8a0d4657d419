import { failedPrecondition, invalid } from '../../core/error.ts';
import { toJson } from '../../core/json/json.ts';
import { checkChoice, checkOptions, type OptionNames } from '../../core/options.ts';
import { parseSync, toJsonSchema } from '../../core/schema/schema.ts';
import { checkCost } from '../../generate/answer/price.ts';
import { checkLimits } from '../../generate/generate-options.ts';
import { toUndoAction, type UndoAction } from '../../generate/tool/undo.ts';
import { textOf } from '../../protocol/messages.ts';
import { always, on, type SnapshotPolicy } from '../../session/policy.ts';
import { emptyState, type SessionState } from '../../session/session-state.ts';
import { checkedStore } from '../../store/rules/checked-store.ts';
import type { Workspace } from '../../workspace/contract/contract.ts';
import type { MemoryDefinition } from '../contract/memory.ts';
import type { AnyAgentOptions } from '../contract/options.ts';
import type {
  AgentLimits,
  AgentSpec,
  AgentStore,
  Transform,
  WorkspaceOf,
  WorkspaceSpec,
} from '../contract/spec.ts';
import { storedState } from '../contract/stored-state.ts';
import { definitionOf } from '../memory/definition.ts';
import { checkClientState } from '../persistence/client-state.ts';
import type { AgentHost } from '../persistence/host.ts';
import { completeTransform } from '../persistence/transform.ts';
import { clientTurnStore, turnStoreOf } from '../persistence/turn-store.ts';

export interface AgentEnv {
  readonly host: AgentHost;
  readonly store: AgentStore | undefined;
}

type Common = Omit<AgentSpec, 'recovery' | 'handler' | 'checkInput' | 'receive'>;

/** The part of a spec that does not depend on who writes the turn loop, checked. */
export function commonSpec(options: AnyAgentOptions, { host, store: appStore }: AgentEnv): Common {
  const { name, description, version, state: stateSchema, status: statusSchema } = options;
  const {
    clientState,
    upgradeState,
    restoreContext,
    onFinish,
    undo,
    transform: ownTransform = {},
  } = options;
  const given = options.store === false ? undefined : (options.store ?? appStore);
  const store = given && checkedStore(given);
  checkAgentOptions(options, store);
  if (stateSchema !== undefined) toJsonSchema(stateSchema);
  const initialState = initialOf(options);
  const spec: Common = {
    name,
    description,
    version,
    store,
    turnStore: clientTurnStore,
    policy: policyOf(options.snapshot),
    concurrency: options.concurrency ?? 'reject',
    limits: options.limits ?? {},
    titleOf: titleBy(options.title),
    ownTransform,
    transform: completeTransform(
      ownTransform,
      (error) => host.report(error, { phase: 'transform', agent: name }),
      initialState,
    ),
    clientState,
    stateSchema,
    statusSchema,
    initialState,
    freshState: { ...emptyState, custom: initialState },
    upgradeState,
    restoreContext,
    onFinish,
    ...(options.workspace && { workspace: workspaceSpec(options.workspace, options) }),
    memory: memoryFor(options, store),
    undo: undo && undoActions(name, undo),
  };
  if (store === undefined) return spec;
  const upgrade: Parameters<typeof turnStoreOf>[1]['upgrade'] = (state) => storedState(spec, state);
  return { ...spec, turnStore: turnStoreOf(store, { host, upgrade }) };
}

function undoActions(
  agent: string,
  undo: NonNullable<AnyAgentOptions['undo']>,
): ReadonlyMap<string, UndoAction> {
  const named = Object.entries(undo).map(
    ([name, each]) => [name, toUndoAction(each, `\`undo.${name}\` of agent "${agent}"`)] as const,
  );
  return new Map(named);
}

function checkAgentOptions(options: AnyAgentOptions, store: AgentStore | undefined): void {
  const { name, snapshot, clientState, concurrency, limits = {}, transform = {} } = options;
  if (typeof name !== 'string' || !/^[\w.-]{1,128}$/.test(name)) {
    throw invalid(
      `"${String(name).slice(0, 64)}" cannot be the name of an agent: use letters, digits, ".", "_" and "-", at most 128.`,
    );
  }
  if (concurrency !== undefined)
    checkChoice(concurrency, ['reject', 'wait', 'fork'], '`concurrency`');
  if (typeof snapshot === 'string') checkChoice(snapshot, ['always', 'never'], '`snapshot`');
  if (store === undefined && snapshot !== undefined) {
    throw failedPrecondition(
      `Agent "${name}" has a snapshot policy but no store to keep snapshots in. Give it, or the app, a \`store\`.`,
    );
  }
  if (store !== undefined && clientState !== undefined) {
    throw failedPrecondition(
      `Agent "${name}" keeps its sessions in a store, so there is no client-held state to sign. Drop \`clientState\`, or set \`store: false\`.`,
    );
  }
  checkAgentLimits(name, limits, store);
  checkOptions(transform, transformNames, `\`transform\` of agent "${name}"`);
  if (clientState !== undefined) checkClientState(name, clientState);
  checkWorkspace(options, store);
  const claims = store?.runs !== undefined;
  if (concurrency !== undefined && concurrency !== 'reject' && !claims) {
    throw failedPrecondition(
      `Agent "${name}" cannot ${concurrency} when a session is busy: its store does not know whether one is.`,
    );
  }
}

function workspaceSpec(
  from: Workspace | WorkspaceOf,
  { snapshot }: AnyAgentOptions,
): WorkspaceSpec {
  return { from, listsEdits: snapshot !== 'never', eachIteration: typeof snapshot === 'function' };
}

function checkWorkspace(
  { name, concurrency, workspace }: AnyAgentOptions,
  store: AgentStore | undefined,
): void {
  if (workspace === undefined) return;
  if (store === undefined) {
    throw failedPrecondition(
      `Agent "${name}" has a workspace but no store to keep its files in: the client holds its state. Give it, or the app, a \`store\`.`,
    );
  }
  if (store.runs === undefined || store.files?.writeTree === undefined) {
    throw failedPrecondition(
      `Agent "${name}" has a workspace, and its store cannot keep the trees of one. Use the memory, file, SQLite or Postgres store.`,
    );
  }
  if (typeof workspace === 'function') return;
  if (typeof workspace.open !== 'function') {
    throw invalid(
      `The \`workspace\` of agent "${name}" must be one, such as directory('./project') of waymark/workspace, or a function that returns one.`,
    );
  }
  if (concurrency === 'fork' && !workspace.isPerSession) {
    throw failedPrecondition(
      `Agent "${name}" forks busy sessions, and its sessions share the workspace "${workspace.name}". Give each session a folder of its own, with directory.perSession().`,
    );
  }
}

const transformNames = {
  state: true,
  chunk: true,
  output: true,
  title: true,
  error: true,
} satisfies Record<keyof Transform, true>;

const sessionLimits: OptionNames<NonNullable<AgentLimits['session']>> = {
  tokens: 'number',
  cost: true,
  toolCalls: 'number',
  customLength: 'number',
  fileSize: 'number',
};

function checkAgentLimits(name: string, limits: AgentLimits, store: AgentStore | undefined): void {
  const { turn, session, owner, reserve } = limits;
  const check = (given: object = {}, names: Parameters<typeof checkOptions>[1], of = ''): void =>
    checkOptions(given, names, `\`limits${of}\` of agent "${name}"`);
  check(limits, { turn: true, session: true, owner: true, reserve: true });
  checkLimits(turn ?? {}, `\`limits.turn\` of agent "${name}"`);
  check(session, sessionLimits, '.session');
  check(owner, { tokens: 'number', cost: true, per: true }, '.owner');
  check(reserve, { tokens: 'number', cost: true }, '.reserve');
  if (owner?.per !== undefined) checkChoice(owner.per, ['day', 'month'], '`limits.owner.per`');
  for (const [where, cost] of Object.entries({
    turn: turn?.cost,
    session: session?.cost,
    owner: owner?.cost,
    reserve: reserve?.cost,
  })) {
    if (cost !== undefined) checkCost(cost, `\`limits.${where}.cost\` of agent "${name}"`);
  }
  const needs = owner !== undefined || session?.cost !== undefined;
  const records = store?.spend !== undefined;
  if (needs && !records) {
    throw failedPrecondition(
      `Agent "${name}" limits what ${owner === undefined ? 'a session' : 'an owner'} spends, but has no store that records it. Use the memory, SQLite, file or Postgres store.`,
    );
  }
}

/** The memory of an agent. Its writes are saved with its turns, so it must be in the same store. */
function memoryFor(
  { name, memory }: AnyAgentOptions,
  store: AgentStore | undefined,
): MemoryDefinition | undefined {
  if (memory === undefined) return undefined;
  const definition = definitionOf(memory, name);
  if (store === undefined || store.memory === definition.support) return definition;
  throw failedPrecondition(
    `Agent "${name}" has another store than memory "${definition.name}", which is in the store of the app. Use the same one.`,
  );
}

function initialOf({ name, state, initialState }: AnyAgentOptions): AgentSpec['initialState'] {
  if (initialState === undefined) return undefined;
  const what = `The initial state of agent "${name}"`;
  return toJson(state === undefined ? initialState : parseSync(state, initialState, what), what);
}

function policyOf(snapshot: SnapshotPolicy | 'always' | 'never' | undefined): SnapshotPolicy {
  if (snapshot === 'always') return always;
  if (snapshot === 'never') return () => false;
  return snapshot ?? on('turnEnd', 'invocationEnd');
}

type MakeTitle = (state: { readonly messages: never; readonly custom: never }) => unknown;

/** How long a title becomes at most. */
const maxLength = 80;

/** How the sessions of an agent get their titles. */
function titleBy(title: false | MakeTitle | undefined): AgentSpec['titleOf'] {
  if (title === false) return () => undefined;
  if (title === undefined) return firstMessage;
  return ({ history, custom }) => {
    // The type of the custom state is that of the agent's schema.
    const made = title({ messages: history.messages as never, custom: custom as never });
    return typeof made === 'string' ? shorten(made) : undefined;
  };
}

function firstMessage({ history }: SessionState): string | undefined {
  const first = history.messages.find(({ role }) => role === 'user');
  return shorten(textOf(first));
}

/** A text as one line of bounded length; `undefined` if there is nothing in it. */
function shorten(text: string): string | undefined {
  // A long text need not be looked through for a short title.
  const line = text
    .slice(0, maxLength * 10)
    .replace(/\s+/g, ' ')
    .trim();
  if (line === '') return undefined;
  if (line.length <= maxLength) return line;
  const characters = [...line];
  return characters.length <= maxLength
    ? line
    : `${characters
        .slice(0, maxLength - 1)
        .join('')
        .trimEnd()}…`;
}
