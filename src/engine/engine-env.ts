import type { Agent } from '../agent/contract/agent.ts';
import { noDeadRun } from '../agent/contract/dispatcher.ts';
import { internalsOf } from '../agent/define/create-agent.ts';
import { resumeRun } from '../agent/define/resume-run.ts';
import { retryDeadRun, toDeadRun } from '../agent/define/run-operations.ts';
import type { AgentHost } from '../agent/persistence/host.ts';
import { defined } from '../core/json/json.ts';
import {
  type DeadRunRecord,
  handedOverHint,
  type RunSupport,
  type TakenRun,
} from '../store/contract/store.ts';
import type { ClaimedRun, DeadLetter, EngineEnv } from './engine.ts';
import { givenUpError } from './given-up.ts';
import { byStore, createRecovery } from './recovery.ts';
import type { Schedules } from './schedules.ts';
import { Suspects } from './suspects.ts';

/** Creates the view of an app that its engine works with. */
export function createEngineEnv(
  host: AgentHost,
  agents: () => readonly Agent[],
  { schedules, attempts }: { readonly schedules: Schedules; readonly attempts: number },
): EngineEnv {
  const suspects = new Suspects(host.clock, attempts);
  host.closing.addEventListener('abort', () => suspects.close(), { once: true });
  const agentOf = (name: string): Agent | undefined => agents().find((each) => each.name === name);
  const claimed = (agent: Agent, taken: TakenRun): ClaimedRun => ({
    run: taken.run,
    agent,
    async execute({ failure } = {}) {
      const { runId } = taken.run;
      const poison = givenUpError(taken.run, attempts);
      const error = failure ?? poison;
      try {
        return await resumeRun(agent, taken, {
          ...defined({ failure: error }),
          deadLetter: error !== undefined && error === poison,
          onProgress: () => suspects.clear(runId),
        });
      } finally {
        suspects.clear(runId);
      }
    },
  });
  const claimFrom = async (
    runs: RunSupport | undefined,
    names: readonly string[],
    request: Parameters<EngineEnv['claim']>[0],
  ): Promise<readonly ClaimedRun[]> => {
    const limit = request.runIds.length;
    const wanted = { ...request, agents: names, ttl: host.ttl, limit };
    return (await suspects.take(runs, wanted)).flatMap((each) => {
      const agent = agentOf(each.run.scope.agent);
      return agent === undefined ? [] : [claimed(agent, each)];
    });
  };
  const deadRuns = async (): Promise<readonly DeadRunRecord[]> => {
    const found = [...byStore(agents())].map(async ([{ runs }, names]) =>
      ((await runs?.listDeadRuns?.()) ?? []).filter(({ scope }) => names.includes(scope.agent)),
    );
    return (await Promise.all(found)).flat();
  };
  return {
    clock: host.clock,
    get worker() {
      return host.worker;
    },
    agents: () =>
      agents().map((agent) => {
        const { version } = internalsOf(agent).spec;
        return { agent, ...defined({ version }) };
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
      const runs = agent && internalsOf(agent).spec.store?.runs;
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
      createRecovery({ host, agents: own, schedules, suspects, attempts }, options),
    deadLetters: async () => (await deadRuns()).map(toLetter),
    async retry(runId) {
      const found = (await deadRuns()).find((each) => each.runId === runId);
      const agent = found && agentOf(found.scope.agent);
      if (found === undefined || agent === undefined) throw noDeadRun(runId);
      const runs = internalsOf(agent).spec.store?.runs;
      return (await retryDeadRun(agent, runs, found.scope, runId)).snapshotId;
    },
    running: () => host.live.list().length,
    background: (work) => host.background(work),
    report: (error, about = {}) => host.report(error, { ...about, phase: 'run' }),
  };
}

function toLetter(record: DeadRunRecord): DeadLetter {
  const { snapshotId: runId, ...rest } = toDeadRun(record);
  return { runId, ...rest, ...defined({ owner: record.scope.owner }) };
}
