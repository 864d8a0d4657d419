import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { chmod, readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { Store } from '../../src/store/contract/store.ts';
import { type FileStoreOptions, fileStore } from '../../src/store/file/index.ts';
import { createKit, type Kit, refused } from '../../src/testing/store-contract/kit.ts';
import { bundleChild } from '../support/bundle-child.ts';
import { endProcesses, startProcess } from '../support/child-process.ts';
import { eventually } from '../support/eventually.ts';
import { readTree } from '../support/read-tree.ts';
import { type SharedClock, sharedClock } from '../support/shared-clock.ts';
import { someMoment } from '../support/some-moment.ts';
import { temporaryDirectory } from './file-support.ts';

const script = bundleChild(new URL('./file-worker.ts', import.meta.url));
const scope = { agent: 'chat' };

interface Told {
  readonly snapshotId?: string;
  readonly sessionId?: string;
  readonly n?: number;
  readonly runId?: string;
  readonly stopped?: boolean;
  readonly held?: boolean;
  readonly status?: string;
  readonly message?: string;
}

interface Worker {
  /** What it has told so far. */
  readonly told: () => readonly Told[];
  /** Resolves with the first line that fits; rejects if the process ends before. */
  readonly first: (fits: (line: Told) => boolean) => Promise<Told>;
  /** Resolves when the process has ended without an error. */
  readonly finished: () => Promise<void>;
  readonly kill: () => Promise<unknown>;
}

let directory: string;
let time: SharedClock;
let remove: () => Promise<void>;
let stores: Store[];

beforeEach(async () => {
  ({ path: directory, remove } = await temporaryDirectory());
  time = sharedClock(`${directory}.clock`);
  stores = [];
});
afterEach(async () => {
  await endProcesses();
  for (const store of stores) await store.close?.();
  await remove();
  await rm(`${directory}.clock`, { force: true });
});

function open(options?: FileStoreOptions): Kit {
  const store = fileStore(directory, { clock: time.clock, ...options });
  stores.push(store);
  return createKit({ store, close: async () => {} }, scope);
}

function start(...args: string[]): Worker {
  return startLimited(undefined, ...args);
}

/** A worker whose files cannot grow beyond so many kilobytes. */
function startLimited(fileKilobytes: number | undefined, ...args: string[]): Worker {
  const options = fileKilobytes === undefined ? {} : { fileKilobytes };
  const child = startProcess([script, directory, ...args], options);
  const told: Told[] = [];
  const read = (): readonly Told[] => {
    told.push(...child.lines.slice(told.length).map((line) => JSON.parse(line) as Told));
    return told;
  };
  return {
    told: read,
    first: (fits) => child.when(() => read().find(fits), 'such a line'),
    finished: () => child.finished(),
    kill: () => child.end(),
  };
}

/** A process that holds the lock until it is told to release it. */
async function holdLock(): Promise<
  Worker & { release(): void; readonly isReleased: () => boolean }
> {
  const file = `${directory}.release`;
  const holder = start('hold', file);
  await holder.first((line) => line.held === true);
  return {
    ...holder,
    release: () => writeFileSync(file, ''),
    isReleased: () => existsSync(file) && readFileSync(file, 'utf8') === 'released',
  };
}

describe('several processes on one directory', () => {
  test('lose no turn, of one session or of two', async () => {
    const workers = [start('turns', 'shared a', '40'), start('turns', 'shared b', '40')];
    await Promise.all(workers.map((worker) => worker.finished()));
    const { maintenance, textsOf, store } = open();
    const told = workers.flatMap((worker) =>
      worker.told().filter((line) => line.sessionId === 'shared'),
    );
    expect(told.map((line) => line.n).sort((a, b) => Number(a) - Number(b))).toEqual(
      Array.from({ length: 80 }, (_, at) => at + 1),
    );
    expect((await store.getSnapshot(scope, { sessionId: 'shared' }))?.state?.custom).toEqual({
      n: 80,
    });
    const texts = await textsOf({ sessionId: 'shared' });
    expect(texts).toHaveLength(160);
    expect(texts.filter((text) => text.startsWith('shared a'))).toHaveLength(40);
    expect(await maintenance.verify()).toEqual([]);
  });

  test('hear of a stop and of events', async () => {
    const worker = start('wait', 's');
    const { runId = '' } = await worker.first((line) => line.runId !== undefined);
    const { events, abort } = open();
    let heard = 0;
    const forget = events.onEvents(runId, () => heard++);
    await eventually(async () => {
      const page = await events.read(scope, runId, { limit: 10 });
      expect(page?.events.map((event) => event.chunk.status)).toEqual([0, 1, 2, 3, 4]);
    });
    await eventually(() => heard > 0);
    forget();
    expect(await abort.abortSnapshot(scope, runId)).toBe('pending');
    await worker.first((line) => line.stopped === true);
    await worker.finished();
  });
});

describe('the lock', () => {
  test('keeps everybody else out while it is held, and no longer', async () => {
    const { turn } = open();
    await turn('s');
    const holder = await holdLock();
    await refused(open({ lockTimeout: 50 }).turn('s'), 'UNAVAILABLE');
    const waiting = turn('s');
    expect(holder.isReleased()).toBe(false);
    holder.release();
    await waiting;
    expect(holder.isReleased()).toBe(true);
  });

  test('is free as soon as its holder is dead', async () => {
    const { turn } = open();
    await turn('s');
    const holder = await holdLock();
    const waiting = turn('s');
    await holder.kill();
    await waiting;
  });

  test('that somebody removed is made anew, and locks', async () => {
    const { turn, textsOf } = open();
    await turn('s');
    await rm(join(directory, 'lock'));
    await Promise.all([turn('s', { text: 'a' }), open().turn('t', { text: 'b' })]);
    const holder = await holdLock();
    const waiting = turn('s', { text: 'c' });
    expect(holder.isReleased()).toBe(false);
    holder.release();
    await waiting;
    expect(holder.isReleased()).toBe(true);
    expect(await textsOf({ sessionId: 's' })).toHaveLength(6);
  });
});

describe('a process that is killed', () => {
  test('in the middle of turns, 15 times, loses nothing that it has told and leaves a whole store', async () => {
    const told: Told[] = [];
    for (let round = 0; round < 15; round++) {
      const worker = start('turns', `s ${round}`, '0');
      await eventually(() => worker.told().length > (round * 7) % 5);
      await someMoment(round);
      await worker.kill();
      time.advance(120_000);
      told.push(...worker.told());
      const { maintenance, store, timeline } = open();
      // A change that it had not told yet may be half written.
      const faults = await maintenance.verify();
      expect(faults.filter(({ kind }) => kind !== 'unfinished')).toEqual([]);
      for (const { snapshotId = '', n } of worker.told()) {
        const snapshot = await store.getSnapshot(scope, { snapshotId });
        expect(snapshot?.state?.custom).toEqual({ n });
        expect(snapshot?.state?.messages).toHaveLength(2 * Number(n));
      }
      const { turnCount = 0 } = (await timeline.getSession(scope, 's')) ?? {};
      const most = Math.max(
        ...told.filter((line) => line.sessionId === 's').map((line) => Number(line.n)),
      );
      // It may have been killed after a turn was written and before it could tell.
      expect([most, most + 1]).toContain(turnCount);
    }
    expect(told.length).toBeGreaterThan(30);
  });
});

describe('a disk that cannot take any more', () => {
  test('is a clear error, and everything that was there is still there', async () => {
    const worker = startLimited(24, 'fill', 's');
    await worker.finished();
    const error = worker.told().find((line) => line.status !== undefined);
    expect(error).toMatchObject({
      status: 'RESOURCE_EXHAUSTED',
      message: expect.stringContaining('"sessions/_/chat/s/journal.jsonl"'),
    });
    const turns = worker.told().filter((line) => line.sessionId === 's');
    expect(turns.length).toBeGreaterThan(3);
    expect(worker.told().at(-1)).toMatchObject({ sessionId: 'elsewhere' });
    const journal = await readFile(join(directory, 'sessions/_/chat/s/journal.jsonl'), 'utf8');
    expect(journal.endsWith('}\n\n')).toBe(true);
    const { textsOf, maintenance, turn } = open();
    expect(await textsOf({ sessionId: 's' })).toHaveLength(2 * turns.length);
    expect(await maintenance.verify()).toEqual([]);
    time.advance(120_000);
    await turn('s', { text: 'room again' });
    expect(await textsOf({ sessionId: 's' })).toHaveLength(2 * turns.length + 2);
  });
});

describe('a directory that may only be read', () => {
  test('is read; writing is PERMISSION_DENIED and changes nothing', async () => {
    await open().turn('s');
    const before = await readTree(directory);
    const folders = ['', 'sessions', 'sessions/_', 'sessions/_/chat', 'sessions/_/chat/s', 'runs'];
    for (const folder of folders) await chmod(join(directory, folder), 0o555);
    for (const name of before.keys()) await chmod(join(directory, name), 0o444);
    const worker = start('read', 's');
    await worker.finished();
    for (const folder of folders) await chmod(join(directory, folder), 0o755);
    expect(worker.told()).toMatchObject([
      { n: 2 },
      { n: 1 },
      { status: 'PERMISSION_DENIED', message: expect.stringContaining('lock') },
    ]);
    expect(await readTree(directory)).toEqual(before);
  });
});
