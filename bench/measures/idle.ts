// E: what an open session that nobody uses at the moment keeps in memory. Heap and buffers, not the process's pages, which
// tell more of the collector's mood.
import type { Job } from '../job.ts';
import { shortConversations } from '../lib/conversation.ts';
import { statsOf } from '../lib/stats.ts';
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
  // A slow system's fewer sessions say as much.
  const budget = Math.max(scale.budget / 8, 1500);
  const add = (id: string, part: number): Promise<number> =>
    shortConversations(running, {
      id,
      count: Math.ceil(scale.idleSessions * part),
      turns,
      budget: budget * part,
      onSession: (_, session) => void open.push(session),
    });
  // Caches are full and code is compiled before the count begins.
  await add('warm', 0.3);
  let sessions = 0;
  let before = await usedBytes();
  const each: number[] = [];
  // A system that lets go of something large meanwhile, once, says nothing about its sessions by that.
  for (let at = 0; at < scale.idleParts; at++) {
    const added = await add(`idle${at}-`, 1 / scale.idleParts);
    const after = await usedBytes();
    each.push((after - before) / added);
    sessions += added;
    before = after;
  }
  await running.close?.();
  // Held until here, so that nothing of them was collected before.
  open.length = 0;
  return { sessions, bytesPerSession: Math.round(statsOf(each).median) };
}

async function usedBytes(): Promise<number> {
  for (let at = 0; at < 4; at++) {
    globalThis.gc?.();
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  const { heapUsed, external } = process.memoryUsage();
  return heapUsed + external;
}
