import { internalsOf } from '../agent/define/create-agent.ts';
import { resumeRun } from '../agent/define/resume-run.ts';
import type { AgentHost } from '../agent/persistence/host.ts';
import type { Agent } from '../agent/spec/agent.ts';
import { fullStore } from '../agent/spec/spec.ts';
import { messageOf } from '../core/error.ts';
import type { RunSupport, Store, TakenRun } from '../store/contract/store.ts';
import { givenUpError } from './given-up.ts';
import { createSaveFailures, givenUp } from './save-failures.ts';
import type { Suspects } from './suspects.ts';

/** Runs taken over at a time. */
const maxAtOnce = 16;

/** Looks for runs whose workers are no more. */
export interface Recovery {
  /** Looks now and from then on. With names, only for runs of those agents. */
  start(names?: readonly string[]): void;
  stop(): void;
  /** Looks once, and resolves when what was found has been taken over. */
  look(): Promise<number>;
}

/** Takes over expired runs of an app's agents from their stores, its own former ones included. */
export function createRecovery(
  {
    host,
    agents,
    suspects,
    attempts,
  }: {
    readonly host: AgentHost;
    readonly agents: () => readonly Agent[];
    readonly suspects: Suspects;
    /** Crashes after which a run is given up. */
    readonly attempts: number;
  },
  options: {
    /** Leaves runs alone whose worker's name begins with this. */
    readonly exceptWorker?: string;
  } = {},
): Recovery {
  const { worker, ttl } = host;
  let stopTicking: (() => void) | undefined;
  let looking: Promise<number> | undefined;
  let only: readonly string[] | undefined;
  const saveFailures = createSaveFailures(host);
  /** What a store said at the last look, where it could not be read. */
  const away = new Map<Store, string>();

  const goOn = async (agent: Agent, store: Store, taken: TakenRun): Promise<void> => {
    const { runId, scope } = taken.run;
    const { attempt } = taken.claim;
    const before = saveFailures.of(runId);
    if (before !== undefined && !(await saveFailures.rest(before, store, { runId, attempt })))
      return;
    const poison = givenUpError(taken.run, attempts);
    const failure = poison ?? givenUp(before);
    let trouble: unknown;
    await resumeRun(agent, taken, {
      ...(failure && { failure }),
      deadLetter: poison !== undefined,
      onProgress: () => suspects.clear(runId),
      onTrouble: (error) => {
        trouble = error;
      },
    });
    const open = await store.runs?.getRun(scope, runId);
    if (open?.attempt === attempt) saveFailures.note(runId, trouble ?? notEnded(runId));
    else saveFailures.forget(runId);
  };
  const recoverFrom = async (store: Store, names: readonly string[]): Promise<number> => {
    const request = { agents: names, worker, ttl, limit: maxAtOnce, ...options };
    const taken = await takeSuspects(store.runs, request, suspects);
    for (const each of taken) {
      const agent = agents().find(({ name }) => name === each.run.scope.agent);
      if (agent === undefined) continue;
      const report = (error: unknown): void =>
        host.report(error, {
          phase: 'run',
          agent: agent.name,
          sessionId: each.run.sessionId,
          runId: each.run.runId,
        });
      const over = (): void => suspects.clear(each.run.runId);
      host.background(goOn(agent, store, each).catch(report).finally(over));
    }
    return taken.length;
  };
  const wanted = (): readonly Agent[] => {
    const all = agents();
    return only === undefined ? all : all.filter(({ name }) => only?.includes(name));
  };
  const lookThrough = async (): Promise<number> => {
    let found = 0;
    // A process that stood still finds its own claims expired: they are not for it to take.
    await host.live.beat();
    for (const [store, names] of byStore(wanted())) {
      try {
        found += await recoverFrom(store, names);
        away.delete(store);
      } catch (error) {
        // The store may be away for a moment; the next look tries again. One outage is one failure.
        const message = messageOf(error);
        if (away.get(store) === message) continue;
        away.set(store, message);
        host.report(error, { phase: 'run', agent: names.join(', ') });
      }
    }
    return found;
  };
  const look = (): Promise<number> => {
    looking ??= lookThrough().finally(() => {
      looking = undefined;
    });
    return looking;
  };

  return {
    start(names) {
      only = names;
      if (stopTicking !== undefined) return;
      const stopLooking = host.clock.every(Math.max(20, ttl / 2), () => void look());
      // A look that is under way may have asked too early.
      const stopWaiting = suspects.onFree(() => void (looking ?? Promise.resolve()).then(look));
      stopTicking = () => {
        stopLooking();
        stopWaiting();
      };
      void look();
    },
    stop() {
      stopTicking?.();
      stopTicking = undefined;
    },
    look,
  };
}

/** Takes runs over, suspects one at a time. */
export async function takeSuspects(
  runs: RunSupport | undefined,
  request: Parameters<RunSupport['takeOver']>[0],
  suspects: Suspects,
): Promise<readonly TakenRun[]> {
  const permit = suspects.permit();
  let taken: readonly TakenRun[] = [];
  try {
    const { limit, maxCrashes, attempts } = permit;
    const limited = { ...request, suspects: { limit, maxCrashes, attempts } };
    taken = (await runs?.takeOver(limited)) ?? [];
    return taken;
  } finally {
    permit.settle(
      taken.map(({ run: { runId, crashes = [] } }) => ({ runId, crashes: crashes.length })),
    );
  }
}

function notEnded(runId: string): Error {
  return new Error(`Run "${runId}" was worked on, but is still open.`);
}

/** The stores that keep runs of these agents, with the names of the agents. */
export function byStore(agents: readonly Agent[]): Map<Store, string[]> {
  const stores = new Map<Store, string[]>();
  for (const agent of agents) {
    const store = fullStore(internalsOf(agent).spec);
    if (store?.runs === undefined) continue;
    const names = stores.get(store) ?? [];
    names.push(agent.name);
    stores.set(store, names);
  }
  return stores;
}
