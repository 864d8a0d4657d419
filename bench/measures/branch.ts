// F: a second way from the middle of the long session, and the first turn on it.
import type { Job } from '../job.ts';
import { timedTurn } from '../lib/conversation.ts';
import { readLongSession } from '../lib/long-session.ts';
import { type Stats, statsOf } from '../lib/stats.ts';
import type { System } from '../systems/system.ts';

export interface Branch {
  /** The turn it left from. */
  readonly from: number;
  /** Milliseconds, once the process is warm. */
  readonly ms: Stats;
  readonly bytes: number;
}

export async function measure(
  system: System,
  { variant, place, scale }: Job,
): Promise<Branch | undefined> {
  const { mark, markedAt } = readLongSession(place);
  if (mark === undefined || markedAt === undefined) return undefined;
  const running = await system.open(variant, place);
  const branch = async (): Promise<number> => {
    const started = performance.now();
    const session = await running.branch?.(mark);
    await timedTurn(running, session, { number: markedAt + 1, tools: false });
    return performance.now() - started;
  };
  await branch();
  const before = (await running.bytes?.()) ?? 0;
  const times: number[] = [];
  while (times.length < scale.branches) times.push(await branch());
  const bytes = (((await running.bytes?.()) ?? 0) - before) / times.length;
  await running.close?.();
  return { from: markedAt, ms: statsOf(times), bytes: Math.round(bytes) };
}
