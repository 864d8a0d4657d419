import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import type { WorkerOptions } from '../crash-worker.ts';
import type { Place } from './agents.ts';
import { endWorkers } from './processes.ts';
import { crashRounds } from './rounds.ts';
import { abortAcross, loadTogether, median, standStill, takeOverFromKilled } from './together.ts';

export interface SuiteOptions {
  /** A new, empty place; `name` is a word of lower-case letters and digits, and `folder` goes with the tests. */
  readonly place: (name: string, folder: string) => Place;
  /** How many processes work together under load. */
  readonly processes: number;
}

const long = process.env.LONG === '1';
const rounds = long ? 200 : 15;
const mostOnOneStore = 20;
const turns = long ? 100 : 10;
/** The moments at which processes are killed come from it; SEED=n repeats them. */
const seed = Number(process.env.SEED ?? Date.now() % 1_000_000);

/** What several real processes on one store promise, whichever of them die. */
export function processSuite(name: string, { place, processes }: SuiteOptions): void {
  describe(`${name}, real processes`, () => {
    let folder: string;
    beforeAll(async () => {
      folder = await mkdtemp(join(tmpdir(), 'waymark-crash-'));
    });
    afterEach(endWorkers);
    afterAll(() => rm(folder, { recursive: true, force: true }));

    const at = (word: string, claimTtl: number): WorkerOptions => ({
      place: place(word, folder),
      journal: join(folder, `${word}.jsonl`),
      claimTtl,
    });

    test(`kill -9 at ${rounds} random moments: nothing lost, nothing twice`, async () => {
      // A new store now and then: all of it is verified after each kill.
      for (let done = 0; done < rounds; done += mostOnOneStore) {
        const some = { rounds: Math.min(mostOnOneStore, rounds - done), seed: seed + done };
        const report = await crashRounds({ ...some, ...at(`rounds${done}`, 250) });
        console.info(`${name}, ${some.rounds} × kill -9:`, report);
        expect(report.promised).toBeGreaterThan(some.rounds);
        expect(report.cutOff).toBeGreaterThan(0);
      }
    }, 1_800_000);

    test(`${processes} processes under load: no update lost, no claim lost by who is awake, nobody is told that it is busy`, async () => {
      const report = await loadTogether(processes, turns, at('load', 1000));
      console.info(`${name}, ${processes} processes:`, report);
    }, 300_000);

    test('a turn of a process that stood still for longer than its claim is saved when nobody came', async () => {
      const { told, said } = await standStill(at('alone', 250), 'nobody comes');
      expect([told, said]).toEqual(['succeeded', ['slow take 1000']]);
    }, 60_000);

    test('it is ABORTED, and nothing of it saved, when another one has gone on with the session', async () => {
      const still = await standStill(at('left', 250), 'another takes the session');
      expect([still.told, still.said]).toEqual(['ABORTED', ['quick']]);
      expect(still.reason).toMatch(/no longer/);
    }, 60_000);

    test('an abort reaches the turn of another process', async () => {
      const took = await abortAcross(9, at('abort', 5000));
      console.info(`${name}, abort across processes, ms:`, median(took), took);
      // Far more than it takes, for machines that have other things to do.
      expect(median(took)).toBeLessThan(1000);
    }, 120_000);

    test('a run goes on in another process once the claim of a killed one has expired', async () => {
      const took = await takeOverFromKilled(at('over', 250));
      console.info(`${name}, takeover with claims of 250 ms, ms:`, took);
      expect(took).toBeLessThan(10_000);
    }, 120_000);
  });
}
