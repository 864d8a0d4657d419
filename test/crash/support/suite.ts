import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { endProcesses } from '../../support/child-process.ts';
import { sharedClock } from '../../support/shared-clock.ts';
import type { Place } from './agents.ts';
import { retryRounds } from './retries.ts';
import { crashRounds } from './rounds.ts';
import {
  abortAcross,
  type ClockedOptions,
  loadTogether,
  standStill,
  takeOverFromKilled,
} from './together.ts';

export interface SuiteOptions {
  /** A new, empty place; `name` is a word of lower-case letters and digits, and `folder` goes with the tests. */
  readonly place: (name: string, folder: string) => Omit<Place, 'clockFile'>;
  /** Moves the clock of the stores themselves, if they have one. */
  readonly advance?: (ms: number) => Promise<void>;
  /** Resolves when the store has done what a killed process had asked of it, if it is a server. */
  readonly settled?: (application: string) => Promise<void>;
  /** How many processes work together under load. */
  readonly processes: number;
}

const long = process.env.LONG === '1';
const retriedRounds = Number(process.env.ROUNDS ?? (long ? 200 : 6));
/** How often processes are killed; ROUNDS=n says otherwise. */
const rounds = Number(process.env.ROUNDS ?? (long ? 100 : 6));
const maxOnOneStore = 20;
const turns = long ? 100 : 10;
/** Longer than a busy machine lets a process wait: claims expire only when a test moves the clock. */
const claimTtl = 60_000;
/** The moments at which processes are killed come from it; SEED=n repeats them. */
const seed = Number(process.env.SEED ?? Date.now() % 1_000_000);

function retryTest(name: string, at: (word: string) => ClockedOptions): void {
  test(`S210 S213 clients that retry by request id through ${retriedRounds} × kill -9: every acknowledged turn once`, async () => {
    const total = { acknowledged: 0, retried: 0 };
    for (let done = 0; done < retriedRounds; done += maxOnOneStore) {
      const some = { rounds: Math.min(maxOnOneStore, retriedRounds - done), seed: seed + done };
      const report = await retryRounds({ ...some, ...at(`retries${done}`) });
      total.acknowledged += report.acknowledged;
      total.retried += report.retried;
    }
    console.info(`${name}, ${retriedRounds} × kill -9 with retries:`, total);
    expect(total.acknowledged).toBeGreaterThan(retriedRounds);
    expect(total.retried).toBeGreaterThan(0);
  }, 1_800_000);
}

/** The retries alone, for stores whose other tests with processes stand elsewhere. */
export function retrySuite(name: string, { place }: Pick<SuiteOptions, 'place'>): void {
  describe(`${name}, real processes`, () => {
    let folder: string;
    beforeAll(async () => {
      folder = await mkdtemp(join(tmpdir(), 'waymark-crash-'));
    });
    afterEach(endProcesses);
    afterAll(() => rm(folder, { recursive: true, force: true }));

    retryTest(name, (word) => {
      const clockFile = join(folder, `${word}.clock`);
      return {
        place: { ...place(word, folder), clockFile },
        journal: join(folder, `${word}.jsonl`),
        claimTtl,
        settled: async () => {},
        advance: async (ms) => sharedClock(clockFile).advance(ms),
      };
    });
  });
}

/** What several real processes on one store promise, whichever of them die. */
export function processSuite(
  name: string,
  { place, advance, settled, processes }: SuiteOptions,
): void {
  describe(`${name}, real processes`, () => {
    let folder: string;
    beforeAll(async () => {
      folder = await mkdtemp(join(tmpdir(), 'waymark-crash-'));
    });
    afterEach(endProcesses);
    afterAll(() => rm(folder, { recursive: true, force: true }));

    const at = (word: string): ClockedOptions => {
      const clockFile = join(folder, `${word}.clock`);
      return {
        place: { ...place(word, folder), clockFile },
        journal: join(folder, `${word}.jsonl`),
        claimTtl,
        settled: async ({ name: application }) => await settled?.(application),
        async advance(ms) {
          await advance?.(ms);
          sharedClock(clockFile).advance(ms);
        },
      };
    };

    test(`kill -9 at ${rounds} random moments: nothing lost, nothing twice`, async () => {
      // A new store now and then: all of it is verified after each kill.
      for (let done = 0; done < rounds; done += maxOnOneStore) {
        const some = { rounds: Math.min(maxOnOneStore, rounds - done), seed: seed + done };
        const report = await crashRounds({ ...some, ...at(`rounds${done}`) });
        console.info(`${name}, ${some.rounds} × kill -9:`, report);
        expect(report.promised).toBeGreaterThan(some.rounds);
        expect(report.cutOff).toBeGreaterThan(0);
      }
    }, 1_800_000);

    retryTest(name, at);

    test(`${processes} processes under load: no update and no claim lost, nobody is told that it is busy`, async () => {
      const report = await loadTogether(processes, turns, at('load'));
      console.info(`${name}, ${processes} processes:`, report);
    }, 300_000);

    test('a turn of a process that stood still for longer than its claim is saved when nobody came', async () => {
      const { told, said } = await standStill(at('alone'), 'nobody comes');
      expect([told, said]).toEqual(['succeeded', ['slow hold']]);
    });

    test('it is ABORTED, and nothing of it saved, when another one has gone on with the session', async () => {
      const still = await standStill(at('left'), 'another takes the session');
      expect([still.told, still.said]).toEqual(['ABORTED', ['quick']]);
      expect(still.reason).toMatch(/no longer/);
    });

    test('S217 the caller of a stopped process is told the result of another one that has finished its run', async () => {
      const { told, said } = await standStill(at('finished'), 'another finishes the run');
      expect([told, said]).toEqual(['succeeded', ['slow hold']]);
    });

    test('an abort reaches the turn of another process', async () => {
      await abortAcross(9, at('abort'));
    });

    test('a run goes on in another process once the claim of a killed one has expired', async () => {
      await takeOverFromKilled(at('over'));
    });
  });
}
