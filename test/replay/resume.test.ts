import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, expect, test } from 'vitest';
import type { Store } from 'waymark';
import { replay } from 'waymark/replay';
import { bundleChild } from '../support/bundle-child.ts';
import { endProcesses, startProcess } from '../support/child-process.ts';
import { eventually } from '../support/eventually.ts';
import { openSessions } from './support/many-sessions.ts';

const closers: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  await endProcesses();
  for (const close of closers.splice(0).reverse()) await close();
});

test('S430 a replay that was killed continues with what is missing', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'waymark-replay-'));
  closers.push(() => rm(folder, { recursive: true }));
  const database = join(folder, 'chat.db');
  const results = join(folder, 'results.jsonl');
  const app = openSessions(database, 0);
  closers.push(() => app.close());
  const chat = app.agent('chat');
  for (let session = 0; session < 6; session++)
    for (let turn = 0; turn < 5; turn++)
      await chat.run(`say ${turn}`, { sessionId: `s${session}` });
  const child = startProcess([
    bundleChild(new URL('./replay-worker.ts', import.meta.url)),
    database,
    results,
  ]);
  const lines = async () => (await readFile(results, 'utf8').catch(() => '')).split('\n').length;
  await eventually(async () => (await lines()) > 8, 'some turns are replayed');
  await child.end('SIGKILL');
  const left = await readFile(results, 'utf8');
  const done = left.split('\n').filter((line) => line.startsWith('{"turn"')).length;
  expect(done).toBeLessThan(30);
  // As if it had been killed within a line.
  await writeFile(results, `${left.slice(0, left.lastIndexOf('\n') + 1)}{"turn":{"sess`);
  let replayed = 0;
  const report = await replay(app, {
    sessions: { agent: 'chat' },
    resume: results,
    concurrency: 2,
    onProgress: () => replayed++,
  });
  expect(report.turns).toHaveLength(30);
  expect(new Set(report.turns.map(({ snapshotId }) => snapshotId)).size).toBe(30);
  expect(report).toMatchObject({ divergent: 0, sessions: 6 });
  expect(replayed).toBe(30);
  const again = await replay(app, { sessions: { agent: 'chat' }, resume: results, concurrency: 2 });
  expect(again.turns).toHaveLength(30);
  await expect(
    replay(app, { sessions: { agent: 'chat' }, resume: results, tools: 'live' }),
  ).rejects.toThrow('another replay');
});

test('S430 only as many sessions as are replayed at a time are read', async () => {
  const app = openSessions(':memory:', 0);
  closers.push(() => app.close());
  const chat = app.agent('chat');
  for (let session = 0; session < 12; session++)
    await chat.run('hello', { sessionId: `s${session}` });
  const store = app.store as Store;
  let read = 0;
  let done = 0;
  let most = 0;
  const counted: Store = Object.create(store, {
    maintenance: {
      value: {
        ...store.maintenance,
        exportSession: async (
          ...args: Parameters<NonNullable<Store['maintenance']>['exportSession']>
        ) => {
          read++;
          most = Math.max(most, read - done);
          return await store.maintenance?.exportSession(...args);
        },
      },
    },
  });
  const report = await replay(app, {
    sessions: { store: counted, agent: 'chat' },
    concurrency: 3,
    onProgress: () => done++,
  });
  expect(report.turns).toHaveLength(12);
  expect([read, most]).toEqual([12, 3]);
});
