// C: a fresh process opens the store, loads the long session and runs one turn. Its modules are loaded before the clock
// starts: what they cost is measured by itself.
import type { Job } from '../job.ts';
import { timedTurn } from '../lib/conversation.ts';
import { readLongSession, saveLongSession } from '../lib/long-session.ts';
import type { System } from '../systems/system.ts';

export interface Resume {
  /** The turn that was run. */
  readonly turn: number;
  readonly ms: number;
}

export async function measure(system: System, { variant, place }: Job): Promise<Resume> {
  const { ref, turns, ...rest } = readLongSession(place);
  const turn = turns + 1;
  await system.load?.(variant);
  const started = performance.now();
  const running = await system.open(variant, place);
  const session = await running.resume?.(ref);
  await timedTurn(running, session, { number: turn, tools: false });
  const ms = performance.now() - started;
  const next = session === undefined ? undefined : await running.ref?.(session);
  saveLongSession(place, { ref: next ?? ref, turns: turn, ...rest });
  await running.close?.();
  return { turn, ms };
}
