import type { Clock } from '../core/time.ts';
import { type EngineEnv, notAttached } from '../engine/engine.ts';
import { type LocalEngine, localEngine } from '../engine/local-engine.ts';
import type { RunAlarm } from '../store/durable-object/run-alarm.ts';

/** How long one alarm works. The platform ends it after 15 minutes. */
const maxWorkMs = 600_000;

/** How often it looks for more runs meanwhile. */
const lookEveryMs = 1_000;

/** An engine that works when the object's alarm calls it, instead of looking again and again. */
export interface AlarmEngine extends LocalEngine {
  /** Takes over expired runs, declines expired interrupts, and resolves when nothing runs any more. */
  work(): Promise<void>;
}

export function alarmEngine(
  alarm: RunAlarm,
  { clock, attempts }: { readonly clock: Clock; readonly attempts: number | undefined },
): AlarmEngine {
  const local = localEngine(attempts === undefined ? {} : { attempts });
  let env: EngineEnv | undefined;
  return {
    ...local,
    name: 'durable-object',
    attach(own) {
      env = own;
      local.attach(own);
    },
    // An interval would keep the object in memory, and the alarm comes in any case.
    start() {},
    stop() {},
    status: async () => ({ ...(await local.status()), engine: 'durable-object' }),
    async work() {
      if (env === undefined) throw notAttached();
      alarm.delivered();
      const end = clock.now() + maxWorkMs;
      let found = await local.recover();
      // As long as an alarm is handled, the object stays in memory.
      while (env.running() > 0 && clock.now() < end) {
        // For the case that the object is evicted now.
        alarm.set();
        await clock.sleep(lookEveryMs);
        found = await local.recover();
      }
      alarm.set({ isFruitless: found === 0 });
    },
  };
}
