// B: the time of turn n of a session that is stored on a disk, and the bytes it takes. Leaves the long session behind, to be
// resumed and branched by others.
import type { Job } from '../job.ts';
import { longConversation, measureFirstTurns, standsFor } from '../lib/conversation.ts';
import { saveLongSession } from '../lib/long-session.ts';
import { createSamples } from '../lib/samples.ts';
import type { Ref, System } from '../systems/system.ts';
import type { TurnTimes } from './turns.ts';

export interface StoredTurns extends TurnTimes {
  /** Bytes that the first n turns of a session take on the disk. */
  readonly bytes: Readonly<Record<number, number>>;
}

export async function measure(system: System, job: Job): Promise<StoredTurns> {
  const { lengths, budget } = job.scale;
  const running = await system.open(job.variant, job.place);
  const storedBytes = async (): Promise<number> => (await running.bytes?.()) ?? 0;
  const samples = createSamples(lengths);
  await measureFirstTurns(running, job.scale, samples);

  const last = Math.max(...lengths);
  const markAt = last / 2;
  const before = await storedBytes();
  const bytes: Record<number, number> = {};
  let mark: Ref | undefined;
  const { session, turns } = await longConversation(running, {
    id: 'long',
    turns: last,
    budget,
    async onTurn({ number, ms, session }) {
      if (number === markAt) mark = await running.mark?.(session);
      for (const length of lengths) {
        if (length >= 100 && standsFor(length, number)) samples.add(length, ms);
        if (length >= 10 && length === number) bytes[length] = (await storedBytes()) - before;
      }
    },
  });
  const ref = (await running.ref?.(session)) ?? {};
  saveLongSession(job.place, { ref, turns, ...(mark && { mark, markedAt: markAt }) });
  await running.close?.();
  return { times: samples.stats(), bytes, ...(turns < last && { endedAt: turns }) };
}
