// E: what an open session that nobody uses at the moment keeps in memory. Heap and buffers, not the process's pages, which
// tell more of the collector's mood.
import type { Job } from '../job.ts';
import { converse } from '../lib/conversation.ts';
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
  const add = async (count: number): Promise<void> => {
    for (let at = 0; at < count; at++) {
      open.push((await converse(running, `idle${open.length}`, turns)).session);
    }
  };
  // Caches are full and code is compiled before the count begins.
  await add(Math.ceil(scale.idleSessions * 0.3));
  const before = await usedBytes();
  await add(scale.idleSessions);
  const after = await usedBytes();
  // Read after the last measurement, so that nothing was collected before.
  const sessions = open.length - Math.ceil(scale.idleSessions * 0.3);
  await running.close?.();
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
