import { setTimeout as sleep } from 'node:timers/promises';
import { expect } from 'vitest';
import { textOf } from '../../../src/generate/message.ts';
import type { SnapshotStatus } from '../../../src/protocol/snapshot.ts';
import type { Store } from '../../../src/session/store.ts';
import type { WorkerOptions } from '../crash-worker.ts';
import { openPlace } from './agents.ts';
import { checkEffects } from './check.ts';
import { type Journal, openJournal, type Written } from './journal.ts';
import type { LoadResult } from './load.ts';
import { startWorker, type Worker } from './processes.ts';

/** Starts processes on one store; resolves when all of them are ready. */
async function startWorkers(count: number, options: WorkerOptions): Promise<Worker[]> {
  const workers = Array.from({ length: count }, () => startWorker(options));
  await Promise.all(workers.map((worker) => worker.hear('ready', 60_000)));
  return workers;
}

/** What several processes came to, for people to read. */
export interface LoadReport extends Pick<LoadResult, 'busy' | 'displaced' | 'stoodStill'> {
  readonly turns: number;
  readonly ms: number;
}

/**
 * Several processes under load, on sessions of their own and on the same ones: every turn that was saved is there, once. A
 * claim is lost only by a process that stood still, and only to somebody who wanted the same session; it is told so.
 */
export async function loadTogether(
  processes: number,
  turns: number,
  options: WorkerOptions,
): Promise<LoadReport> {
  const workers = await startWorkers(processes, options);
  const began = performance.now();
  for (const worker of workers) worker.say(`load ${turns}`);
  const said = await Promise.all(workers.map((worker) => worker.hear('loaded', 120_000)));
  const ms = Math.round(performance.now() - began);
  const results = said.map((line) => JSON.parse(line) as LoadResult);
  expect(results.flatMap(({ failures }) => failures)).toEqual([]);
  const saved = new Map<string, number>();
  for (const { saved: each } of results) {
    for (const [id, count] of Object.entries(each)) saved.set(id, (saved.get(id) ?? 0) + count);
  }
  const stoodStill = Math.max(...results.map((each) => each.stoodStill));
  const displaced = results.reduce((sum, each) => sum + each.displaced, 0);
  // Claims are prolonged three times in their life.
  const wasAwake = stoodStill < options.claimTtl / 3;
  if (wasAwake) expect(displaced).toBe(0);
  const lines = openJournal(options.journal).read();
  const store = await openPlace(options.place);
  try {
    for (const [id, count] of saved) expect(await textsOf(store, id), id).toHaveLength(count);
    for (const { pid } of workers) {
      // Nobody took it for dead although it lasted longer than its claim.
      const asked = lines.filter(
        (line) => line.kind === 'asked' && line.what.includes(`long ${pid}`),
      );
      if (wasAwake) expect(asked).toHaveLength(1);
      expect(await textsOf(store, `long ${pid}`)).toHaveLength(1);
    }
    checkEffects(lines);
    expect(await store.runs?.listRuns()).toEqual([]);
    expect(await store.maintenance?.verify()).toEqual([]);
  } finally {
    await store.close?.();
  }
  const total = [...saved.values()].reduce((sum, count) => sum + count, 0);
  expect(total).toBe(processes * turns * 8);
  const busy = results.reduce((sum, each) => sum + each.busy, 0);
  return { turns: total, ms, busy, displaced, stoodStill };
}

/** A process that stands still for longer than its claim, in the middle of a turn; gives what its caller is told. */
export async function standStill(
  options: WorkerOptions,
  meanwhile: 'nobody comes' | 'another takes the session',
): Promise<{ readonly told: string; readonly reason: string; readonly said: readonly string[] }> {
  const [sleeper, other] = await startWorkers(2, options);
  const journal = openJournal(options.journal);
  const store = await openPlace(options.place);
  const from = journal.read().length;
  try {
    sleeper?.say('turn chat attached still slow take 1000');
    await lineOf(journal, from, ({ kind }) => kind === 'asked');
    process.kill(sleeper?.pid ?? 0, 'SIGSTOP');
    await sleep(2 * options.claimTtl);
    if (meanwhile === 'another takes the session') {
      other?.say('turn chat attached still quick');
      await other?.hear('done');
    }
    process.kill(sleeper?.pid ?? 0, 'SIGCONT');
    await sleeper?.hear('done');
    const end = await lineOf(
      journal,
      from,
      ({ kind, pid }) => kind === 'answered' && pid === sleeper?.pid,
    );
    const { status: told = '', reason = '' } = end.kind === 'answered' ? end : {};
    return { told, reason, said: await textsOf(store, 'still') };
  } finally {
    await store.close?.();
  }
}

/** What users said in a session, each text once. */
async function textsOf(store: Store, sessionId: string): Promise<string[]> {
  const agent = sessionId.startsWith('r') ? 'strict' : 'chat';
  const head = await store.getSnapshot({ agent }, { sessionId });
  const messages = head?.state?.messages ?? [];
  const texts = messages.filter(({ role }) => role === 'user').map(textOf);
  expect(texts).toEqual([...new Set(texts)]);
  return texts;
}

/** Waits for a line of the journal, after so many. */
async function lineOf(
  journal: Journal,
  from: number,
  fits: (line: Written) => boolean,
  ms = 20_000,
): Promise<Written> {
  const deadline = Date.now() + ms;
  for (;;) {
    const line = journal.read().slice(from).find(fits);
    if (line !== undefined) return line;
    if (Date.now() > deadline) throw new Error(`Not in the journal within ${ms} ms: ${fits}`);
    await sleep(5);
  }
}

/** Milliseconds until a stop that one process asks for reaches the turn of another, for each of several tries. */
export async function abortAcross(tries: number, options: WorkerOptions): Promise<number[]> {
  const [worker] = await startWorkers(1, options);
  const journal = openJournal(options.journal);
  const store = await openPlace(options.place);
  const took: number[] = [];
  try {
    for (let no = 0; no < tries; no++) {
      const from = journal.read().length;
      worker?.say(`turn chat ${no % 2 === 0 ? 'attached' : 'detached'} abort-${no} hang`);
      const promised = await lineOf(journal, from, ({ kind }) => kind === 'promised');
      await lineOf(journal, from, ({ kind }) => kind === 'asked');
      // The model has begun, and whoever listens for a stop does.
      await sleep(100);
      const snapshotId = promised.kind === 'promised' ? promised.snapshotId : '';
      const asked = Date.now();
      const status = await store.abort?.abortSnapshot({ agent: 'chat' }, snapshotId);
      const wanted: SnapshotStatus = no % 2 === 0 ? 'pending' : 'aborted';
      expect(status).toBe(wanted);
      const stopped = await lineOf(journal, from, ({ kind }) => kind === 'stopped');
      if (stopped.kind === 'stopped') took.push(stopped.at - asked);
      await worker?.hear('done');
    }
  } finally {
    await store.close?.();
  }
  return took;
}

/** Kills a process in the middle of a run while another stands by; gives the milliseconds until that one goes on with it. */
export async function takeOverFromKilled(options: WorkerOptions): Promise<number> {
  const [first, second] = await startWorkers(2, options);
  const journal = openJournal(options.journal);
  const store = await openPlace(options.place);
  try {
    second?.say('recover');
    await second?.hear('quiet');
    first?.say('turn chat detached over take 1500 use 1; and use 1');
    const promised = await lineOf(journal, 0, ({ kind }) => kind === 'promised');
    await lineOf(journal, 0, ({ kind }) => kind === 'recorded');
    await first?.kill();
    const killed = Date.now();
    await lineOf(journal, 0, ({ kind, pid }) => kind === 'asked' && pid === second?.pid);
    const took = Date.now() - killed;
    second?.say('recover');
    await second?.hear('quiet');
    const snapshotId = promised.kind === 'promised' ? promised.snapshotId : '';
    const snapshot = await store.getSnapshot({ agent: 'chat' }, { snapshotId });
    expect(snapshot?.status).toBe('succeeded');
    expect(await textsOf(store, 'over')).toHaveLength(2);
    checkEffects(journal.read());
    return took;
  } finally {
    await store.close?.();
  }
}

/** The middle one. */
export function median(numbers: readonly number[]): number {
  return numbers.toSorted((a, b) => a - b)[Math.floor(numbers.length / 2)] ?? Number.NaN;
}
