// A: the time of turn n of a session that is not stored on a disk.
import type { Job } from '../job.ts';
import { longConversation, measureFirstTurns, standsFor, warmUp } from '../lib/conversation.ts';
import { createSamples, type Samples } from '../lib/samples.ts';
import type { System } from '../systems/system.ts';

export interface TurnTimes {
  /** Milliseconds by turn. */
  readonly times: Samples;
  /** The turn that was reached before time was over, if it was not the last. */
  readonly endedAt?: number;
}

export async function measure(system: System, job: Job): Promise<TurnTimes> {
  const { lengths, long, budget } = job.scale;
  const running = await system.open(job.variant, job.place);
  const samples = createSamples(lengths);
  await warmUp(running, job.scale);

  const last = Math.max(...lengths);
  const started = performance.now();
  const deadline = started + budget;
  let reached = last;
  for (let at = 0; at < long && reached === last; at++) {
    // One long session of a slow system says enough.
    if (at > 0 && performance.now() > started + budget / 20) break;
    await measureFirstTurns(running, `short${at}-`, job.scale, samples);
    const { session, turns } = await longConversation(running, {
      id: `long${at}`,
      turns: last,
      budget: deadline - performance.now(),
      onTurn({ number, ms }) {
        for (const length of lengths) {
          if (length >= 100 && standsFor(length, number)) samples.add(length, ms);
        }
      },
    });
    reached = turns;
    await running.forget?.(session);
  }
  await running.close?.();
  return { times: samples.stats(), ...(reached < last && { endedAt: reached }) };
}
