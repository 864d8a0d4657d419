import { chmod, mkdir, mkdtemp, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { systemClock } from '../../src/core/time.ts';
import { sqliteStore } from '../../src/store/sqlite/index.ts';
import { endProcesses } from '../support/child-process.ts';
import { createCrashApp } from './support/agents.ts';
import { openJournal } from './support/journal.ts';
import { startWorker } from './support/processes.ts';

let folder: string;
let files: string;
let path: string;
const scope = { agent: 'chat' };

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'waymark-faults-'));
  // Apart from what else the tests write, so that it can be made read-only.
  files = join(folder, 'files');
  await mkdir(files);
  path = join(files, 'store.db');
});
afterEach(async () => {
  await endProcesses();
  await chmod(files, 0o755);
  await rm(folder, { recursive: true, force: true });
});

/** A closed store with a few turns in one session. */
async function fill(turns = 3): Promise<void> {
  const app = createCrashApp({
    store: sqliteStore(path),
    clock: systemClock,
    journal: openJournal(join(folder, 'journal')),
    claimTtl: 60_000,
  });
  for (let no = 0; no < turns; no++) {
    await app.agent('chat').runText(`${no} ${'x'.repeat(2000)}`, { sessionId: 's' });
  }
  await app.close();
}

async function countMessages(): Promise<number | undefined> {
  const store = sqliteStore(path);
  const head = await store.getSnapshot(scope, { sessionId: 's' });
  expect(await store.maintenance?.verify()).toEqual([]);
  await store.close?.();
  return head?.state?.messages?.length;
}

test('a database of a newer format is refused, and left as it is', async () => {
  await fill();
  const raw = new DatabaseSync(path);
  const { format } = raw.prepare('SELECT format FROM meta').get() as { format: number };
  raw.exec('UPDATE meta SET format = 999');
  raw.close();
  const before = await readFile(path);
  const store = sqliteStore(path);
  await expect(store.getSnapshot(scope, { sessionId: 's' })).rejects.toMatchObject({
    status: 'FAILED_PRECONDITION',
    message: expect.stringMatching(/format 999.*Update waymark/),
  });
  await store.close?.();
  expect(await readFile(path)).toEqual(before);
  const back = new DatabaseSync(path);
  back.exec(`UPDATE meta SET format = ${format}`);
  back.close();
  expect(await countMessages()).toBe(6);
});

test('a file that is no database is DATA_LOSS, and left as it is', async () => {
  const text = 'This is somebody’s diary.\n'.repeat(200);
  await writeFile(path, text);
  const store = sqliteStore(path);
  await expect(store.open?.()).rejects.toMatchObject({
    status: 'DATA_LOSS',
    message: expect.stringContaining(path),
  });
  await store.close?.();
  expect(await readFile(path, 'utf8')).toBe(text);
});

test('a database of another program is refused, and left as it is', async () => {
  const raw = new DatabaseSync(path);
  raw.exec('CREATE TABLE diary(day TEXT); INSERT INTO diary VALUES(1)');
  raw.close();
  const store = sqliteStore(path);
  await expect(store.open?.()).rejects.toMatchObject({ status: 'FAILED_PRECONDITION' });
  await store.close?.();
  const again = new DatabaseSync(path);
  expect(again.prepare('SELECT * FROM diary').all()).toHaveLength(1);
  again.close();
});

test('damage anywhere in the file is DATA_LOSS or not met at all; never a wrong answer', async () => {
  await fill(30);
  const whole = await readFile(path);
  const store = sqliteStore(path);
  const truth = await store.getSnapshot(scope, { sessionId: 's' });
  await store.close?.();
  let met = 0;
  for (let page = 1; page * 4096 < whole.length; page++) {
    const damaged = Buffer.from(whole);
    damaged.fill(0xa5, page * 4096 + 64, page * 4096 + 2048);
    await writeFile(path, damaged);
    const opened = sqliteStore(path);
    try {
      const head = await opened.getSnapshot(scope, { sessionId: 's' });
      expect(head).toEqual(truth);
    } catch (error) {
      met++;
      expect(error).toMatchObject({ status: 'DATA_LOSS' });
    } finally {
      await opened.close?.();
    }
  }
  expect(met).toBeGreaterThan(0);
});

test('a file that may only be read: FAILED_PRECONDITION, and nothing changes', async () => {
  await fill();
  await chmod(path, 0o444);
  await chmod(files, 0o555);
  await chmod(folder, 0o777);
  const before = await readFile(path);
  const place = { kind: 'sqlite', at: path, clockFile: `${path}.clock` } as const;
  const worker = startWorker({ place, journal: join(folder, 'read-only'), claimTtl: 60_000 });
  await worker.hear('ready');
  worker.say('nobody');
  worker.say('try turn');
  expect(await worker.hear('told')).toMatch(/^FAILED_PRECONDITION .*store\.db/);
  await worker.kill();
  expect(await readFile(path)).toEqual(before);
});

test('a disk that is full: a clear error, and what was saved is still there', async () => {
  await fill();
  const { size } = await stat(path);
  const place = { kind: 'sqlite', at: path, clockFile: `${path}.clock` } as const;
  const worker = startWorker(
    { place, journal: join(folder, 'journal'), claimTtl: 60_000 },
    { fileKilobytes: Math.ceil(size / 1024) + 100 },
  );
  await worker.hear('ready');
  worker.say('fill');
  const [saved, status] = (await worker.hear('told')).split(' ');
  expect(['RESOURCE_EXHAUSTED', 'UNAVAILABLE']).toContain(status);
  await worker.kill();
  const count = (await countMessages()) ?? 0;
  expect(count).toBe(6 + 2 * Number(saved));
});
