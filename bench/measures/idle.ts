// E: what an open session that nobody uses at the moment keeps in memory. Heap and buffers, not the process's pages, which
// tell more of the collector's mood.
import type { Job } from '../job.ts';
import { shortConversations } from '../lib/conversation.ts';
import type { System } from '../systems/system.ts';

/** Turns in each session: 3,000 characters. */
const turns = 5;

export interface Idle {
  readonly sessions: number;
  readonly bytesPerSession: number;
}

export async function measure(system: System, { variant, place, scale }: Job): Promise<Idle> {
  const running = await system.open(variant, place);
  const open: unknown[] = [];
  const add = (id: string, count: number): Promise<number> =>
    shortConversations(running, {
      id,
      count,
      turns,
      // A slow system's fewer sessions say as much.
      budget: Math.max(scale.budget / 8, 1500),
      onSession: (_, session) => void open.push(session),
    });
  // Caches are full and code is compiled before the count begins.
  await add('warm', Math.ceil(scale.idleSessions * 0.3));
  const before = await usedBytes();
  const sessions = await add('idle', scale.idleSessions);
  const after = await usedBytes();
  await running.close?.();
  // Held until here, so that nothing of them was collected before.
  open.length = 0;
  return { sessions, bytesPerSession: Math.round((after - before) / sessions) };
}

async function usedBytes(): Promise<number> {
  for (let at = 0; at < 4; at++) {
    globalThis.gc?.();
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  const { heapUsed, external } = process.memoryUsage();
  return heapUsed + external;
}
