import { type ChildProcess, type ChildProcessByStdio, spawn } from 'node:child_process';
import { chmod, readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import type { Readable } from 'node:stream';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { systemClock } from '../../src/core/clock.ts';
import type { Store } from '../../src/session/store.ts';
import { type FileStoreOptions, fileStore } from '../../src/store/file/index.ts';
import { createKit, type Kit, refused } from '../../src/testing/store-contract/kit.ts';
import { readTree } from '../support/read-tree.ts';
import { temporaryDirectory } from './file-support.ts';

const script = fileURLToPath(new URL('./file-worker.ts', import.meta.url));
const scope = { agent: 'chat' };
const stdio: ['ignore', 'pipe', 'inherit'] = ['ignore', 'pipe', 'inherit'];

interface Told {
  readonly snapshotId?: string;
  readonly sessionId?: string;
  readonly n?: number;
  readonly runId?: string;
  readonly stoppedAt?: number;
  readonly heldAt?: number;
  readonly status?: string;
  readonly message?: string;
}

interface Worker {
  readonly told: Told[];
  /** Resolves with the first line that fits. */
  readonly first: (fits: (line: Told) => boolean) => Promise<Told>;
  readonly ended: Promise<void>;
  readonly kill: () => void;
}

let directory: string;
let remove: () => Promise<void>;
let stores: Store[];
let children: ChildProcess[];

beforeEach(async () => {
  ({ path: directory, remove } = await temporaryDirectory());
  stores = [];
  children = [];
});
afterEach(async () => {
  for (const child of children) child.kill('SIGKILL');
  for (const store of stores) await store.close?.();
  await remove();
});

function open(options?: FileStoreOptions): Kit {
  const store = fileStore(directory, options);
  stores.push(store);
  return createKit({ store, close: async () => {} }, scope);
}

function start(...args: string[]): Worker {
  return follow(spawn(process.execPath, [script, directory, ...args], { stdio }));
}

/** A worker whose files cannot grow beyond so many kilobytes. */
function startLimited(kilobytes: number, ...args: string[]): Worker {
  const command = `ulimit -f ${kilobytes} && exec "$0" "$@"`;
  return follow(
    spawn('bash', ['-c', command, process.execPath, script, directory, ...args], { stdio }),
  );
}

function follow(child: ChildProcessByStdio<null, Readable, null>): Worker {
  children.push(child);
  const told: Told[] = [];
  const waiting = new Set<() => void>();
  const lines = createInterface({ input: child.stdout });
  lines.on('line', (line) => {
    told.push(JSON.parse(line));
    for (const look of waiting) look();
  });
  const ended = new Promise<void>((resolve) => lines.once('close', resolve));
  return {
    told,
    first: (fits) =>
      new Promise((resolve) => {
        const look = (): void => {
          const found = told.find(fits);
          if (found === undefined) return;
          waiting.delete(look);
          resolve(found);
        };
        waiting.add(look);
        look();
      }),
    ended,
    kill: () => child.kill('SIGKILL'),
  };
}

describe('several processes on one directory', () => {
  test('lose no turn, of one session or of two', async () => {
    const workers = [start('turns', 'shared a', '40'), start('turns', 'shared b', '40')];
    await Promise.all(workers.map((worker) => worker.ended));
    const { maintenance, textsOf, store } = open();
    const told = workers.flatMap((worker) =>
      worker.told.filter((line) => line.sessionId === 'shared'),
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
  }, 60_000);

  test('hear of a stop and of events at once', async () => {
    const worker = start('wait', 's');
    const { runId = '' } = await worker.first((line) => line.runId !== undefined);
    const { events, abort } = open();
    let heard = 0;
    const forget = events.onEvents(runId, () => heard++);
    const seen: unknown[] = [];
    while (seen.length < 5) {
      const before = heard;
      const page = await events.read(scope, runId, { limit: 10 });
      seen.splice(0, seen.length, ...(page?.events.map((event) => event.chunk.status) ?? []));
      for (let waited = 0; heard === before && seen.length < 5 && waited < 1000; waited += 5) {
        await systemClock.sleep(5);
      }
    }
    forget();
    expect(seen).toEqual([0, 1, 2, 3, 4]);
    const asked = systemClock.now();
    expect(await abort.abortSnapshot(scope, runId)).toBe('pending');
    const { stoppedAt = 0 } = await worker.first((line) => line.stoppedAt !== undefined);
    expect(stoppedAt - asked).toBeLessThan(300);
    await worker.ended;
  }, 30_000);
});

describe('the lock', () => {
  test('keeps everybody else out while it is held, and no longer', async () => {
    const { turn } = open();
    await turn('s');
    const holder = start('hold', 'x', '400');
    const { heldAt = 0 } = await holder.first((line) => line.heldAt !== undefined);
    const impatient = open({ lockTimeout: 50 });
    await refused(impatient.turn('s'), 'UNAVAILABLE');
    expect(systemClock.now() - heldAt).toBeLessThan(400);
    await turn('s');
    expect(systemClock.now() - heldAt).toBeGreaterThanOrEqual(400);
  });

  test('is free as soon as its holder is dead', async () => {
    const { turn } = open();
    await turn('s');
    const holder = start('hold', 'x', '60000');
    await holder.first((line) => line.heldAt !== undefined);
    const waiting = turn('s');
    holder.kill();
    await waiting;
  });

  test('that somebody removed is made anew, and locks', async () => {
    const { turn, textsOf } = open();
    await turn('s');
    await rm(join(directory, 'lock'));
    await Promise.all([turn('s', { text: 'a' }), open().turn('t', { text: 'b' })]);
    const holder = start('hold', 'x', '300');
    const { heldAt = 0 } = await holder.first((line) => line.heldAt !== undefined);
    await turn('s', { text: 'c' });
    expect(systemClock.now() - heldAt).toBeGreaterThanOrEqual(300);
    expect(await textsOf({ sessionId: 's' })).toHaveLength(6);
  });
});

describe('a process that is killed', () => {
  test('in the middle of turns, 15 times, loses nothing that it has told and leaves a whole store', async () => {
    const told: Told[] = [];
    for (let round = 0; round < 15; round++) {
      const worker = start('turns', `s ${round}`, '0');
      await worker.first((line) => line.n !== undefined);
      await systemClock.sleep((round * 37) % 120);
      worker.kill();
      await worker.ended;
      told.push(...worker.told);
      const { maintenance, store, timeline } = open();
      expect(await maintenance.verify()).toEqual([]);
      for (const { snapshotId = '', n } of worker.told) {
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
  }, 120_000);
});

describe('a disk that cannot take any more', () => {
  test('is a clear error, and everything that was there is still there', async () => {
    const worker = startLimited(24, 'fill', 's');
    await worker.ended;
    const error = worker.told.find((line) => line.status !== undefined);
    expect(error).toMatchObject({
      status: 'RESOURCE_EXHAUSTED',
      message: expect.stringContaining('"sessions/_/chat/s/journal.jsonl"'),
    });
    const turns = worker.told.filter((line) => line.sessionId === 's');
    expect(turns.length).toBeGreaterThan(3);
    expect(worker.told.at(-1)).toMatchObject({ sessionId: 'elsewhere' });
    const journal = await readFile(join(directory, 'sessions/_/chat/s/journal.jsonl'), 'utf8');
    expect(journal.endsWith('}\n')).toBe(true);
    const { textsOf, maintenance, turn } = open();
    expect(await textsOf({ sessionId: 's' })).toHaveLength(2 * turns.length);
    expect(await maintenance.verify()).toEqual([]);
    await systemClock.sleep(100);
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
    await worker.ended;
    for (const folder of folders) await chmod(join(directory, folder), 0o755);
    expect(worker.told).toMatchObject([
      { n: 2 },
      { n: 1 },
      { status: 'PERMISSION_DENIED', message: expect.stringContaining('lock') },
    ]);
    expect(await readTree(directory)).toEqual(before);
  });
});
