import type { Agent, CallOptions } from './agent/contract/agent.ts';
import type { ErrorInfo } from './agent/contract/error-reports.ts';
import type { AgentHandler } from './agent/contract/handler.ts';
import type { Memory, MemoryOptions } from './agent/contract/memory.ts';
import type { AnyAgentOptions } from './agent/contract/options.ts';
import { agentActions } from './agent/define/agent-actions.ts';
import { internalsOf } from './agent/define/create-agent.ts';
import { createCustomAgent } from './agent/define/custom-agent.ts';
import type { DefineAgent, DefineCustomAgent, DefineTool } from './agent/define/define.ts';
import { createExtractor } from './agent/define/extract-memory.ts';
import { createMemory } from './agent/define/memory.ts';
import { createPromptAgent, type PromptAgentOptions } from './agent/define/prompt-agent.ts';
import { absentSession, checkToolHere } from './agent/define/tool-state.ts';
import { listAllWaiting } from './agent/define/waiting.ts';
import { createHost } from './agent/persistence/host.ts';
import { effectRecorder } from './agent/turn/effects.ts';
import { InvocationSession } from './agent/turn/invocation.ts';
import type { InvocationState } from './agent/turn/invocation-state.ts';
import { idempotencyKeyOf } from './agent/turn/steps.ts';
import { toolFolder } from './agent/workspace/tool-folder.ts';
import type { PendingInterrupts, StartedRun } from './api/agent-api.ts';
import { withInterrupts } from './api/calls.ts';
import { type AppOptions, checkAppOptions } from './app-options.ts';
import type { Action } from './core/action.ts';
import { WaymarkError } from './core/error.ts';
import { createIds } from './core/id.ts';
import { checkOptions } from './core/options.ts';
import { createRegistry, type Registry } from './core/registry.ts';
import type { InferSchema, InferSchemaInput, Schema } from './core/schema/schema.ts';
import { type Clock, systemClock } from './core/time.ts';
import type { Engine } from './engine/engine.ts';
import { createEngineEnv } from './engine/engine-env.ts';
import { checkAttempts, defaultAttempts } from './engine/given-up.ts';
import { localEngine } from './engine/local-engine.ts';
import type { Schedule, ScheduleInfo } from './engine/schedule.ts';
import { createSchedules } from './engine/schedules.ts';
import { type WorkUntilIdleOptions, workUntilIdle } from './engine/work-until-idle.ts';
import { createGenerator, type Definer } from './generate/generator.ts';
import { foldersOf, toSkillSources } from './generate/skill/skills.ts';
import { type ToolContext, unrecorded } from './generate/tool/tool-context.ts';
import type { Page } from './protocol/session.ts';
import { type Session, sessionKey } from './session/session.ts';
import type { ListOptions, MemorySupport, SnapshotStore, Store } from './store/contract/store.ts';
import { checkedStore } from './store/rules/checked-store.ts';
import { createWebhooks, type Webhooks } from './webhook/webhooks.ts';

/** An app: its own registry of models, tools, prompts and agents, over one store. */
export interface App extends Omit<Definer, 'defineTool'> {
  /** Declares a tool that agents can call. */
  readonly defineTool: DefineTool;
  /** Declares an agent that answers each turn by a model, with tools. */
  readonly defineAgent: DefineAgent;
  /** Declares an agent whose turn loop is your own. */
  readonly defineCustomAgent: DefineCustomAgent;
  /**
   * Declares a memory across sessions, in the app's store. Give it to agents, and read and write it in code.
   *
   * @example
   * const facts = app.defineMemory({ name: 'facts', schema: z.object({ text: z.string() }), scope: 'owner' });
   * const assistant = app.defineAgent({ name: 'assistant', memory: facts });
   */
  defineMemory<Value extends Schema>(
    options: MemoryOptions<Value>,
  ): Memory<InferSchema<Value>, InferSchemaInput<Value>>;
  /** The agent under a name; an unknown one is NOT_FOUND and says what exists. */
  agent(name: string): Agent;
  /** All agents in the order of their definition. */
  agents(): readonly Agent[];
  /**
   * The sessions of all agents that wait for the answer of a person, newest first. Answer with `app.agent(item.agent).resume(item, …)`.
   *
   * @example
   * const { items } = await app.listInterrupts({ owner: 'ann' });
   */
  listInterrupts(options?: CallOptions & ListOptions): Promise<Page<PendingInterrupts>>;
  /**
   * Starts runs of an agent in the background at set times. Each time starts one run, however many processes of the app there are. A
   * schedule is part of the code: one that you change or remove takes effect when the new code starts. It needs a process that works.
   *
   * @example
   * app.schedule({ key: 'digest', cron: '0 7 * * 1-5', timeZone: 'Europe/Lisbon', agent: 'writer', input: 'Write the digest.' });
   */
  schedule(schedule: Schedule): void;
  /** The schedules of the app, with the next time and the last run of each. */
  listSchedules(): Promise<readonly ScheduleInfo[]>;
  /** Starts a run of a schedule now, besides its times. */
  runSchedule(key: string): Promise<StartedRun>;
  /** Everything that is defined, as actions. */
  readonly registry: Registry<Action>;
  /** The store of the app. */
  readonly store: Store | SnapshotStore | undefined;
  /** The engine that executes background runs. */
  readonly engine: Engine;
  /** Sends signed webhooks; `undefined` without the option `webhooks`. */
  readonly webhooks: Webhooks | undefined;
  /** The clock of the app. */
  readonly clock: Clock;
  /**
   * Calls a listener for each failure in the app, like `onError`, until the returned function is called. For
   * servers and tools that show errors: while one listens, the app does not print them.
   */
  subscribeToErrors(listener: (error: unknown, info: ErrorInfo) => unknown): () => void;
  /**
   * Opens the store, loads prompt files and the packages of models that are named (`'openai/gpt-5'`), renders every agent's prompt once and asks its tool sources for their tools, so
   * that a mistake shows at start. A tool source that is not available is reported to `onError`.
   */
  ready(): Promise<void>;
  /**
   * Executes background runs until none is left or `timeout` has passed, for a process that a schedule starts: a cron job or a
   * serverless function. The app needs `work: false`, so that it does not work all the time. Call `close` afterwards: if runs were
   * waiting or running at the end (`isIdle` is `false`), it hands them over.
   * @example
   * const { isIdle } = await app.work({ timeout: 50_000 });
   * await app.close({ grace: 5_000 });
   */
  work(options?: WorkUntilIdleOptions): Promise<{ readonly isIdle: boolean }>;
  /**
   * Takes no new work, lets running turns finish, hands over or stops what has not finished within `grace`, and
   * closes the tool sources and the store. A second call closes nothing twice; with a shorter `grace` it ends the wait of the first one.
   * @default grace: 10000
   */
  close(options?: { readonly grace?: number }): Promise<void>;
}

/**
 * Creates an app: the models, the store and the agents that use them.
 *
 * @example
 * const app = waymark({ model: openai('gpt-5'), store: sqliteStore('waymark.db') });
 * const chat = app.defineAgent({ name: 'chat', system: 'You plan trips.' });
 * const { text } = await chat.run('Two days in Lisbon');
 */
export function waymark(options: AppOptions = {}): App {
  checkAppOptions(options);
  const { store, clock = systemClock, newId = createIds(clock) } = options;
  const { engine = localEngine() } = options;
  const work = (options.work ?? true) && globalThis.process?.env?.WAYMARK_RECOVER !== '0';
  const registry = createRegistry<Action>();
  const agents = createRegistry<Agent>();
  /** Agents that only this package uses; clients cannot reach them. */
  const internal: Agent[] = [];
  const checks: (() => Promise<void>)[] = [];
  const memories = new Set<string>();
  const life = createHost(
    { ...options, dispatcher: engine.dispatcher },
    {
      clock,
      newId,
      find: {
        agent(name) {
          const found = agents.find(`/agent/${name}`);
          return found && internalsOf(found).spec;
        },
        async tool(name) {
          try {
            return (await generator.resolveTools([name])).tools.get(name);
          } catch {
            return undefined;
          }
        },
      },
    },
  );
  const { host } = life;
  const generator = createGenerator<{ readonly session: Session }>({
    registry,
    clock,
    newId,
    model: options.model,
    price: options.price,
    checkTool: checkToolHere,
    templateState: () => sessionKey.get()?.custom,
    toolExtras: ({ name }) => {
      const session = sessionKey.get();
      const invocation = InvocationSession.stateOf(session);
      return {
        session: session ?? absentSession(name),
        ...(invocation && durableCall(session, invocation, name)),
        ...toolFolder(invocation),
        ...skillFolders(invocation),
      };
    },
  });
  const attempts = checkAttempts(engine.attempts ?? defaultAttempts);
  const schedules = createSchedules(host, (name) => agents.find(`/agent/${name}`));
  const all = (): readonly Agent[] => [...agents.list(), ...internal];
  engine.attach(createEngineEnv(host, all, { schedules, attempts }));
  let loaded: Promise<unknown> | undefined;

  const add = (agent: Agent): Agent => {
    agents.register(`/agent/${agent.name}`, agent);
    for (const action of agentActions(agent)) registry.register(action.key, action);
    // After the definitions of this module, so that all agents are known when runs are looked for.
    if (work && agents.list().length === 1) queueMicrotask(() => life.closed || engine.start());
    return agent;
  };
  const addInternal = (agent: Agent): void => {
    checkFree(agent.name);
    internal.push(agent);
  };
  // Before its prompt is defined, so that the error is about the agent.
  const checkFree = (name: string): void => {
    const isInternal = internal.some((agent) => agent.name === name);
    if (agents.find(`/agent/${name}`) === undefined && !isInternal) return;
    throw new WaymarkError(
      'ALREADY_EXISTS',
      `There is already an agent "${name}". Choose another name, or use app.agent('${name}').`,
    );
  };
  const skills = toSkillSources(options.skills ?? [], 'waymark()');
  const env = { host, store, generator, skills };
  const webhooks = options.webhooks && createWebhooks(options.webhooks, env, addInternal);

  let ended: Promise<void> | undefined;
  const end = async (): Promise<void> => {
    await engine.close?.();
    await generator.closeSources();
    await store?.close?.();
  };
  return {
    ...generator.definer,
    // The type of the session is read off the tool's options; inside, every state is JSON.
    defineTool: generator.defineTool as DefineTool,
    // The types that these give are read off their options; inside, every agent is JSON.
    defineAgent: ((own: PromptAgentOptions) => {
      checkFree(own.name);
      const { agent, check } = createPromptAgent(own, env);
      checks.push(check);
      return add(agent);
    }) as DefineAgent,
    defineCustomAgent: ((own: AnyAgentOptions, handler: AgentHandler) => {
      checkFree(own.name);
      return add(createCustomAgent(own, handler, env));
    }) as DefineCustomAgent,
    defineMemory(own) {
      const support = store === undefined ? undefined : memoryIn(store);
      if (support === undefined) throw noMemory(own.name, store !== undefined);
      if (memories.has(own.name)) throw memoryExists(own.name);
      const made = createMemory(own, {
        ...{ support, clock, newId, closing: host.closing },
        report: (error) => host.report(error, { phase: 'store' }),
        extractor: (definition, extract) =>
          createExtractor(definition, extract, { env, add: addInternal }),
      });
      memories.add(made.name);
      return made;
    },
    agent: (name) => agents.lookup(`/agent/${name}`),
    agents: () => agents.list(),
    async listInterrupts(asked = {}) {
      const { items, ...page } = await listAllWaiting(
        agents.list().map((each) => internalsOf(each).spec),
        asked,
      );
      return { ...page, items: items.map(withInterrupts) };
    },
    schedule(own) {
      schedules.add(own);
      // For an engine that does not poll, and a schedule that is added later.
      queueMicrotask(() => {
        if (work && !life.closed)
          engine.recover().catch((error) => host.report(error, { phase: 'run' }));
      });
    },
    listSchedules: schedules.list,
    runSchedule: schedules.run,
    registry,
    store,
    engine,
    webhooks,
    clock,
    subscribeToErrors: life.subscribeToErrors,
    async ready() {
      if (store !== undefined && 'open' in store) await store.open?.();
      await engine.open?.();
      if (options.promptDir !== undefined) loaded ??= generator.loadPrompts(options.promptDir);
      await loaded;
      await generator.loadModels();
      for (const check of checks) await check();
      await schedules.check();
    },
    async work(working = {}) {
      checkOptions(working, { timeout: true, slots: true, agents: true }, 'work()');
      if (work) {
        throw new WaymarkError(
          'FAILED_PRECONDITION',
          'This app works on background runs all the time. To work only when it is called, give waymark() `work: false`.',
        );
      }
      host.checkOpen();
      return await workUntilIdle(
        engine,
        { clock, running: () => host.live.list().length, closing: host.closing },
        working,
      );
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

function memoryIn(store: Store | SnapshotStore): MemorySupport | undefined {
  const checked: Partial<Store> = checkedStore(store);
  return checked.memory;
}

function noMemory(name: string, hasStore: boolean): WaymarkError {
  const why = hasStore ? 'the store of this app cannot keep one' : 'this app has no store';
  return new WaymarkError(
    'FAILED_PRECONDITION',
    `There is no place for memory "${name}": ${why}. Use the memory, SQLite, file or Postgres store.`,
  );
}

function memoryExists(name: string): WaymarkError {
  return new WaymarkError(
    'ALREADY_EXISTS',
    `There is already a memory "${name}". Choose another name.`,
  );
}

/** The parts of a tool's context that let a call happen once, however often its run is attempted. */
/** For commands of a shell: the folders of the agent's skills, as environment variables. */
function skillFolders(invocation: InvocationState | undefined): object {
  if (invocation?.spec.skills === undefined) return {};
  const { spec, request } = invocation;
  return { skillFolders: async () => foldersOf((await spec.skills?.(request.context)) ?? []) };
}

function durableCall(
  session: unknown,
  invocation: InvocationState,
  tool: string,
): Pick<ToolContext, 'idempotencyKey' | 'checkpoint'> {
  const idempotencyKey = idempotencyKeyOf(invocation, tool);
  return {
    ...effectRecorder(invocation, idempotencyKey),
    idempotencyKey,
    checkpoint: async (name, fn) =>
      session instanceof InvocationSession
        ? await session.toolStep(`${idempotencyKey} ${name}`, fn)
        : await unrecorded(name, fn),
  };
}
