import type { Agent } from '../agent/agent.ts';
import { internalsOf } from '../agent/create-agent.ts';
import { resumeRun } from '../agent/recovery.ts';
import { type AgentHost, fullStore } from '../agent/spec.ts';
import type { Store } from '../session/store.ts';

/** Works on runs that nobody else does. */
export interface Engine {
  /** Looks for runs to go on with, now and from time to time. */
  start(): void;
  /** Looks no more; what is being worked on goes on. */
  stop(): void;
  /** Looks once, and resolves when what was found has been taken over. */
  recover(): Promise<number>;
}

/** Runs taken over at a time. */
const mostAtOnce = 16;

/** The engine of one process: takes over expired runs of its agents from their stores, its own former ones included. */
export function createLocalEngine(options: {
  readonly host: AgentHost;
  readonly agents: () => readonly Agent[];
}): Engine {
  const { host, agents } = options;
  let stopTicking: (() => void) | undefined;
  let looking: Promise<number> | undefined;

  const recoverFrom = async (store: Store, names: readonly string[]): Promise<number> => {
    const { worker, ttl } = host;
    const taken = await store.runs?.takeOver({ agents: names, worker, ttl, limit: mostAtOnce });
    for (const each of taken ?? []) {
      const agent = agents().find(({ name }) => name === each.run.scope.agent);
      if (agent === undefined) continue;
      const report = (error: unknown): void =>
        host.report?.(error, { agent: agent.name, runId: each.run.runId });
      host.background(resumeRun(agent, each).catch(report));
    }
    return taken?.length ?? 0;
  };

  const look = async (): Promise<number> => {
    let found = 0;
    for (const [store, names] of byStore(agents())) {
      try {
        found += await recoverFrom(store, names);
      } catch (error) {
        // The store may be away for a moment; the next look tries again.
        host.report?.(error, { agent: names.join(', '), runId: '' });
      }
    }
    return found;
  };
  const recover = (): Promise<number> => {
    looking ??= look().finally(() => {
      looking = undefined;
    });
    return looking;
  };

  return {
    start() {
      if (stopTicking !== undefined) return;
      stopTicking = host.clock.every(Math.max(20, host.ttl / 2), () => void recover());
      void recover();
    },
    stop() {
      stopTicking?.();
      stopTicking = undefined;
    },
    recover,
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
