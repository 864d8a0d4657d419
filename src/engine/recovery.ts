import type { Agent } from '../agent/agent.ts';
import { internalsOf } from '../agent/create-agent.ts';
import { resumeRun } from '../agent/recovery.ts';
import { fullStore } from '../agent/spec.ts';
import type { Store } from '../session/store.ts';
import type { EngineEnv } from './engine.ts';

/** Runs taken over at a time. */
const mostAtOnce = 16;

/** Looks for runs whose workers are no more. */
export interface Recovery {
  start(names?: readonly string[]): void;
  stop(): void;
  /** Looks once, and resolves when what was found has been taken over. */
  look(): Promise<number>;
}

/** Takes over expired runs of an app's agents from their stores, its own former ones included. */
export function createRecovery(
  { host, agents }: EngineEnv,
  options: {
    /** Leaves runs alone whose worker's name begins with this. */
    readonly exceptWorker?: string;
  } = {},
): Recovery {
  const { worker, ttl } = host;
  let stopTicking: (() => void) | undefined;
  let looking: Promise<number> | undefined;
  let only: readonly string[] | undefined;

  const recoverFrom = async (store: Store, names: readonly string[]): Promise<number> => {
    const request = { agents: names, worker, ttl, limit: mostAtOnce, ...options };
    const taken = await store.runs?.takeOver(request);
    for (const each of taken ?? []) {
      const agent = agents().find(({ name }) => name === each.run.scope.agent);
      if (agent === undefined) continue;
      const report = (error: unknown): void =>
        host.report?.(error, { agent: agent.name, runId: each.run.runId });
      host.background(resumeRun(agent, each).catch(report));
    }
    return taken?.length ?? 0;
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
      } catch (error) {
        // The store may be away for a moment; the next look tries again.
        host.report?.(error, { agent: names.join(', '), runId: '' });
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
      stopTicking = host.clock.every(Math.max(20, ttl / 2), () => void look());
      void look();
    },
    stop() {
      stopTicking?.();
      stopTicking = undefined;
    },
    look,
  };
}

function byStore(agents: readonly Agent[]): Map<Store, string[]> {
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
