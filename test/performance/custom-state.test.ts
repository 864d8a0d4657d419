import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Pool } from 'pg';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { type Chat, type Json, memoryStore, type Store, waymark } from 'waymark';
import { fileStore } from 'waymark/file';
import { postgresStore } from 'waymark/postgres';
import { sqliteStore } from 'waymark/sqlite';
import { startPostgres } from '../support/postgres.ts';
import { type Counted, countWork } from './count-work.ts';
import { fileSize, folderSize, tablesSize } from './stored-bytes.ts';

// A change of one field does the same in a custom state of 1 KB and in one of 1 MB, and leaves as much behind.

let directory: string;
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'waymark-custom-'));
});
afterEach(() => rmSync(directory, { recursive: true, force: true }));

type Tasks = {
  tasks: { title: string; note: string; count: number }[];
  text: string;
};

const stateOf = (bytes: number): Tasks => ({
  tasks: Array.from({ length: bytes / 200 }, (_, at) => ({
    title: `Task ${at}`,
    note: 'n'.repeat(75),
    count: 0,
  })),
  text: 'some text '.repeat(bytes / 20),
});

interface Measured extends Counted {
  /** Bytes that a turn added, as a mean over 100 turns. */
  readonly stored: number;
}

async function measure(
  store: Store,
  bytes: number,
  size: () => number | Promise<number>,
): Promise<Measured> {
  const app = waymark({ store, work: false });
  const agent = app.defineCustomAgent(
    { name: `state-${bytes}`, initialState: stateOf(bytes) as Json },
    async (session) => {
      await session.run(async () =>
        session.updateCustom((draft) => {
          const { tasks } = draft as Tasks;
          const task = tasks[Math.floor(tasks.length / 2)];
          if (task) task.count++;
        }),
      );
    },
  );
  const chat = agent.chat() as Chat;
  const turns = async (count: number): Promise<void> => {
    for (let turn = 0; turn < count; turn++) await chat.send('count');
  };
  await turns(5);
  const counted = await countWork(() => turns(1));
  await turns(20);
  const before = await size();
  await turns(100);
  return { ...counted, stored: ((await size()) - before) / 100 };
}

/** Measures both sizes, and compares them. */
async function compare(
  open: (name: string) => { store: Store; size: () => number | Promise<number> },
): Promise<void> {
  const [small, large] = [open('small'), open('large')];
  const before = await measure(small.store, 1_000, small.size);
  const after = await measure(large.store, 1_000_000, large.size);
  // Frozen: the containers above the field, the same in both.
  expect(after.frozen).toBeLessThanOrEqual(before.frozen + 2);
  expect(after.hashed).toBeLessThanOrEqual(before.hashed + 12);
  // Of a megabyte: one group of members, and the hashes of the others.
  expect(after.hashedLength).toBeLessThan(before.hashedLength + 24_000);
  expect(after.written).toBeLessThan(before.written * 1.5);
  expect(after.read).toBeLessThan(Math.max(100, before.read * 1.5));
  expect(after.stored).toBeLessThan(Math.max(1024, before.stored * 1.5));
  await small.store.close?.();
  await large.store.close?.();
}

test('S250: one field of a large custom state in memory', () =>
  compare(() => ({ store: memoryStore(), size: () => 0 })));

test('S250: one field of a large custom state on SQLite', () =>
  compare((name) => {
    const path = join(directory, `${name}.db`);
    return { store: sqliteStore(path), size: () => fileSize(path) };
  }));

test('S250: one field of a large custom state on files', () =>
  compare((name) => {
    const folder = join(directory, name);
    return { store: fileStore(folder, { durability: 'normal' }), size: () => folderSize(folder) };
  }));

test('S250: one field of a large custom state on Postgres', async () => {
  const { connectionString, stop } = await startPostgres();
  const pool = new Pool({ connectionString, max: 1 });
  try {
    await compare((schema) => ({
      store: postgresStore({ connectionString, schema }),
      size: () => tablesSize(pool, schema),
    }));
  } finally {
    await pool.end();
    await stop();
  }
});
