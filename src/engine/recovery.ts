import type { Agent } from '../agent/contract/agent.ts';
import { writeLog } from '../agent/contract/observability.ts';
import type { AgentStore } from '../agent/contract/spec.ts';
import { internalsOf } from '../agent/define/create-agent.ts';
import { resumeRun } from '../agent/define/resume-run.ts';
import type { AgentHost } from '../agent/persistence/host.ts';
import { messageOf } from '../core/error.ts';
import { getOrMake } from '../core/get-or-make.ts';
import { after } from '../core/time.ts';
import type { TakenRun } from '../store/contract/store.ts';
import { takeDeadlines } from './deadlines.ts';
import { givenUpError, SaveFailures } from './given-up.ts';
import type { Schedules } from './schedules.ts';
import type { Suspects } from './suspects.ts';

/** Maximum number of runs taken over per poll. */
const maxAtOnce = 16;

/** Polls for runs whose workers have died. */
export interface Recovery {
  /** Starts polling. With names, only for runs of those agents. */
  start(names?: readonly string[]): void;
  /** Stops polling. Runs that were taken over continue. */
  stop(): void;
  /** Polls once; resolves when the runs it found have been taken over. */
  look(): Promise<number>;
}

/** Takes over expired runs of an app's agents from their stores, including runs of an earlier process of this app. */
export function createRecovery(
  {
    host,
    agents,
    schedules,
    suspects,
    attempts,
  }: {
    readonly host: AgentHost;
    readonly agents: () => readonly Agent[];
    readonly schedules: Schedules;
    readonly suspects: Suspects;
    /** Number of crashes after which a run moves to the dead-letter queue. */
    readonly attempts: number;
  },
  options: {
    /** Skips runs whose worker name starts with this prefix. */
    readonly exceptWorker?: string;
  } = {},
): Recovery {
  const { ttl } = host;
  let stopTicking: (() => void) | undefined;
  let stopWaiting: (() => void) | undefined;
  let looking: Promise<number> | undefined;
  let only: readonly string[] | undefined;
  const saveFailures = new SaveFailures(host);
  /** The last error of each store that could not be read. */
  const away = new Map<AgentStore, string>();

  const execute = async (agent: Agent, store: AgentStore, taken: TakenRun): Promise<void> => {
    const { runId, scope } = taken.run;
    const { attempt } = taken.claim;
    if (!(await saveFailures.rest(store, { runId, attempt }))) return;
    const poison = givenUpError(taken.run, attempts);
    const failure = poison ?? saveFailures.errorOf(runId);
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
  const recoverFrom = async (store: AgentStore, names: readonly string[]): Promise<number> => {
    const { worker } = host;
    const request = { agents: names, worker, ttl, limit: maxAtOnce, ...options };
    const taken = await suspects.take(store.runs, request);
    for (const each of taken) {
      const agent = agents().find(({ name }) => name === each.run.scope.agent);
      if (agent === undefined) continue;
      const { runId, sessionId, worker: before } = each.run;
      const place = { agent: agent.name, sessionId, runId };
      const about = { ...place, attempt: each.claim.attempt, before };
      writeLog(host.logger, 'warn', about, `run ${runId} of ${agent.name} is taken over`);
      const report = (error: unknown): void => host.report(error, { phase: 'run', ...place });
      const over = (): void => suspects.clear(runId);
      host.background(execute(agent, store, each).catch(report).finally(over));
    }
    return taken.length;
  };
  const wanted = (): readonly Agent[] => {
    const all = agents();
    return only === undefined ? all : all.filter(({ name }) => only?.includes(name));
  };
  const lookThrough = async (): Promise<number> => {
    let found = 0;
    // After a pause of the whole process, its own claims look expired. Renew them first, so that it does not take them over.
    await host.live.beat();
    for (const [store, names] of byStore(wanted())) {
      try {
        found += await recoverFrom(store, names);
        const own = agents().filter(({ name }) => names.includes(name));
        found += await takeDeadlines(host, store, own);
        found += await schedules.look(store, own);
        away.delete(store);
      } catch (error) {
        // The store may be unavailable for a moment; the next poll tries again. Report each outage once.
        const message = messageOf(error);
        if (away.get(store) === message) continue;
        away.set(store, message);
        host.report(error, { phase: 'run', agent: names.join(', ') });
      }
    }
    return found;
  };
  const look = (): Promise<number> => {
    if (looking === undefined) {
      looking = lookThrough().finally(() => {
        looking = undefined;
      });
      // An app that closes waits for it, so that it does not use a closed store.
      host.background(looking);
    }
    return looking;
  };
  /** A poll that is in progress may have read the store too early. */
  const lookAfresh = (): Promise<number> => (looking ?? Promise.resolve()).then(look);
  const pollInterval = Math.max(20, ttl / 2);
  /** Looks at the next time of a schedule, if the next poll would be late. */
  const lookInTime = (): void => {
    stopWaiting?.();
    const left = schedules.untilNext() ?? pollInterval;
    if (stopTicking === undefined || left >= pollInterval) return;
    stopWaiting = after(host.clock, left + 5, () => void lookForAll());
  };
  // A full poll has probably left runs behind, such as those of a server that has shut down.
  const lookForAll = async (): Promise<void> => {
    while ((await look()) >= maxAtOnce && stopTicking !== undefined);
    lookInTime();
  };

  return {
    start(names) {
      only = names;
      if (stopTicking !== undefined) return;
      const stopLooking = host.clock.every(pollInterval, () => void lookForAll());
      const stopListening = suspects.onFree(() => void lookAfresh());
      stopTicking = () => {
        stopLooking();
        stopListening();
        stopWaiting?.();
      };
      void lookForAll();
    },
    stop() {
      stopTicking?.();
      stopTicking = undefined;
    },
    look: lookAfresh,
  };
}

function notEnded(runId: string): Error {
  return new Error(`Run "${runId}" was executed, but is still open.`);
}

/** The stores that hold runs of these agents, with the names of the agents. */
export function byStore(agents: readonly Agent[]): Map<AgentStore, string[]> {
  const stores = new Map<AgentStore, string[]>();
  for (const agent of agents) {
    const store = internalsOf(agent).spec.store;
    if (store?.runs === undefined) continue;
    getOrMake(stores, store, () => []).push(agent.name);
  }
  return stores;
}
