import { defined } from '../core/json/json.ts';
import { type DeadLetter, type Engine, type EngineEnv, notAttached } from './engine.ts';
import type { Recovery } from './recovery.ts';

/** Options of the engine for a single process. */
interface LocalEngineOptions {
  /** How often the process of a run may die without progress before the run moves to the dead-letter queue. @default 3 */
  readonly attempts?: number;
}

/** The engine for a single process. */
export interface LocalEngine extends Engine {
  /** The dead-letter queue of all agents and owners: runs whose process died too often. */
  deadLetters(): Promise<readonly DeadLetter[]>;
  /** Retries a dead-lettered run as a new run; resolves to its id. */
  retry(runId: string): Promise<string>;
}

/**
 * The engine for a single process: detached runs continue in the process that accepted them, and expired runs are taken over
 * from the store.
 *
 * @example
 * const app = waymark({ store, engine: localEngine({ attempts: 5 }) });
 */
export function localEngine({ attempts }: LocalEngineOptions = {}): LocalEngine {
  let parts: { readonly env: EngineEnv; readonly recovery: Recovery } | undefined;
  const attached = (): NonNullable<typeof parts> => {
    if (parts === undefined) throw notAttached();
    return parts;
  };
  return {
    name: 'local',
    ...defined({ attempts }),
    attach(env) {
      parts = { env, recovery: env.recovery() };
    },
    start: ({ agents } = {}) => parts?.recovery.start(agents),
    stop: () => parts?.recovery.stop(),
    recover: async () => await attached().recovery.look(),
    status: async () => ({ engine: 'local', running: parts?.env.running() ?? 0 }),
    deadLetters: async () => await attached().env.deadLetters(),
    retry: async (runId) => await attached().env.retry(runId),
  };
}
