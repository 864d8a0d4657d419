import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest';
import type { App } from '../../src/app.ts';
import { isWaymarkError } from '../../src/core/error.ts';
import { textOf } from '../../src/generate/message.ts';
import type { Store } from '../../src/session/store.ts';
import { startPostgres, type TestPostgres } from '../support/postgres.ts';
import { createCrashApp, openPlace } from './support/agents.ts';
import { openJournal } from './support/journal.ts';

let folder: string;
let postgres: TestPostgres;
let store: Store;
let app: App;
let schemas = 0;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'waymark-faults-'));
  postgres = await startPostgres();
}, 120_000);
afterAll(async () => {
  await postgres.stop();
  await rm(folder, { recursive: true, force: true });
});
beforeEach(async () => {
  const place = { kind: 'postgres', at: postgres.connectionString, schema: `f${schemas}` } as const;
  store = await openPlace(place);
  const journal = openJournal(join(folder, `${schemas++}.jsonl`));
  app = createCrashApp({ store, journal, claimTtl: 500 });
  await app.ready();
});
afterEach(() => app.close({ deadlineMs: 0 }));

interface Told {
  readonly sessionId: string;
  readonly text: string;
  /** Of the turn that was said to be saved. */
  readonly snapshotId?: string;
  /** Why it was not. */
  readonly status?: string;
  /** Where the session was said to stand after a failure. */
  readonly lastGood?: string;
}

/** Takes a turn, and gives what its caller was told. */
async function take(sessionId: string, text: string): Promise<Told> {
  const told = { sessionId, text };
  try {
    const { error, snapshotId } = await app.agent('chat').runText(text, { sessionId });
    if (error === undefined) return { ...told, ...(snapshotId && { snapshotId }) };
    return { ...told, status: error.status, ...(snapshotId && { lastGood: snapshotId }) };
  } catch (error) {
    return { ...told, status: isWaymarkError(error) ? error.status : String(error) };
  }
}

/** Takes turns on several sessions at once until it is told to stop. */
async function takeMany(lanes: number, over: () => boolean): Promise<Told[]> {
  const all: Told[] = [];
  const lane = async (no: number): Promise<void> => {
    for (let turn = 0; !over(); turn++) all.push(await take(`s${no}`, `${no}.${turn} use 1`));
  };
  await Promise.all(Array.from({ length: lanes }, (_, no) => lane(no)));
  return all;
}

/** What was said to be saved is there; what was not has a clear error, and names no snapshot that is not there. */
async function checkTold(all: readonly Told[]): Promise<void> {
  const failed = all.filter(({ snapshotId }) => snapshotId === undefined);
  expect(new Set(failed.map(({ status }) => status))).toEqual(
    new Set(failed.length > 0 ? ['UNAVAILABLE'] : []),
  );
  for (const sessionId of new Set(all.map((told) => told.sessionId))) {
    const head = await store.getSnapshot({ agent: 'chat' }, { sessionId });
    const messages = head?.state?.messages ?? [];
    const texts = messages.filter(({ role }) => role === 'user').map(textOf);
    expect(texts).toEqual([...new Set(texts)]);
    const saved = all.filter((told) => told.sessionId === sessionId && told.snapshotId);
    expect(texts).toEqual(expect.arrayContaining(saved.map(({ text }) => text)));
  }
  for (const { snapshotId, lastGood = snapshotId } of all) {
    if (lastGood === undefined) continue;
    const found = await store.getSnapshot({ agent: 'chat' }, { snapshotId: lastGood });
    expect(found?.status).toBe('succeeded');
  }
}

/** After a fault: every session takes turns again, nothing is left behind, and all is whole. */
async function checkWorks(lanes: number): Promise<void> {
  const again = await Promise.all(
    Array.from({ length: lanes }, (_, no) => take(`s${no}`, `${no} again use 1`)),
  );
  expect(again.filter(({ status }) => status !== undefined)).toEqual([]);
  await expect.poll(() => store.runs?.listRuns(), { timeout: 10_000 }).toEqual([]);
  expect(await store.maintenance?.verify()).toEqual([]);
}

test('any number may open an empty database at once', async () => {
  for (let round = 0; round < 10; round++) {
    const place = {
      kind: 'postgres',
      at: postgres.connectionString,
      schema: `new${round}`,
    } as const;
    const stores = await Promise.all(Array.from({ length: 6 }, () => openPlace(place)));
    const opened = await Promise.allSettled(stores.map((each) => each.open?.()));
    await Promise.all(stores.map((each) => each.close?.()));
    expect(opened.filter(({ status }) => status === 'rejected')).toEqual([]);
  }
}, 60_000);

test('connections that are cut in the middle of turns: saved, or UNAVAILABLE and not claimed to be', async () => {
  const other = new pg.Client({ connectionString: postgres.connectionString });
  await other.connect();
  try {
    const cuts = 15;
    let left = cuts;
    const turns = takeMany(4, () => left <= 0);
    while (left > 0) {
      await sleep(80 + ((left * 37) % 150));
      await other.query(
        `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
         WHERE pid <> pg_backend_pid() AND backend_type = 'client backend'`,
      );
      left--;
    }
    const all = await turns;
    const failed = all.filter(({ status }) => status !== undefined);
    console.info(`${cuts} cuts: ${all.length} turns, ${failed.length} of them UNAVAILABLE`);
    expect(all.length).toBeGreaterThan(failed.length);
    await checkTold(all);
    await checkWorks(4);
  } finally {
    await other.end();
  }
}, 120_000);

test('a detached run goes on after its connections were cut', async () => {
  const other = new pg.Client({ connectionString: postgres.connectionString });
  await other.connect();
  try {
    const chat = app.agent('chat');
    const connection = chat.streamBidi({ sessionId: 'd' });
    const inputs = ['a use 2', 'b use 2', 'c take 300'];
    await Promise.all(inputs.map((text) => connection.sendText(text)));
    const { snapshotId = '' } = await connection.detach();
    for (let cut = 0; cut < 5; cut++) {
      await sleep(15);
      await other.query(
        `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
         WHERE pid <> pg_backend_pid() AND backend_type = 'client backend'`,
      );
    }
    await expect
      .poll(async () => (await chat.getSnapshot({ snapshotId }).catch(() => undefined))?.status, {
        timeout: 20_000,
      })
      .toBe('succeeded');
    const { state } = (await chat.getSnapshot({ snapshotId })) ?? {};
    const said = state?.messages?.filter(({ role }) => role === 'user').map(textOf);
    expect(said).toEqual(inputs);
  } finally {
    await other.end();
  }
}, 60_000);

test('a restart of Postgres: turns fail with UNAVAILABLE while it is away, and go on afterwards', async () => {
  let isOver = false;
  await take('s0', 'before');
  const turns = takeMany(3, () => isOver);
  await sleep(200);
  await postgres.shutDown();
  expect(await take('s9', 'nobody there')).toMatchObject({ status: 'UNAVAILABLE' });
  await postgres.startAgain();
  await sleep(300);
  isOver = true;
  const all = await turns;
  expect(all.some(({ status }) => status !== undefined)).toBe(true);
  await checkTold(all);
  await checkWorks(3);
}, 120_000);
