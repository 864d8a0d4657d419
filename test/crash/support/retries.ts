import { expect } from 'vitest';
import { textOf } from '../../../src/protocol/messages.ts';
import type { Store } from '../../../src/store/contract/store.ts';
import { openPlace } from './agents.ts';
import { startWorker, type Worker } from './processes.ts';
import { randomOf } from './random.ts';
import { grown, type RoundsOptions } from './rounds.ts';
import { killAndExpire } from './together.ts';

/** What a caller was told at last of a request. */
export interface Told {
  readonly sessionId: string;
  readonly text: string;
  readonly status: string;
  readonly snapshotId?: string;
}

/** What the rounds came to, for people to read. */
export interface RetriesReport {
  readonly acknowledged: number;
  /** Requests that were sent more than once, because the process died that had them. */
  readonly retried: number;
}

const lanes = 4;
/** In bytes of the journal: how far the processes come before one is killed, however fast the machine is. */
const maxWork = 3_000;

/**
 * Clients send turns to a process that is killed at random moments, and send each one again under the same request id to the
 * next process until it is answered. Every turn that was acknowledged is there once, and nothing else.
 */
export async function retryRounds({
  rounds,
  seed,
  ...options
}: RoundsOptions): Promise<RetriesReport> {
  const random = randomOf(seed);
  const store = await openPlace(options.place);
  const told: Told[] = [];
  let retried = 0;
  let isOver = false;
  let hasFailed = false;
  const start = async (): Promise<Worker> => {
    const worker = startWorker(options);
    await worker.hear('ready');
    worker.say('recover');
    return worker;
  };
  let current = start();
  const ask = async (no: number, turn: number): Promise<void> => {
    const id = `${seed}.${no}.${turn}`;
    const sessionId = `s${no}`;
    const text = `${id} use ${turn % 2}`;
    const mode = no % 2 === 0 ? 'attached' : 'accepted';
    for (let tries = 0; ; tries++) {
      const worker = await current;
      worker.say(`ask ${mode} ${sessionId} ${id} ${text}`);
      // It was killed: how far the turn has come is unknown.
      const said = await worker.hear(`told-${id}`).catch(() => undefined);
      if (hasFailed) return;
      if (said === undefined) {
        if (tries === 0) retried++;
        continue;
      }
      told.push({ sessionId, text, ...JSON.parse(said) });
      return;
    }
  };
  const lane = async (no: number): Promise<void> => {
    for (let turn = 0; !isOver; turn++) await ask(no, turn);
  };
  try {
    const working = Promise.all(Array.from({ length: lanes }, (_, no) => lane(no)));
    for (let round = 0; round < rounds; round++) {
      await grown(options.journal, random() * maxWork);
      const worker = await current;
      const next = Promise.withResolvers<Worker>();
      current = next.promise;
      await killAndExpire(worker, options);
      start().then(next.resolve, next.reject);
      await current;
    }
    isOver = true;
    await working;
    const worker = await current;
    worker.say('recover');
    await worker.hear('quiet');
    await checkTold(store, told);
    await worker.kill();
  } catch (error) {
    hasFailed = true;
    isOver = true;
    const open = JSON.stringify(await store.runs?.listRuns());
    throw new Error(`Seed ${seed} failed after ${told.length} answers. Open runs: ${open}`, {
      cause: error,
    });
  } finally {
    await store.close?.();
  }
  return { acknowledged: told.length, retried };
}

/** Every acknowledged turn is saved exactly once and in order; no other turn is saved. */
export async function checkTold(store: Store, told: readonly Told[]): Promise<void> {
  const scope = { agent: 'chat' };
  for (const sessionId of new Set(told.map((each) => each.sessionId))) {
    const head = await store.getSnapshot(scope, { sessionId });
    const messages = head?.state?.messages ?? [];
    const texts = messages.filter(({ role }) => role === 'user').map(textOf);
    const saved = told.filter((each) => each.sessionId === sessionId && isSaved(each));
    expect(texts, sessionId).toEqual(saved.map(({ text }) => text));
  }
  const ids = told.filter(isSaved).map(({ snapshotId }) => snapshotId);
  expect(new Set(ids).size).toBe(ids.length);
  for (const snapshotId of ids) {
    const found = await store.getSnapshot(scope, { snapshotId: snapshotId ?? '' });
    expect(found?.status, snapshotId).toBe('succeeded');
  }
  const open = (await store.runs?.listRuns()) ?? [];
  expect(open.filter(({ mode, expired }) => mode !== 'attached' || !expired)).toEqual([]);
  // A killed process may leave an unacknowledged, unfinished line in a file; the next write replaces it. Other faults are bugs.
  const faults = (await store.maintenance?.verify()) ?? [];
  expect(faults.filter(({ kind }) => kind !== 'unfinished')).toEqual([]);
}

function isSaved({ status }: Told): boolean {
  return status === 'succeeded';
}
