// B: a session in which each turn asks a tool that answers 1,000 characters.
import type { Job } from '../job.ts';
import { longConversation } from '../lib/conversation.ts';
import { type Stats, statsOf } from '../lib/stats.ts';
import type { System } from '../systems/system.ts';

export interface ToolTurns {
  readonly turns: number;
  /** Milliseconds of the last twenty turns. */
  readonly lastTurns: Stats;
  readonly bytes: number;
}

export async function measure(system: System, job: Job): Promise<ToolTurns> {
  const { toolTurns, budget } = job.scale;
  const running = await system.open(job.variant, job.place);
  const run = async (id: string, turns: number): Promise<readonly number[]> => {
    const times: number[] = [];
    const onTurn = ({ ms }: { readonly ms: number }): void => void times.push(ms);
    await longConversation(running, { id, turns, tools: true, budget, onTurn });
    return times;
  };
  await run('warm', Math.min(10, toolTurns));
  const before = (await running.bytes?.()) ?? 0;
  const times = await run('long', toolTurns);
  const bytes = ((await running.bytes?.()) ?? 0) - before;
  await running.close?.();
  return { turns: times.length, lastTurns: statsOf(times.slice(-20)), bytes };
}
