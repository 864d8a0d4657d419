import { expect } from 'vitest';
import { textOf } from '../../../src/protocol/messages.ts';
import type { SnapshotStatus } from '../../../src/protocol/snapshot.ts';
import type { Store } from '../../../src/store/contract/store.ts';
import { eventually } from '../../support/eventually.ts';
import type { WorkerOptions } from '../crash-worker.ts';
import { openPlace } from './agents.ts';
import { checkEffects } from './check.ts';
import { type Journal, openJournal, type Written } from './journal.ts';
import type { LoadResult } from './load.ts';
import { startWorker, type Worker } from './processes.ts';

/** How workers are started whose clock the test moves. */
export interface ClockedOptions extends WorkerOptions {
  /** Moves the clock of the store and of all processes on it. */
  readonly advance: (ms: number) => Promise<void>;
  /** Resolves when the store has done what a killed process had asked of it. */
  readonly settled: (worker: Worker) => Promise<void>;
}

/** Kills a worker and lets its claims expire. */
export async function killAndExpire(
  worker: Worker,
  { advance, settled, claimTtl }: ClockedOptions,
): Promise<void> {
  await worker.kill();
  await settled(worker);
  await advance(2 * claimTtl);
}

/** Starts processes on one store; resolves when all of them are ready. */
async function startWorkers(count: number, options: WorkerOptions): Promise<Worker[]> {
  const { place, journal, claimTtl } = options;
  const workers = Array.from({ length: count }, () => startWorker({ place, journal, claimTtl }));
  await Promise.all(workers.map((worker) => worker.hear('ready')));
  return workers;
}

/** What several processes came to, for people to read. */
export interface LoadReport extends Pick<LoadResult, 'busy'> {
  readonly turns: number;
}

/**
 * Several processes under load, on sessions of their own and on the same ones: every turn that was saved is there, once. All
 * of it takes several times as long as a claim lasts, by the clock that the test moves.
 */
export async function loadTogether(
  processes: number,
  turns: number,
  options: ClockedOptions,
): Promise<LoadReport> {
  const workers = await startWorkers(processes, options);
  const journal = openJournal(options.journal);
  for (const worker of workers) worker.say(`load ${turns}`);
  const loaded = Promise.all(workers.map((worker) => worker.hear('loaded')));
  for (const { pid } of workers) await lineOf(journal, 0, isAsked(`long ${pid}`));
  await outlast(options);
  journal.signal('go');
  const said = await loaded;
  const results = said.map((line) => JSON.parse(line) as LoadResult);
  expect(results.flatMap(({ failures }) => failures)).toEqual([]);
  const saved = new Map<string, number>();
  for (const { saved: each } of results) {
    for (const [id, count] of Object.entries(each)) saved.set(id, (saved.get(id) ?? 0) + count);
  }
  const lines = journal.read();
  const store = await openPlace(options.place);
  try {
    for (const [id, count] of saved) expect(await textsOf(store, id), id).toHaveLength(count);
    for (const { pid } of workers) {
      // No other process took it over although it lasted longer than its claim.
      expect(lines.filter(isAsked(`long ${pid}`))).toHaveLength(1);
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
  return { turns: total, busy };
}

/** Moves the clock by several times the length of a claim, no further at a time than every open run has prolonged its claim. */
async function outlast({ place, claimTtl, advance }: ClockedOptions): Promise<void> {
  const store = await openPlace(place);
  const open = async (): Promise<ReadonlyMap<string, string>> => {
    const runs = (await store.runs?.listRuns()) ?? [];
    return new Map(runs.map(({ runId, heartbeatAt }) => [runId, heartbeatAt]));
  };
  try {
    // Claims are prolonged three times in their life. A run that begins after the look is left out of two steps at most.
    const step = 0.4 * claimTtl;
    for (let moved = 0; moved < 3 * claimTtl; moved += step) {
      const before = await open();
      await advance(step);
      await eventually(async () => {
        const now = await open();
        return [...before].every(([runId, at]) => now.get(runId) !== at);
      }, 'every open run to prolong its claim');
    }
  } finally {
    await store.close?.();
  }
}

function isAsked(text: string): (line: Written) => boolean {
  return (line) => line.kind === 'asked' && line.what.includes(text);
}

/** Pauses a process during a turn for longer than its claim; returns the result that its caller gets. */
export async function standStill(
  options: ClockedOptions,
  meanwhile: 'no other process' | 'another takes the session' | 'another finishes the run',
): Promise<{ readonly told: string; readonly reason: string; readonly said: readonly string[] }> {
  const [sleeper, other] = await startWorkers(2, options);
  const journal = openJournal(options.journal);
  const store = await openPlace(options.place);
  const from = journal.read().length;
  try {
    const mode = meanwhile === 'another finishes the run' ? 'accepted' : 'attached';
    sleeper?.say(`turn chat ${mode} still slow hold`);
    await lineOf(journal, from, ({ kind }) => kind === 'asked');
    await sleeper?.freeze();
    await options.advance(2 * options.claimTtl);
    if (meanwhile === 'another takes the session') {
      other?.say('turn chat attached still quick');
      await other?.hear('done');
    }
    journal.signal('go');
    if (meanwhile === 'another finishes the run') {
      other?.say('recover');
      await other?.hear('quiet');
    }
    sleeper?.thaw();
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
function lineOf(
  journal: Journal,
  from: number,
  fits: (line: Written) => boolean,
): Promise<Written> {
  return eventually(
    () => journal.read().slice(from).find(fits) ?? false,
    `a line of the journal: ${fits}`,
  );
}

/**
 * A stop that one process asks for reaches the turn of another, several times. Claims last so long that it cannot be a
 * heartbeat that brings it. How long it takes is measured in bench/.
 */
export async function abortAcross(tries: number, options: WorkerOptions): Promise<void> {
  const [worker] = await startWorkers(1, options);
  const journal = openJournal(options.journal);
  const store = await openPlace(options.place);
  try {
    for (let no = 0; no < tries; no++) {
      const from = journal.read().length;
      worker?.say(`turn chat ${no % 2 === 0 ? 'attached' : 'detached'} abort-${no} hang`);
      const promised = await lineOf(journal, from, ({ kind }) => kind === 'promised');
      await lineOf(journal, from, ({ kind }) => kind === 'asked');
      const snapshotId = promised.kind === 'promised' ? promised.snapshotId : '';
      const status = await store.abort?.abortSnapshot({ agent: 'chat' }, snapshotId);
      const wanted: SnapshotStatus = no % 2 === 0 ? 'pending' : 'aborted';
      expect(status).toBe(wanted);
      await lineOf(journal, from, ({ kind }) => kind === 'stopped');
      await worker?.hear('done');
    }
  } finally {
    await store.close?.();
  }
}

/** Kills a process in the middle of a run while another stands by, which continues the run when the claim has expired. */
export async function takeOverFromKilled(options: ClockedOptions): Promise<void> {
  const [first, second] = await startWorkers(2, options);
  const journal = openJournal(options.journal);
  const store = await openPlace(options.place);
  try {
    second?.say('recover');
    await second?.hear('quiet');
    first?.say('turn chat detached over hold use 1; and use 1');
    const promised = await lineOf(journal, 0, ({ kind }) => kind === 'promised');
    await lineOf(journal, 0, ({ kind }) => kind === 'recorded');
    if (first !== undefined) await killAndExpire(first, options);
    journal.signal('go');
    await lineOf(journal, 0, ({ kind, pid }) => kind === 'asked' && pid === second?.pid);
    second?.say('recover');
    await second?.hear('quiet');
    const snapshotId = promised.kind === 'promised' ? promised.snapshotId : '';
    const snapshot = await store.getSnapshot({ agent: 'chat' }, { snapshotId });
    expect(snapshot?.status).toBe('succeeded');
    expect(await textsOf(store, 'over')).toHaveLength(2);
    checkEffects(journal.read());
  } finally {
    await store.close?.();
  }
}

/**
 * A run that blocks the event loop of each process that works on it, as a hostile regular expression does. Each process loses the run
 * when its claim expires; after three of them the run fails, and they change nothing when they continue.
 */
export async function blockEach(options: ClockedOptions): Promise<void> {
  const attempts = 3;
  const workers = await startWorkers(attempts + 1, options);
  const journal = openJournal(options.journal);
  const store = await openPlace(options.place);
  const last = workers.at(-1);
  try {
    workers[0]?.say('turn chat detached blocked block');
    for (const [at, worker] of workers.entries()) {
      if (at > 0) worker.say('recover');
      if (worker === last) break;
      await lineOf(journal, 0, ({ kind, pid }) => kind === 'asked' && pid === worker.pid);
      await options.advance(2 * options.claimTtl);
    }
    await last?.hear('quiet');
    const [dead] = (await store.runs?.listDeadRuns?.()) ?? [];
    const failed = await store.getSnapshot({ agent: 'chat' }, { snapshotId: dead?.runId ?? '' });
    expect(failed).toMatchObject({ status: 'failed', error: { details: { deadLetter: true } } });
    expect(failed?.error?.details).toHaveProperty('attempts.length', attempts);
    journal.signal('go');
    for (const worker of workers.slice(1, -1)) await worker.hear('quiet');
    await workers[0]?.hear('done');
    const { snapshotId = '' } = failed ?? {};
    expect(await store.getSnapshot({ agent: 'chat' }, { snapshotId })).toEqual(failed);
    expect(await store.getSnapshot({ agent: 'chat' }, { sessionId: 'blocked' })).toBeUndefined();
  } finally {
    await store.close?.();
  }
}
