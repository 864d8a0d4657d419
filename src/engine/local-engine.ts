import { type DeadLetter, type Engine, type EngineEnv, notAttached } from './engine.ts';
import type { Recovery } from './recovery.ts';

/** How runs are worked on in one process. */
export interface LocalEngineOptions {
  /** Times that the process of a run may die without progress before the run is given up. @default 3 */
  readonly attempts?: number;
}

/** The engine of one process. */
export interface LocalEngine extends Engine {
  /** Runs that were given up because their process died too often, of all agents and owners. */
  deadLetters(): Promise<readonly DeadLetter[]>;
  /** Starts one of them again, as a new run; resolves to its id. */
  retry(runId: string): Promise<string>;
}

/** The engine of one process: detached runs continue where they were accepted, and expired ones are taken over from the store. */
export function localEngine({ attempts }: LocalEngineOptions = {}): LocalEngine {
  let env: EngineEnv | undefined;
  let recovery: Recovery | undefined;
  const attached = (): EngineEnv => {
    if (env === undefined) throw notAttached();
    return env;
  };
  return {
    name: 'local',
    ...(attempts !== undefined && { attempts }),
    attach(to) {
      env = to;
      recovery = to.recovery();
    },
    start: ({ agents } = {}) => recovery?.start(agents),
    stop: () => recovery?.stop(),
    async recover() {
      if (recovery === undefined) throw notAttached();
      return await recovery.look();
    },
    status: async () => ({ engine: 'local', running: env?.running() ?? 0 }),
    deadLetters: async () => await attached().deadLetters(),
    retry: async (runId) => await attached().retry(runId),
  };
}
