import { createCipheriv } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Pool } from 'pg';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { type Chat, memoryStore, type Store, waymark } from 'waymark';
import { postgresStore } from 'waymark/postgres';
import { sqliteStore } from 'waymark/sqlite';
import { createKit, stateOf } from '../../src/testing/store-contract/kit.ts';
import { startPostgres } from '../support/postgres.ts';
import { countWork } from './count-work.ts';
import { fileSize, tablesSize } from './stored-bytes.ts';
import { usedBytes } from './used-bytes.ts';

// A four-character edit of a 1 MB artifact leaves behind what it changed, and the chunks around it.

let directory: string;
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'waymark-artifacts-'));
});
afterEach(() => rmSync(directory, { recursive: true, force: true }));

const text = Array.from({ length: 200_000 }, (_, at) => `${(at * 7919) % 10_007} `).join('');

/** Adds an artifact of 1 MB, edits it in 20 turns, and once more on a branch. */
async function measure(store: Store, size: () => number | Promise<number>): Promise<void> {
  const app = waymark({ store, work: false });
  let edits = 0;
  const agent = app.defineCustomAgent({ name: 'editor' }, async (session) => {
    await session.run(async () => {
      if (session.messages.length === 0) return;
      if (session.artifacts.length === 0) {
        session.addArtifacts({ name: 'text', parts: [{ text }] });
        return;
      }
      const from = (edits++ * 44_777) % (text.length - 4);
      session.editArtifact('text', [{ from, to: from + 4, text: 'four' }]);
    });
  });
  const chat = agent.chat() as Chat;
  await chat.send('begin');
  const empty = await size();
  const first = await chat.send('add it');
  const before = await size();
  let hashed = 0;
  for (let turn = 0; turn < 20; turn++) {
    hashed = Math.max(hashed, (await countWork(() => chat.send('edit it'))).hashedLength);
  }
  const grown = ((await size()) - before) / 20;
  expect(grown).toBeLessThan(16_384);
  // All 21 versions of it.
  expect((await size()) - empty).toBeLessThan(1_500_000);
  expect(hashed).toBeLessThan(64_000);
  await agent.restore(first);
  await chat.send('edit it on a branch');
  expect((await size()) - before).toBeLessThan(21 * 16_384 + 65_536);
  const session = await agent.getSession(first.sessionId ?? '');
  expect(session?.state?.artifacts?.[0]?.parts).toEqual([
    { text: expect.stringContaining('four') },
  ]);
  expect(await store.maintenance?.verify()).toEqual([]);
  await app.close();
}

const megabyte = 1_000_000;

/** Adds 3 MB of data, and the same data again under other names. */
async function measureData(
  store: Store,
  size: () => number | Promise<number>,
  most = 1.05,
): Promise<void> {
  const parts = [1, 2, 3].map((seed) => ({ media: { url: dataUrl(seed) } }));
  const { turn, maintenance } = createKit({ store, close: async () => {} });
  const add = (...names: string[]): Promise<unknown> =>
    turn('s', { state: stateOf({ artifacts: names.map((name) => ({ name, parts })) }) });
  await turn('s');
  const empty = await size();
  await add('a.bin');
  const stored = (await size()) - empty;
  expect(stored).toBeLessThan(3 * most * megabyte);
  await add('a.bin', 'b.bin');
  await add('b.bin');
  expect((await size()) - empty - stored).toBeLessThan(0.05 * megabyte);
  expect(await maintenance.verify()).toEqual([]);
  await store.close?.();
}

/** Random data, the same for the same seed, that compressing gains nothing of. */
function dataUrl(seed: number): string {
  const key = new Uint8Array(32).fill(seed);
  const bytes = createCipheriv('aes-256-ctr', key, new Uint8Array(16)).update(
    Buffer.alloc(megabyte),
  );
  return `data:application/zip;base64,${bytes.toString('base64')}`;
}

test('S556: data in memory takes its bytes', async () => {
  const { turn } = createKit({ store: memoryStore(), close: async () => {} });
  const add = async (seed: number): Promise<void> => {
    const media = { url: dataUrl(seed) };
    await turn(`s${seed}`, { state: stateOf({ artifacts: [{ name: 'a', parts: [{ media }] }] }) });
  };
  // The texts that were hashed last are remembered.
  for (let seed = 1; seed <= 8; seed++) await add(seed);
  const before = await usedBytes();
  for (let seed = 9; seed <= 16; seed++) await add(seed);
  expect(((await usedBytes()) - before) / 8).toBeLessThan(1.05 * megabyte);
});

test('S556: data on SQLite takes its bytes', () => {
  const path = join(directory, 'data.db');
  return measureData(sqliteStore(path), () => fileSize(path));
});

test('S556: data on SQLite, encrypted, takes its bytes', () => {
  const path = join(directory, 'encrypted-data.db');
  const encryption = { key: new Uint8Array(32).fill(7) };
  return measureData(sqliteStore(path, { encryption }), () => fileSize(path));
});

// Without an agent: it holds the events of its last turns, and with them the artifacts that it sent.
test('S252: edits of a large artifact in memory', async () => {
  const store = memoryStore();
  const { turn, maintenance } = createKit({ store, close: async () => {} });
  let current = text;
  const edit = async (count: number): Promise<void> => {
    for (let at = 0; at < count; at++) {
      const from = (at * 44_777) % (text.length - 4);
      current = `${current.slice(0, from)}${`${at}abc`.slice(0, 4)}${current.slice(from + 4)}`;
      await turn('s', {
        state: stateOf({ artifacts: [{ name: 'text', parts: [{ text: current }] }] }),
      });
    }
  };
  // The texts that were hashed last are remembered.
  await edit(12);
  const before = await usedBytes();
  await edit(40);
  expect(((await usedBytes()) - before) / 40).toBeLessThan(16_384);
  expect(await maintenance.verify()).toEqual([]);
});

test('S252: edits of a large artifact on SQLite', () => {
  const path = join(directory, 'artifacts.db');
  return measure(sqliteStore(path), () => fileSize(path));
});

test('S252: edits of a large artifact on SQLite, encrypted', () => {
  const path = join(directory, 'encrypted.db');
  const encryption = { key: new Uint8Array(32).fill(7) };
  return measure(sqliteStore(path, { encryption }), () => fileSize(path));
});

test('S252, S556: edits of a large artifact, and data, on Postgres', async () => {
  const { connectionString, stop } = await startPostgres();
  const pool = new Pool({ connectionString, max: 1 });
  try {
    await measure(postgresStore({ connectionString }), () => tablesSize(pool, 'waymark'));
    // With the heads of its rows and pages, which Postgres makes several of at once.
    const most = 1.1;
    const plain = postgresStore({ connectionString, schema: 'plain' });
    await measureData(plain, () => tablesSize(pool, 'plain'), most);
    const encryption = { key: new Uint8Array(32).fill(7) };
    const sealed = postgresStore({ connectionString, schema: 'sealed', encryption });
    await measureData(sealed, () => tablesSize(pool, 'sealed'), most);
  } finally {
    await pool.end();
    await stop();
  }
});
