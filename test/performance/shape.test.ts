import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Pool } from 'pg';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { type Agent, type AppOptions, type Chat, memoryStore, waymark } from 'waymark';
import { fileStore } from 'waymark/file';
import { postgresStore } from 'waymark/postgres';
import { sqliteStore } from 'waymark/sqlite';
import { startPostgres } from '../support/postgres.ts';
import { type Counted, countWork } from './count-work.ts';
import { fileSize, folderSize, tablesSize } from './stored-bytes.ts';
import { usedBytes } from './used-bytes.ts';

// The shape of a turn's cost, not its time: a turn does the same at turn 10 and at turn 600, and leaves as much behind.

let directory: string;
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'waymark-shape-'));
});
afterEach(() => rmSync(directory, { recursive: true, force: true }));

// A heap also holds what V8 has compiled and what the test runner does meanwhile, on a busy machine up to 250 KB in one measurement. So the
// bounds on heaps lie a quarter above what is measured on a quiet one. What they guard against is several times as much.

const userText = 'u'.repeat(200);
const modelText = 'm'.repeat(400);

test('a turn in memory does the same at any length, and keeps what is new', async () => {
  const chat = createChat({ store: memoryStore() });
  const { first, last, grown } = await measure(chat, usedBytes);
  expect(last).toEqual(first);
  // All texts are one and the same string. A separate array for each snapshot would take 9 KB at turn 600.
  expect(grown.late).toBeLessThan(5000);
});

test('an idle session in memory is little more than its text', async () => {
  // All texts are one and the same string: what is counted is all but the text.
  const [kept, held] = [await idleBytes({ store: memoryStore() }), await idleBytes({})];
  // The store has a title besides.
  expect(kept).toBeLessThan(3300);
  expect(held).toBeLessThan(2500);
});

test('the events of an accepted turn are kept as little more than their text', async () => {
  const agent = createAgent({ store: memoryStore() });
  const turns = async (count: number): Promise<void> => {
    for (let turn = 0; turn < count; turn++) await agent.runText(userText, { accept: true });
  };
  await turns(200);
  const before = await usedBytes();
  await turns(400);
  // Twenty pieces of twenty characters, and the answer once more at the end; as objects it was 8 KB.
  expect(((await usedBytes()) - before) / 400).toBeLessThan(5000);
});

test('a session that left the cache is woken once, by its next turn, and not hashed again', async () => {
  const agent = createAgent({ store: memoryStore(), cacheSize: 1 });
  const [chat, other] = [agent.chat(), agent.chat()];
  for (let turn = 0; turn < 100; turn++) await chat.send(userText);
  const awake = await countWork(() => chat.send(userText));
  await other.send(userText);
  const resting = await countWork(() => chat.send(userText));
  const again = await countWork(() => chat.send(userText));
  // A message of one text is three objects; the texts themselves are not looked at.
  expect(resting.frozen - awake.frozen).toBe(202 * 3);
  expect(resting.written).toBe(awake.written);
  expect(again).toEqual(awake);
});

test.each([
  ['', {}],
  [' sealed', { clientState: { secret: 's'.repeat(32) } }],
])('a turn whose state the client holds%s does the same at any length', async (_, held) => {
  const { first, last } = await measure(createChat({}, held), usedBytes);
  expect(last).toEqual(first);
});

test('a turn on SQLite does the same at any length: statements, JSON, and bytes in the file', async () => {
  const path = join(directory, 'shape.db');
  const queries: string[] = [];
  const store = sqliteStore(path, { onQuery: (name) => queries.push(name) });
  const chat = createChat({ store });
  const { first, last, grown } = await measure(
    chat,
    async () => fileSize(path),
    () => queries.splice(0),
  );
  expect(last).toEqual(first);
  expect(first.queries.length).toBeLessThanOrEqual(10);
  expect(grown.early).toBeLessThan(jsonOfTurn() + 512);
  expect(grown.late).toBeLessThan(jsonOfTurn() + 512);
  await store.close?.();
});

test('a turn on files does the same at any length: JSON, and bytes in the folder', async () => {
  const store = fileStore(directory, { durability: 'normal' });
  const { first, last, grown } = await measure(createChat({ store }), async () =>
    folderSize(directory),
  );
  // Places and numbers of turns have more digits later.
  expect(last.written - first.written).toBeLessThan(50);
  expect(last.read - first.read).toBeLessThan(50);
  expect({ ...last, written: 0, read: 0 }).toEqual({ ...first, written: 0, read: 0 });
  // The line of the turn's run stays in the journal until it is rewritten. It has the input once more.
  expect(grown.early).toBeLessThan(jsonOfTurn() + 1400);
  expect(grown.late).toBeLessThan(jsonOfTurn() + 1400);
  await store.close?.();
});

test('a turn on Postgres does the same at any length: statements, JSON, and bytes in the tables', async () => {
  const postgres = await startPostgres();
  const pool = new Pool({ connectionString: postgres.connectionString, max: 1 });
  try {
    const queries: string[] = [];
    const store = postgresStore({
      connectionString: postgres.connectionString,
      onQuery: (name) => queries.push(name),
    });
    const { first, last, grown } = await measure(
      createChat({ store }),
      () => tablesSize(pool, 'waymark'),
      () => queries.splice(0),
    );
    // The answers of the database are JSON, and its row numbers have more digits later.
    expect(last.read - first.read).toBeLessThan(50);
    expect({ ...last, read: 0 }).toEqual({ ...first, read: 0 });
    expect(first.queries.length).toBeLessThanOrEqual(5);
    // A page is 8 KB, and a table grows by several: both are means over 200 turns.
    expect(grown.early).toBeLessThan(jsonOfTurn() + 1024);
    expect(grown.late).toBeLessThan(jsonOfTurn() + 1024);
    await store.close?.();
  } finally {
    await pool.end();
    await postgres.stop();
  }
});

/** Bytes of an idle session with five turns. */
async function idleBytes(options: AppOptions): Promise<number> {
  const agent = createAgent({ ...options, cacheSize: 10 });
  const open: Chat[] = [];
  const add = async (count: number): Promise<void> => {
    for (let at = 0; at < count; at++) {
      const chat = agent.chat();
      for (let turn = 0; turn < 5; turn++) await chat.send(userText);
      open.push(chat);
    }
  };
  // Fill the caches before counting.
  await add(200);
  const before = await usedBytes();
  // 3,500 snapshots in all. With 4,000, maps with 4,096 places are nearly full, and what was deleted from them decides whether they double.
  await add(500);
  return ((await usedBytes()) - before) / 500;
}

type ClientState = { readonly clientState?: { readonly secret: string } };

function createChat(options: AppOptions, held?: ClientState): Chat {
  return createAgent(options, held).chat();
}

function createAgent(options: AppOptions, held: ClientState = {}): Agent {
  // Polling for expired runs would count with the turn it coincides with.
  const app = waymark({ ...options, work: false });
  app.defineModel({ name: 'instant' }, async (_, { stream }) => {
    for (let at = 0; at < 20; at++) await stream({ content: [{ text: modelText.slice(0, 20) }] });
    return { message: { role: 'model', content: [{ text: modelText }] }, finishReason: 'stop' };
  });
  return app.defineAgent({ name: 'shape', model: 'instant', ...held }) as Agent;
}

interface Measured {
  /** The work of turn 10 and of turn 600. */
  readonly first: Counted & { readonly queries: readonly string[] };
  readonly last: Counted & { readonly queries: readonly string[] };
  /** Bytes per turn, over turns 100 to 300 and 400 to 600. */
  readonly grown: { readonly early: number; readonly late: number };
}

async function measure(
  chat: Chat,
  size: () => Promise<number>,
  takeQueries: () => readonly string[] = () => [],
): Promise<Measured> {
  let turn = 0;
  const goTo = async (end: number): Promise<void> => {
    for (; turn < end; turn++) await chat.send(userText);
  };
  // The least of three turns: timers of the process, and of the tests, may do something during one of them.
  const count = async (): Promise<Measured['first']> => {
    const turns: Measured['first'][] = [];
    for (let at = 0; at < 3; at++) {
      takeQueries();
      const counted = await countWork(() => goTo(turn + 1));
      turns.push({ ...counted, queries: takeQueries() });
    }
    return leastOf(turns);
  };
  const growth = async (from: number, to: number): Promise<number> => {
    await goTo(from);
    const before = await size();
    await goTo(to);
    return ((await size()) - before) / (to - from);
  };
  await goTo(9);
  const first = await count();
  const early = await growth(100, 300);
  const late = await growth(400, 599);
  return { first, last: await count(), grown: { early, late } };
}

/** Each number, and the shortest list of queries, at its least. */
function leastOf(turns: readonly Measured['first'][]): Measured['first'] {
  const least = (key: keyof Counted): number => Math.min(...turns.map((turn) => turn[key]));
  const [queries = []] = turns
    .map((turn) => turn.queries)
    .toSorted((one, other) => one.length - other.length);
  return {
    frozen: least('frozen'),
    cloned: least('cloned'),
    written: least('written'),
    read: least('read'),
    hashed: least('hashed'),
    hashedLength: least('hashedLength'),
    queries,
  };
}

function jsonOfTurn(): number {
  const user = { role: 'user', content: [{ text: userText }] };
  const model = { role: 'model', content: [{ text: modelText }] };
  return JSON.stringify(user).length + JSON.stringify(model).length;
}
