import type { Agent } from '../../agent/contract/agent.ts';
import type { AgentSpec } from '../../agent/contract/spec.ts';
import { storedState } from '../../agent/contract/stored-state.ts';
import {
  type AgentInternals,
  createAgent,
  internalsOf,
  replicas,
} from '../../agent/define/create-agent.ts';
import { replicaHost } from '../../agent/define/replica.ts';
import type { AgentHost } from '../../agent/persistence/host.ts';
import { turnStoreOf } from '../../agent/persistence/turn-store.ts';
import type { App } from '../../app.ts';
import { lifelongController } from '../../core/async/signal.ts';
import { messageOf } from '../../core/error.ts';
import { getOrMake } from '../../core/get-or-make.ts';
import type { Clock } from '../../core/time.ts';
import { createEngineEnv } from '../../engine/engine-env.ts';
import { defaultAttempts } from '../../engine/given-up.ts';
import { createSchedules } from '../../engine/schedules.ts';
import { callProbe, type ToolReplay, toolReplay } from '../../generate/hooks.ts';
import type { ModelRef } from '../../generate/model.ts';
import { scopeOf } from '../../protocol/ids.ts';
import type { Store } from '../../store/contract/store.ts';
import { linkStore } from './link-store.ts';
import type { ProcessProbe } from './probe.ts';

interface ProcessOptions {
  readonly app: App;
  readonly store: Store;
  readonly clock: Clock;
  readonly probe: ProcessProbe;
  /** Milliseconds without a heartbeat after which another process takes over. */
  readonly ttl?: number;
  /** The agent that is tested, and its model. */
  readonly agent: string;
  readonly model: ModelRef | undefined;
  /** The owner of the sessions of the test, in a store that has others. */
  readonly owner?: string | undefined;
  /** Answers tools in place of the app's. */
  readonly tools?: ToolReplay | undefined;
}

/** The agents of an app over another store, as one process that may die. */
export function simulateProcess({
  app,
  probe,
  agent: tested,
  model,
  owner,
  tools,
  ...options
}: ProcessOptions) {
  const store = linkStore(options.store, probe);
  const original = internalsOf(app.agent(tested)).host;
  const work = new Set<Promise<unknown>>();
  let failure: string | undefined;
  const host: AgentHost = {
    ...replicaHost({ ...original, clock: options.clock }, (error, { phase }) => {
      if (phase === 'turn') failure = messageOf(error);
    }),
    ...(options.ttl !== undefined && { ttl: options.ttl }),
    worker: original.newId(),
    closing: lifelongController().signal,
    logger: undefined,
    onInterrupt: undefined,
    checkOpen() {},
    background(promise) {
      work.add(promise);
      const end = (): void => void work.delete(promise);
      promise.then(end, end);
    },
  };
  const copies = new Map<AgentInternals, Agent>();
  const copyOf = (own: AgentInternals): Agent =>
    getOrMake(copies, own, () =>
      copy(own.spec, { host, store, probe, model: own === ours ? model : undefined }),
    );
  const ours = internalsOf(app.agent(tested));
  const agents = app.agents().map((each) => copyOf(internalsOf(each)));
  const schedules = createSchedules(host, () => undefined);
  const env = createEngineEnv(host, () => agents, { schedules, attempts: defaultAttempts });
  const openRuns = async (): Promise<readonly string[]> => {
    const found = agents.map(({ name }) => options.store.runs?.listRuns(scopeOf({ name }, owner)));
    // Those of sub-agents in the foreground are continued by their parents.
    return (await Promise.all(found)).flatMap((runs = []) =>
      runs.flatMap(({ runId, mode }) => (mode === 'attached' ? [] : runId)),
    );
  };
  return {
    agent: copyOf(ours),
    /** Milliseconds after which the claims of a dead process expire. */
    ttl: host.ttl,
    /** Why its last turn failed, which a caller that sends it again is not told. */
    failure: () => failure,
    openRuns,
    /** Takes over the runs of dead processes; resolves to their number when they have ended. */
    async recover(): Promise<number> {
      const request = { runIds: await openRuns(), waitingAs: '', worker: host.worker };
      const claimed = await env.claim(request);
      await Promise.allSettled(claimed.map((run) => run.execute()));
      while (work.size > 0) await Promise.allSettled(work);
      return claimed.length;
    },
    /** Runs a function in this process. */
    inside: <Value>(fn: () => Value): Value =>
      replicas.run(
        (own) => internalsOf(copyOf(own)),
        () => callProbe.run(probe, () => (tools ? toolReplay.run(tools, fn) : fn())),
      ),
  };
}

export type SimulatedProcess = ReturnType<typeof simulateProcess>;

/** The same agent over the store of the test. It calls no hook of the application, and shows everything. */
function copy(
  spec: AgentSpec,
  {
    host,
    store,
    probe,
    model,
  }: { host: AgentHost; store: Store; probe: ProcessProbe; model: ModelRef | undefined },
): Agent {
  // Its state is with its caller.
  if (spec.store === undefined) return createAgent(spec, host);
  const { onFinish: _, clientState: __, handler, ...kept } = spec;
  const same: AgentSpec = {
    ...kept,
    store,
    concurrency: 'reject',
    transform: {},
    ownTransform: {},
    testModel: model,
    handler(...args) {
      if (spec.withChanges === undefined) probe.begin('the handler, outside its steps');
      return handler(...args);
    },
  };
  const turnStore = turnStoreOf(store, { host, upgrade: (state) => storedState(same, state) });
  return createAgent({ ...same, turnStore }, host);
}
