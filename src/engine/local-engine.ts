import { type Engine, type EngineEnv, notAttached } from './engine.ts';
import type { Recovery } from './recovery.ts';

/** The engine of one process: detached runs go on where they were accepted, and expired ones are taken over from the store. */
export function localEngine(): Engine {
  let env: EngineEnv | undefined;
  let recovery: Recovery | undefined;
  return {
    name: 'local',
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
  };
}
