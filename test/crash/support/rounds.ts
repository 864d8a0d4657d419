import { statSync } from 'node:fs';
import type { Store } from '../../../src/store/contract/store.ts';
import { eventually } from '../../support/eventually.ts';
import { openPlace } from './agents.ts';
import { checkPromises } from './check.ts';
import { openJournal } from './journal.ts';
import { startWorker, type Worker } from './processes.ts';
import { randomOf } from './random.ts';
import { type ClockedOptions, killAndExpire } from './together.ts';

// In bytes of the journal: how far a process comes before it is killed, however fast the machine is.
const maxWork = 12_000;
const maxRecovery = 1_500;

export interface RoundsOptions extends ClockedOptions {
  readonly rounds: number;
  readonly seed: number;
}

/** What the rounds came to, for people to read. */
export interface RoundsReport {
  readonly promised: number;
  readonly cutOff: number;
  readonly doneAgain: number;
}

/**
 * Lets a process work, kills it at a random moment, lets another recover what it left, and checks every promise that was
 * ever made; the one that recovered works on and is the next to be killed. Now and then it is killed while it recovers.
 */
export async function crashRounds({
  rounds,
  seed,
  ...options
}: RoundsOptions): Promise<RoundsReport> {
  const random = randomOf(seed);
  const journal = openJournal(options.journal);
  const store: Store = await openPlace(options.place);
  // One stands by, so that a round does not wait for a process to load.
  let standby = startWorker(options);
  const nextWorker = async (): Promise<Worker> => {
    const worker = standby;
    await worker.hear('ready');
    standby = startWorker(options);
    return worker;
  };
  try {
    let worker = await nextWorker();
    const replace = async (): Promise<void> => {
      await killAndExpire(worker, options);
      worker = await nextWorker();
      worker.say('recover');
    };
    let checked = 0;
    for (let round = 0; round < rounds; round++) {
      try {
        // New sessions now and then: reading them is most of what a round costs.
        worker.say(`work ${Math.floor(round / 10)}`);
        await grown(options.journal, random() * maxWork);
        await replace();
        if (random() < 0.25) {
          let isQuiet = false;
          const onEnd = (): void => {
            isQuiet = true;
          };
          worker.hear('quiet').then(onEnd, onEnd);
          await grown(options.journal, random() * maxRecovery, () => isQuiet);
          await replace();
        }
        await worker.hear('quiet');
        const lines = journal.read();
        await checkPromises(store, lines, checked);
        checked = lines.length;
      } catch (error) {
        const open = JSON.stringify(await store.runs?.listRuns());
        throw new Error(`Round ${round} with seed ${seed} failed. Open runs: ${open}`, {
          cause: error,
        });
      }
    }
    await checkPromises(store, journal.read());
    await worker.kill();
  } finally {
    await standby.kill();
    await store.close?.();
  }
  return report(options.journal);
}

/** A disk that others write to may keep a process waiting for long. */
const slowDisk = 300_000;

/** Resolves at some moment after the journal has grown by so much, or will not grow any more. */
export async function grown(path: string, bytes: number, isOver = () => false): Promise<void> {
  const size = (): number => statSync(path, { throwIfNoEntry: false })?.size ?? 0;
  const enough = size() + bytes;
  const isGrown = (): boolean => size() >= enough || isOver();
  await eventually(isGrown, `a journal of ${enough} bytes`, slowDisk);
}

function report(path: string): RoundsReport {
  const lines = openJournal(path).read();
  const effects = lines.flatMap((line) => (line.kind === 'effect' ? [line.key] : []));
  const promised = lines.filter(({ kind }) => kind === 'promised').length;
  return {
    promised,
    cutOff: promised - lines.filter(({ kind }) => kind === 'answered').length,
    doneAgain: effects.length - new Set(effects).size,
  };
}
