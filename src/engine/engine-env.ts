import type { Agent } from '../agent/agent.ts';
import { internalsOf } from '../agent/create-agent.ts';
import { resumeRun } from '../agent/recovery.ts';
import { type AgentHost, fullStore } from '../agent/spec.ts';
import { handedOverHint, type RunSupport, type TakenRun } from '../session/store.ts';
import type { ClaimedRun, ClaimRuns, EngineEnv } from './engine.ts';
import { byStore, createRecovery } from './recovery.ts';

/** What an engine sees of an app. */
export function createEngineEnv(host: AgentHost, agents: () => readonly Agent[]): EngineEnv {
  const agentOf = (name: string): Agent | undefined => agents().find((each) => each.name === name);
  const claimFrom = async (
    runs: RunSupport | undefined,
    names: readonly string[],
    request: ClaimRuns,
  ): Promise<readonly ClaimedRun[]> => {
    const { ttl } = host;
    const limit = request.runIds.length;
    const taken = (await runs?.takeOver({ ...request, agents: names, ttl, limit })) ?? [];
    return taken.flatMap((each) => {
      const agent = agentOf(each.run.scope.agent);
      return agent === undefined || runs === undefined ? [] : [claimed(runs, agent, each)];
    });
  };
  return {
    clock: host.clock,
    worker: host.worker,
    agents: () =>
      agents().map((agent) => {
        const { version } = internalsOf(agent).spec;
        return { agent, ...(version !== undefined && { version }) };
      }),
    async claim(request) {
      if (request.runIds.length === 0) return [];
      const found = [...byStore(agents())].map(([{ runs }, names]) =>
        claimFrom(runs, names, request),
      );
      return (await Promise.all(found)).flat();
    },
    async isOpen(scope, runId) {
      const agent = agentOf(scope.agent);
      const runs = agent && fullStore(internalsOf(agent).spec)?.runs;
      return (await runs?.getRun(scope, runId)) !== undefined;
    },
    onHandedOver(listener) {
      const leave = [...byStore(agents()).keys()].map((store) =>
        store.abort?.onChange(handedOverHint, listener),
      );
      return () => {
        for (const each of leave) each?.();
      };
    },
    recovery: ({ agents: own = agents, ...options } = {}) =>
      createRecovery({ host, agents: own }, options),
    running: () => host.live.list().length,
    background: (work) => host.background(work),
    report: (error, about = { agent: '', runId: '' }) => host.report?.(error, about),
  };
}

function claimed(runs: RunSupport, agent: Agent, taken: TakenRun): ClaimedRun {
  const { run, claim } = taken;
  return {
    run,
    agent,
    goOn: (options) => resumeRun(agent, taken, options),
    getNote: async (key) => (await runs.getStep(claim, key))?.value,
    saveNote: (key, note) => runs.saveStep(claim, key, note),
  };
}
