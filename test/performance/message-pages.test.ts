import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { memoryStore, type Store, waymark } from 'waymark';
import { fileStore } from 'waymark/file';
import { postgresStore } from 'waymark/postgres';
import { sqliteStore } from 'waymark/sqlite';
import { startPostgres } from '../support/postgres.ts';
import { type Counted, countWork } from './count-work.ts';

// The last messages of a conversation cost the same to read, however many there are before them.

let directory: string;
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'waymark-pages-'));
});
afterEach(() => rmSync(directory, { recursive: true, force: true }));

interface Cost extends Counted {
  readonly queries: readonly string[];
}

/** What the last 50 messages of a session cost after some turns, and after many. */
async function measure(
  store: Store,
  late: number,
  queries: () => readonly string[] = () => [],
): Promise<{ readonly first: Cost; readonly last: Cost; readonly whole: Cost }> {
  const app = waymark({ store, work: false });
  const agent = app.defineCustomAgent({ name: 'long' }, async (session) => {
    await session.run(async () => {
      session.addMessages({ role: 'model', content: [{ text: 'm'.repeat(400) }] });
    });
  });
  const sessionId = 'long';
  const cost = async (options: object): Promise<Cost> => {
    queries();
    const counted = await countWork(() => agent.getSession(sessionId, options));
    return { ...counted, queries: queries() };
  };
  const grow = async (turns: number): Promise<void> => {
    for (let turn = 0; turn < turns; turn++) await agent.runText('u'.repeat(200), { sessionId });
  };
  const page = { messages: { last: 50 } };
  await grow(60);
  const first = await cost(page);
  await grow(late - 60);
  const last = await cost(page);
  const whole = await cost({});
  const read = await agent.getSession(sessionId, page);
  expect(read?.messageRange).toEqual({ from: 2 * late - 50, total: 2 * late });
  await app.close();
  return { first, last, whole };
}

/** Positions and numbers have more digits later. */
function expectSame({ first, last }: { readonly first: Cost; readonly last: Cost }): void {
  expect(last.queries).toEqual(first.queries);
  expect(Math.abs(last.read - first.read)).toBeLessThan(1000);
  expect(Math.abs(last.written - first.written)).toBeLessThan(1000);
  expect(Math.abs(last.frozen - first.frozen)).toBeLessThan(10);
  expect(Math.abs(last.hashed - first.hashed)).toBeLessThan(10);
}

test('S340: a page of messages in memory', async () => {
  const costs = await measure(memoryStore(), 1000);
  expectSame(costs);
  expect(costs.last.frozen).toBeLessThan(costs.whole.frozen / 10);
});

test('S340: a page of messages on SQLite', async () => {
  const queries: string[] = [];
  const path = join(directory, 'pages.db');
  const store = sqliteStore(path, { onQuery: (name) => queries.push(name) });
  const costs = await measure(store, 1000, () => queries.splice(0));
  expectSame(costs);
  expect(costs.last.read).toBeLessThan(costs.whole.read / 10);
});

test('S340: a page of messages on files, of a session in use', async () => {
  expectSame(await measure(fileStore(directory, { durability: 'normal' }), 600));
});

test('S340: a page of messages on Postgres', async () => {
  const { connectionString, stop } = await startPostgres();
  const queries: string[] = [];
  const store = postgresStore({ connectionString, onQuery: (name) => queries.push(name) });
  try {
    const costs = await measure(store, 600, () => queries.splice(0));
    expectSame(costs);
    expect(costs.last.read).toBeLessThan(costs.whole.read / 5);
  } finally {
    await stop();
  }
});
