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
  blockEach,
  type ClockedOptions,
  loadTogether,
  standStill,
  takeOverFromKilled,
} from './together.ts';

export interface SuiteOptions {
  /** A new, empty place; `name` is a word of lower-case letters and digits, `folder` a temporary folder. */
  readonly place: (name: string, folder: string) => Omit<Place, 'clockFile'>;
  /** Moves the clock of the stores themselves, if they have one. */
  readonly advance?: (ms: number) => Promise<void>;
  /** For a database server: resolves when it has completed the statements of a killed process. */
  readonly settled?: (application: string) => Promise<void>;
  /** Whether a process whose thread is blocked may hold a lock that all others wait for. @default false */
  readonly locksWhenBlocked?: boolean;
  /** How many processes work together under load. */
  readonly processes: number;
}

const long = process.env.LONG === '1';
const retriedRounds = Number(process.env.ROUNDS ?? (long ? 40 : 3));
/** How often processes are killed; ROUNDS=n overrides it. */
const rounds = Number(process.env.ROUNDS ?? (long ? 20 : 3));
const maxOnOneStore = 20;
const turns = long ? 40 : 10;
/** Longer than a busy machine may pause a process: claims expire only when a test moves the clock. */
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

function blockTest(at: (word: string) => ClockedOptions): void {
  test('S665 a run that blocks its processes counts a crash of each, and fails after three', async () => {
    await blockEach(at('block'));
  });
}

/** Only some, for stores with their own process tests. */
export function retrySuite(name: string, { place }: Pick<SuiteOptions, 'place'>): void {
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
        settled: async () => {},
        advance: async (ms) => sharedClock(clockFile).advance(ms),
      };
    };
    retryTest(name, at);
    blockTest(at);
  });
}

/** Tests of several real processes on one store, some of which are killed. */
export function processSuite(
  name: string,
  { place, advance, settled, locksWhenBlocked = false, processes }: SuiteOptions,
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
    if (!locksWhenBlocked) blockTest(at);

    test(`${processes} processes under load: no update and no claim lost, and no caller gets a busy error`, async () => {
      const report = await loadTogether(processes, turns, at('load'));
      console.info(`${name}, ${processes} processes:`, report);
    });

    test('a turn of a process that was paused for longer than its claim is saved if no other process took over', async () => {
      const { told, said } = await standStill(at('alone'), 'no other process');
      expect([told, said]).toEqual(['succeeded', ['slow hold']]);
    });

    test('it is ABORTED, and nothing of it is saved, if another process has continued the session', async () => {
      const still = await standStill(at('left'), 'another takes the session');
      expect([still.told, still.said]).toEqual(['ABORTED', ['quick']]);
      expect(still.reason).toMatch(/no longer/);
    });

    test('S217 the caller of a paused process gets the result of the process that has finished its run', async () => {
      const { told, said } = await standStill(at('finished'), 'another finishes the run');
      expect([told, said]).toEqual(['succeeded', ['slow hold']]);
    });

    test('an abort reaches the turn of another process', async () => {
      await abortAcross(9, at('abort'));
    });

    test('a run continues in another process once the claim of a killed one has expired', async () => {
      await takeOverFromKilled(at('over'));
    });
  });
}
