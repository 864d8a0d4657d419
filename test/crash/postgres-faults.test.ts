import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import pg from 'pg';
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest';
import type { App } from '../../src/app.ts';
import { isWaymarkError } from '../../src/core/error.ts';
import { textOf } from '../../src/protocol/messages.ts';
import type { Store } from '../../src/store/contract/store.ts';
import { eventually } from '../support/eventually.ts';
import { movableClock } from '../support/movable-clock.ts';
import { startPostgres, type TestPostgres } from '../support/postgres.ts';
import { clockName, type PostgresClock, postgresClock } from '../support/postgres-clock.ts';
import { createCrashApp, openPlace, type Place } from './support/agents.ts';
import { type Journal, openJournal, type Written } from './support/journal.ts';
import { checkTold as checkSurely, type Told as Surely } from './support/retries.ts';

let folder: string;
let postgres: TestPostgres;
let clock: PostgresClock;
let store: Store;
let journal: Journal;
let app: App;
let schemas = 0;
const appClock = movableClock();

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'waymark-faults-'));
  postgres = await startPostgres();
  clock = await postgresClock(postgres.connectionString);
});
afterAll(async () => {
  await clock.close();
  await postgres.stop();
  await rm(folder, { recursive: true, force: true });
});
beforeEach(async () => {
  store = await openPlace(placeOf(`f${schemas}`));
  journal = openJournal(join(folder, `${schemas++}.jsonl`));
  // Recovers expired claims only on request, so that none expires between a heartbeat and a poll.
  app = createCrashApp({ store, clock: appClock.clock, journal, claimTtl, work: false });
  await app.ready();
});
afterEach(() => app.close({ grace: 0 }));

/** Claims expire only when a test moves the clock. */
const claimTtl = 60_000;

const placeOf = (schema: string): Place => ({
  kind: 'postgres',
  at: clock.connectionString,
  schema,
  clockFile: join(folder, 'clock'),
});

/** Lets all abandoned claims expire, and takes their runs over. */
async function expireClaims(): Promise<void> {
  await clock.advance(2 * claimTtl);
  appClock.advance(2 * claimTtl);
  await app.engine.recover();
}

/** Ends every connection to the database, except this one. */
async function cutAll(other: pg.Client): Promise<void> {
  await other.query(
    `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
     WHERE pid <> pg_backend_pid() AND backend_type = 'client backend' AND application_name <> $1`,
    [clockName],
  );
}

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
    const { error, snapshotId } = await app
      .agent('chat')
      .runText(text, { sessionId, throwOnError: false });
    if (error === undefined) return { ...told, ...(snapshotId && { snapshotId }) };
    return { ...told, status: error.status, ...(snapshotId && { lastGood: snapshotId }) };
  } catch (error) {
    return { ...told, status: isWaymarkError(error) ? error.status : String(error) };
  }
}

/** Runs turns on several sessions concurrently until `over` returns true. */
async function takeMany(lanes: number, all: Told[], over: () => boolean): Promise<void> {
  const lane = async (no: number): Promise<void> => {
    for (let turn = 0; !over(); turn++) all.push(await take(`s${no}`, `${no}.${turn} use 1`));
  };
  await Promise.all(Array.from({ length: lanes }, (_, no) => lane(no)));
}

/** Acknowledged turns are saved; others have a clear error, and name only snapshots that exist. */
async function checkTold(all: readonly Told[]): Promise<void> {
  const failed = all.filter(({ snapshotId }) => snapshotId === undefined);
  // An attached turn that was being saved is UNKNOWN when the store stays away for longer than its claim.
  for (const { status } of failed) expect(['UNAVAILABLE', 'UNKNOWN']).toContain(status);
  for (const sessionId of new Set(all.map((told) => told.sessionId))) {
    const head = await store.getSnapshot({ agent: 'chat' }, { sessionId });
    const messages = head?.state?.messages ?? [];
    const texts = messages.filter(({ role }) => role === 'user').map(textOf);
    expect(texts).toEqual([...new Set(texts)]);
    const saved = all.filter((told) => told.sessionId === sessionId && told.snapshotId);
    expect(texts).toEqual(expect.arrayContaining(saved.map(({ text }) => text)));
    const refused = failed.filter(
      (told) => told.sessionId === sessionId && told.status !== 'UNKNOWN',
    );
    expect(texts.filter((text) => refused.some((told) => told.text === text))).toEqual([]);
  }
  for (const { snapshotId, lastGood = snapshotId } of all) {
    if (lastGood === undefined) continue;
    const found = await store.getSnapshot({ agent: 'chat' }, { snapshotId: lastGood });
    expect(found?.status).toBe('succeeded');
  }
}

/** After a fault: every session takes turns again, nothing is left behind, and all is whole. */
async function checkWorks(lanes: number): Promise<void> {
  await expireClaims();
  const again = await Promise.all(
    Array.from({ length: lanes }, (_, no) => take(`s${no}`, `${no} again use 1`)),
  );
  expect(again.filter(({ status }) => status !== undefined)).toEqual([]);
  await expect.poll(() => store.runs?.listRuns()).toEqual([]);
  expect(await store.maintenance?.verify()).toEqual([]);
}

test('any number may open an empty database at once', async () => {
  for (let round = 0; round < 10; round++) {
    const place = placeOf(`new${round}`);
    const stores = await Promise.all(Array.from({ length: 6 }, () => openPlace(place)));
    const opened = await Promise.allSettled(stores.map((each) => each.open?.()));
    await Promise.all(stores.map((each) => each.close?.()));
    expect(opened.filter(({ status }) => status === 'rejected')).toEqual([]);
  }
});

test('connections that are cut in the middle of turns: saved, or UNAVAILABLE and not claimed to be', async () => {
  const other = new pg.Client({ connectionString: postgres.connectionString });
  await other.connect();
  try {
    const cuts = 15;
    let left = cuts;
    const all: Told[] = [];
    let isOver = false;
    const turns = takeMany(4, all, () => left <= 0).finally(() => {
      isOver = true;
    });
    for (; left > 0; left--) {
      // So many turns between two cuts, however fast they are. A lane may wait for a claim that a cut has left behind.
      const enough = all.length + 1 + ((left * 37) % 16);
      await eventually(async () => {
        if (all.length < enough) await clock.advance(2 * claimTtl);
        return all.length >= enough;
      }, 'more turns');
      await cutAll(other);
    }
    await eventually(async () => {
      await clock.advance(2 * claimTtl);
      return isOver;
    }, 'the turns to end');
    await turns;
    const failed = all.filter(({ status }) => status !== undefined);
    console.info(`${cuts} cuts: ${all.length} turns, ${failed.length} of them UNAVAILABLE`);
    expect(all.length).toBeGreaterThan(failed.length);
    await checkTold(all);
    await checkWorks(4);
  } finally {
    await other.end();
  }
});

test('a detached run continues after its connections were cut', async () => {
  const other = new pg.Client({ connectionString: postgres.connectionString });
  await other.connect();
  try {
    const chat = app.agent('chat');
    const connection = chat.streamBidi({ sessionId: 'd' });
    const inputs = ['a use 2', 'b use 2', 'c hold'];
    await Promise.all(inputs.map((text) => connection.sendText(text)));
    const { snapshotId = '' } = await connection.detach();
    for (let cut = 0; cut < 5; cut++) {
      const before = journal.read().length;
      await cutAll(other);
      // Until it has done something again, or is where it is held.
      await eventually(async () => {
        const lines = journal.read();
        if (lines.length > before || lines.some((line) => isAsked(line, 'c hold'))) return;
        await expireClaims();
        throw new Error('The run does not continue.');
      });
    }
    journal.signal('go');
    await eventually(async () => {
      await expireClaims();
      expect((await chat.getSnapshot({ snapshotId }))?.status).toBe('succeeded');
    });
    const { state } = (await chat.getSnapshot({ snapshotId })) ?? {};
    const said = state?.messages?.filter(({ role }) => role === 'user').map(textOf);
    expect(said).toEqual(inputs);
  } finally {
    await other.end();
  }
});

function isAsked(line: Written, what: string): boolean {
  return line.kind === 'asked' && line.what === what;
}

test('a restart of Postgres: turns that begin while it is away are UNAVAILABLE, others are saved when it is back', async () => {
  let isOver = false;
  await take('s0', 'before');
  const all: Told[] = [];
  const saved = (): number => all.filter(({ status }) => status === undefined).length;
  const turns = takeMany(3, all, () => isOver);
  await eventually(() => saved() > 5);
  await postgres.shutDown();
  expect(await take('s9', 'nobody there')).toMatchObject({ status: 'UNAVAILABLE' });
  await postgres.startAgain();
  const before = saved();
  await eventually(async () => {
    // A turn may wait for a claim that was left behind.
    await clock.advance(2 * claimTtl);
    return saved() > before;
  }, 'a turn after the restart');
  isOver = true;
  await turns;
  await checkTold(all);
  await checkWorks(3);
});

const restarts = process.env.LONG === '1' ? 8 : 3;

/** Sends a turn with the same request id until the result is known. */
async function takeSurely(
  sessionId: string,
  text: string,
  { accept, retries }: { readonly accept: boolean; readonly retries: { count: number } },
): Promise<Surely> {
  for (;;) {
    const told = await app
      .agent('chat')
      .runText(text, { sessionId, requestId: `${sessionId} ${text}`, accept, throwOnError: false })
      .then(
        ({ error, snapshotId = '' }) => ({ status: error?.status ?? 'succeeded', snapshotId }),
        (error: unknown) => ({ status: isWaymarkError(error) ? error.status : String(error) }),
      );
    if (told.status !== 'UNAVAILABLE' && told.status !== 'UNKNOWN') {
      return { sessionId, text, ...told };
    }
    // A turn that has failed says so again; one that was not accepted, or is not known, can be sent again.
    if ('snapshotId' in told && told.status === 'UNAVAILABLE') return { sessionId, text, ...told };
    retries.count++;
  }
}

test(`S218 ${restarts} restarts of Postgres, with clients that retry by request id: every acknowledged turn once, no wrong answer`, async () => {
  const all: Surely[] = [];
  const retries = { count: 0 };
  let isOver = false;
  const lane = async (no: number): Promise<void> => {
    for (let turn = 0; !isOver; turn++) {
      const accept = no % 2 === 0;
      all.push(await takeSurely(`s${no}`, `${no}.${turn} use 1`, { accept, retries }));
    }
  };
  const working = Promise.all([0, 1, 2, 3].map(lane));
  for (let restart = 0; restart < restarts; restart++) {
    const enough = all.length + 4 + (restart % 3);
    await eventually(() => all.length >= enough);
    await postgres.shutDown();
    await postgres.startAgain();
    // What was accepted and lost is taken over, by this process as by any other.
    await expireClaims();
  }
  isOver = true;
  await working;
  await expireClaims();
  await eventually(async () => ((await store.runs?.listRuns()) ?? []).every((run) => run.expired));
  const failed = all.filter(({ status }) => status !== 'succeeded');
  console.info(
    `${restarts} restarts: ${all.length} turns, ${failed.length} failed, ${retries.count} retries`,
  );
  await checkSurely(store, all);
}, 1_800_000);
