// B: the time of turn n of a session that is stored on a disk, and the bytes it takes. Leaves the long session behind, to be
// resumed and branched by others.
import type { Job } from '../job.ts';
import { longConversation, measureFirstTurns, standsFor, warmUp } from '../lib/conversation.ts';
import { saveLongSession } from '../lib/long-session.ts';
import { countQueries } from '../lib/queries.ts';
import { createSamples, type Samples } from '../lib/samples.ts';
import type { Ref, System } from '../systems/system.ts';
import { variants } from '../systems/variants.ts';
import { type FloorBetween, openNearFloor } from './near-floor.ts';
import type { TurnTimes } from './turns.ts';

export interface StoredTurns extends TurnTimes {
  /** Bytes that the first n turns of a session take on the disk. */
  readonly bytes: Readonly<Record<number, number>>;
  /** Statements that turn n sends to its database. */
  readonly queries?: Samples;
  /** A turn by hand on the same kind of store, between the last turns. */
  readonly floor?: FloorBetween;
}

/** Turns at the end of the long session between which the floor is measured. */
const pairs = 200;

export async function measure(system: System, job: Job): Promise<StoredTurns> {
  const { lengths, budget } = job.scale;
  const store = variants[job.system]?.[job.variant]?.store;
  const queries = countQueries(job.system, store);
  const running = await system.open(job.variant, job.place);
  const storedBytes = async (): Promise<number> => (await running.bytes?.()) ?? 0;
  const samples = createSamples(lengths);
  await warmUp(running, job.scale);
  await measureFirstTurns(running, 'short', job.scale, samples);

  const last = Math.max(...lengths);
  const markAt = last / 2;
  const near = store && (await openNearFloor(store, job));
  const before = await storedBytes();
  const bytes: Record<number, number> = {};
  const sent = createSamples(lengths);
  let sentBefore = queries?.() ?? 0;
  let mark: Ref | undefined;
  const time = async ({ number, ms }: { readonly number: number; readonly ms: number }) => {
    for (const length of lengths) {
      if (length >= 100 && standsFor(length, number)) samples.add(length, ms);
    }
    if (number > last - Math.min(last / 2, pairs)) await near?.behind(ms);
  };
  const started = performance.now();
  const { session, turns } = await longConversation(running, {
    id: 'long',
    turns: last,
    budget,
    async onTurn({ number, ms, session }) {
      const sentNow = (queries?.() ?? 0) - sentBefore;
      if (number === markAt) mark = await running.mark?.(session);
      for (const length of lengths) {
        if (length >= 10 && standsFor(length, number)) sent.add(length, sentNow);
        if (length >= 10 && length === number) bytes[length] = (await storedBytes()) - before;
      }
      await time({ number, ms });
      // What was asked for the sake of measuring is none of the next turn's.
      sentBefore = queries?.() ?? 0;
    },
  });
  // A quick system runs more of them.
  for (let at = 1; at < job.scale.long && turns === last; at++) {
    if (performance.now() > started + budget / 20) break;
    await measureFirstTurns(running, `short${at}-`, job.scale, samples);
    const more = await longConversation(running, {
      id: `long${at}`,
      turns: last,
      budget,
      onTurn: time,
    });
    await running.forget?.(more.session);
  }
  const ref = (await running.ref?.(session)) ?? {};
  saveLongSession(job.place, { ref, turns, ...(mark && { mark, markedAt: markAt }) });
  await running.close?.();
  const floor = near?.stats();
  await near?.close();
  return {
    times: samples.stats(),
    bytes,
    ...(queries && { queries: sent.stats() }),
    ...(floor && { floor }),
    ...(turns < last && { endedAt: turns }),
  };
}
