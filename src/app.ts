import { agentActions } from './agent/define/agent-actions.ts';
import { createCustomAgent } from './agent/define/custom-agent.ts';
import type { CustomAgentOptions, DefineAgent, DefineCustomAgent } from './agent/define/define.ts';
import type { DefineTool, ToolExtras } from './agent/define/define-tool.ts';
import { createPromptAgent, type PromptAgentOptions } from './agent/define/prompt-agent.ts';
import { absentSession, checkToolHere } from './agent/define/tool-state.ts';
import { createEventLogs } from './agent/persistence/event-logs.ts';
import type { AgentHost } from './agent/persistence/host.ts';
import { createLiveRuns } from './agent/persistence/live-runs.ts';
import { createSessionCache } from './agent/persistence/session-cache.ts';
import type { Agent } from './agent/spec/agent.ts';
import {
  createErrorReports,
  type ErrorListener,
  type ErrorReports,
} from './agent/spec/error-reports.ts';
import type { AgentHandler } from './agent/spec/handler.ts';
import { InvocationSession } from './agent/turn/agent-session.ts';
import { idempotencyKeyOf } from './agent/turn/idempotency-key.ts';
import type { Action } from './core/action.ts';
import { WaymarkError } from './core/error.ts';
import { createIds, type NewId } from './core/id.ts';
import { checkOptions, type OptionNames } from './core/options.ts';
import { createRegistry, type Registry } from './core/registry.ts';
import { type Clock, systemClock } from './core/time/clock.ts';
import { waitAtMost } from './core/time/timeout.ts';
import type { Engine } from './engine/engine.ts';
import { createEngineEnv } from './engine/engine-env.ts';
import { checkAttempts, defaultAttempts } from './engine/given-up.ts';
import { localEngine } from './engine/local-engine.ts';
import { createGenerator, type Generator } from './generate/generator.ts';
import type { ModelRef } from './generate/model.ts';
import { sessionKey } from './session/session.ts';
import type { SnapshotStore, Store } from './store/contract/store.ts';

/** Options of an app. */
export interface AppOptions {
  /** The default model of agents and generate calls. */
  readonly model?: ModelRef;
  /** The store for sessions. Without a store, the client holds the state. */
  readonly store?: Store | SnapshotStore;
  /** A directory of `.prompt` files, loaded by `ready()`. */
  readonly promptDir?: string;
  /** Milliseconds without a heartbeat after which another process takes over a run. @default 5000 */
  readonly claimTtl?: number;
  /** Executes background runs. @default in the process that accepted them */
  readonly engine?: Engine;
  /**
   * Whether this process executes runs that other processes accepted or handed over. Set it to `false` for a server
   * that only accepts requests. `WAYMARK_RECOVER=0` in the environment turns it off for all apps. @default true
   */
  readonly work?: boolean;
  /** Number of sessions whose states are cached in memory between turns. @default 256 */
  readonly cacheSize?: number;
  /**
   * Called once for each failure in the app: of a turn, model call, tool, prompt, policy, transform, hook, save or
   * background run. Gets the thrown error with its stack, which remote clients never see. @default prints to standard error
   */
  readonly onError?: ErrorListener;
  /** @default the system's */
  readonly clock?: Clock;
  /** @default time-ordered UUIDs */
  readonly newId?: NewId;
}

/** An app: its own registry of models, tools, prompts and agents, over one store. */
export interface App
  extends Omit<
    Generator,
    | 'defineTool'
    | 'prompt'
    | 'resolveTool'
    | 'resolveTools'
    | 'closeSources'
    | 'resolveModel'
    | 'startGenerate'
  > {
  readonly defineTool: DefineTool;
  /** Declares an agent that answers each turn by a model, with tools. */
  readonly defineAgent: DefineAgent;
  /** Declares an agent whose turn loop is your own. */
  readonly defineCustomAgent: DefineCustomAgent;
  /** The agent under a name; an unknown one is NOT_FOUND and says what exists. */
  agent(name: string): Agent;
  /** All agents in the order of their definition. */
  agents(): readonly Agent[];
  /** Everything that is defined, as actions. */
  readonly registry: Registry<Action>;
  readonly store: Store | SnapshotStore | undefined;
  readonly engine: Engine;
  readonly clock: Clock;
  /**
   * Calls a listener for each failure in the app, like `onError`, until the returned function is called. For
   * servers and tools that show errors: while one listens, the app does not print them.
   */
  subscribeToErrors(listener: ErrorListener): () => void;
  /**
   * Opens the store, loads prompt files, renders every agent's prompt once and asks its tool sources for their tools, so
   * that a mistake shows at start. A tool source that is not available is reported to `onError`.
   */
  ready(): Promise<void>;
  /**
   * Takes no new work, lets running turns finish, hands over or stops what has not finished within `grace`, and
   * closes the tool sources and the store. A second call closes nothing twice; with a shorter `grace` it ends the wait of the first one.
   * @default grace: 10000
   */
  close(options?: { readonly grace?: number }): Promise<void>;
}

const appOptionNames: OptionNames<AppOptions> = {
  model: true,
  store: true,
  promptDir: true,
  claimTtl: true,
  engine: true,
  work: true,
  cacheSize: true,
  onError: true,
  clock: true,
  newId: true,
};

/** Creates an app. */
export function waymark(options: AppOptions = {}): App {
  checkOptions(options, appOptionNames, 'waymark()');
  const { store, clock = systemClock, newId = createIds(clock) } = options;
  const { engine = localEngine() } = options;
  const work = (options.work ?? true) && globalThis.process?.env?.WAYMARK_RECOVER !== '0';
  const registry = createRegistry<Action>();
  const agents = createRegistry<Agent>();
  const checks: (() => Promise<void>)[] = [];
  const life = createLife({ ...options, engine }, { clock, newId });
  const { host } = life;
  const generator = createGenerator<ToolExtras>({
    registry,
    clock,
    newId,
    model: options.model,
    checkTool: checkToolHere,
    templateState: () => sessionKey.get()?.custom,
    toolExtras: ({ name }) => {
      const session = sessionKey.get();
      const invocation = InvocationSession.stateOf(session);
      return {
        session: session ?? absentSession(name),
        ...(invocation && { idempotencyKey: idempotencyKeyOf(invocation, name) }),
      };
    },
  });
  const attempts = checkAttempts(engine.attempts ?? defaultAttempts);
  engine.attach(createEngineEnv(host, () => agents.list(), attempts));
  let loaded: Promise<void> | undefined;

  const add = (agent: Agent): Agent => {
    agents.register(`/agent/${agent.name}`, agent);
    for (const action of agentActions(agent)) registry.register(action.key, action);
    // After the definitions of this module, so that all agents are known when runs are looked for.
    if (work && agents.list().length === 1) queueMicrotask(() => life.closed || engine.start());
    return agent;
  };
  // Before its prompt is defined, so that the error is about the agent.
  const checkFree = (name: string): void => {
    if (agents.find(`/agent/${name}`) === undefined) return;
    throw new WaymarkError(
      'ALREADY_EXISTS',
      `There is already an agent "${name}". Choose another name, or use app.agent('${name}').`,
    );
  };
  const env = { host, store, generator };
  const {
    // For agents only.
    prompt: _prompt,
    resolveTool: _resolveTool,
    resolveTools: _resolveTools,
    closeSources: _closeSources,
    resolveModel: _resolveModel,
    startGenerate: _startGenerate,
    ...defining
  } = generator;

  let ended: Promise<void> | undefined;
  const end = async (): Promise<void> => {
    await engine.close?.();
    await generator.closeSources();
    await store?.close?.();
  };
  return {
    ...defining,
    // The type of the session is read off the tool's options; inside, every state is JSON.
    defineTool: defining.defineTool as DefineTool,
    // The types that these give are read off their options; inside, every agent is JSON.
    defineAgent: ((own: PromptAgentOptions) => {
      checkFree(own.name);
      const { agent, check } = createPromptAgent(own, env);
      checks.push(check);
      return add(agent);
    }) as DefineAgent,
    defineCustomAgent: ((own: CustomAgentOptions, handler: AgentHandler) => {
      checkFree(own.name);
      return add(createCustomAgent(own, handler, env));
    }) as DefineCustomAgent,
    agent: (name) => agents.lookup(`/agent/${name}`),
    agents: () => agents.list(),
    registry,
    store,
    engine,
    clock,
    subscribeToErrors: life.subscribeToErrors,
    async ready() {
      if (store !== undefined && 'open' in store) await store.open?.();
      await engine.open?.();
      loaded ??= options.promptDir === undefined ? undefined : load(generator, options.promptDir);
      await loaded;
      for (const check of checks) await check();
    },
    async close(ending = {}) {
      checkOptions(ending, { grace: true }, 'close()', { deadlineMs: 'grace' });
      const { grace = 10_000 } = ending;
      engine.stop();
      await life.drain(grace);
      ended ??= end();
      await ended;
    },
  };
}

async function load(generator: Generator<ToolExtras>, directory: string): Promise<void> {
  await generator.loadPrompts(directory);
}

/** What is under way in an app, and how it ends. */
function createLife(
  { claimTtl: ttl = 5_000, cacheSize = 256, onError, engine }: AppOptions,
  { clock, newId }: { readonly clock: Clock; readonly newId: NewId },
): {
  readonly host: AgentHost;
  readonly subscribeToErrors: ErrorReports['subscribe'];
  readonly closed: boolean;
  drain(grace: number): Promise<void>;
} {
  const work = new Set<Promise<unknown>>();
  const live = createLiveRuns({ clock, ttl });
  const closing = new AbortController();
  const reports = createErrorReports(onError);
  const host: AgentHost = {
    clock,
    newId,
    worker: newId(),
    ttl,
    cache: createSessionCache(cacheSize),
    live,
    logs: createEventLogs(clock),
    ...(engine?.dispatcher && { dispatcher: engine.dispatcher }),
    closing: closing.signal,
    checkOpen() {
      if (closing.signal.aborted)
        throw new WaymarkError('UNAVAILABLE', 'The app is closing and takes no new turns.');
    },
    background(promise) {
      const settled = promise.catch(() => {}).finally(() => work.delete(settled));
      work.add(settled);
    },
    report: reports.report,
  };
  const finished = async (): Promise<void> => {
    while (work.size > 0) await Promise.all(work);
  };
  const idle = (ms: number): Promise<void> => waitAtMost(clock, ms, finished());
  return {
    host,
    subscribeToErrors: reports.subscribe,
    get closed() {
      return closing.signal.aborted;
    },
    async drain(grace) {
      closing.abort();
      await idle(grace);
      const letGo = live.list().map(async ({ ref, store, control, recoverable }) => {
        if (!recoverable()) return control.stop();
        // First of all it is free for others; what is still written here names its attempt.
        await store.runs?.handOver(ref).catch(() => {});
        control.markLost();
      });
      await Promise.all(letGo);
      await idle(1_000);
    },
  };
}
