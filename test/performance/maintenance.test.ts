import { cpSync, mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync, StatementSync } from 'node:sqlite';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { memoryStore, type Store, systemClock, waymark } from 'waymark';
import { fileStore } from 'waymark/file';
import { postgresStore } from 'waymark/postgres';
import { sqliteStore } from 'waymark/sqlite';
import type { MaintenanceOptions } from 'waymark/store';
import { createKit } from '../../src/testing/store-contract/kit.ts';
import { startPostgres } from '../support/postgres.ts';

// Maintenance shares the thread with turns: it is done in steps, between which everything else runs.

let directory: string;
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'waymark-maintenance-'));
});
afterEach(() => rmSync(directory, { recursive: true, force: true }));

const sessions = 60;

/** What is done at most without letting others use the thread. */
interface AtOnce {
  /** Rows that SQLite returned, and the characters of their texts. */
  rows: number;
  characters: number;
  /** Texts that were hashed. */
  hashed: number;
}

const crypto: typeof import('node:crypto') = createRequire(import.meta.url)('node:crypto');

/** Counts what is done in one turn of the event loop, and gives the most of each, and the sums. */
async function countTurns(work: () => Promise<unknown>): Promise<{ most: AtOnce; sum: AtOnce }> {
  const none = (): AtOnce => ({ rows: 0, characters: 0, hashed: 0 });
  const [most, sum] = [none(), none()];
  let now = none();
  let isDone = false;
  const endTurn = (): void => {
    for (const key of ['rows', 'characters', 'hashed'] as const) {
      most[key] = Math.max(most[key], now[key]);
      sum[key] += now[key];
    }
    now = none();
    if (!isDone) setImmediate(endTurn);
  };
  const { all } = StatementSync.prototype;
  const { hash } = crypto;
  const counting = function (this: StatementSync, ...values: unknown[]): object[] {
    const rows: object[] = Reflect.apply(all, this, values);
    now.rows += rows.length;
    for (const row of rows) {
      for (const value of Object.values(row)) {
        if (typeof value === 'string') now.characters += value.length;
      }
    }
    return rows;
  };
  Object.assign(StatementSync.prototype, { all: counting });
  Object.assign(crypto, {
    hash(...args: Parameters<typeof hash>) {
      now.hashed++;
      return hash(...args);
    },
  });
  setImmediate(endTurn);
  try {
    await work();
  } finally {
    isDone = true;
    endTurn();
    StatementSync.prototype.all = all;
    Object.assign(crypto, { hash });
  }
  return { most, sum };
}

async function fill(store: Store): Promise<ReturnType<typeof createKit>> {
  const kit = createKit({ store, close: async () => {} });
  for (let no = 0; no < sessions; no++) {
    for (const text of ['one', 'two', 'three']) await kit.turn(`s${no}`, { text });
  }
  return kit;
}

test('S342: verify, prune and key rotation of SQLite let turns run after each session or batch of rows', async () => {
  const key = (byte: number): Uint8Array => new Uint8Array(32).fill(byte);
  const path = join(directory, 'maintenance.db');
  const queries: string[] = [];
  const old = sqliteStore(path, { encryption: { key: key(1) } });
  await fill(old);
  await old.close?.();
  const store = sqliteStore(path, {
    encryption: { keys: [key(2), key(1)] },
    onQuery: (name) => queries.push(name),
  });
  const { maintenance } = createKit({ store, close: async () => {} });
  const reports: (readonly [done: number, total: number | undefined])[] = [];
  const onProgress: MaintenanceOptions['onProgress'] = (done, { total }) =>
    void reports.push([done, total]);
  await maintenance.verify({ onProgress });
  // Each session has one branch.
  expect(reports.at(-1)).toEqual([2 * sessions, 2 * sessions]);
  reports.length = 0;
  await maintenance.prune({ keepLast: 1 }, undefined, { onProgress });
  expect(reports.at(-1)).toEqual([sessions, sessions]);
  // A batch has at most 200 rows; each table is at least one.
  queries.length = 0;
  const batches: number[] = [];
  await store.rotateKeys({
    onProgress: () => void batches.push(queries.splice(0).length),
  });
  expect(batches.length).toBeGreaterThanOrEqual(8);
  expect(Math.max(...batches)).toBeLessThanOrEqual(210);
  expect(await maintenance.verify()).toEqual([]);
  await store.close?.();
});

test('S647: a transaction of Postgres that removes documents holds no session or branch', async () => {
  const postgres = await startPostgres();
  const queries: string[] = [];
  const store = postgresStore({
    connectionString: postgres.connectionString,
    onQuery: (name) => queries.push(name),
  });
  const app = waymark({ store, work: false });
  const agent = app.defineCustomAgent({ name: 'noted' }, async (session) => {
    await session.run(async () => session.setCustom({ at: session.messages.length }));
  });
  for (const text of ['one', 'two', 'three']) await agent.runText(text, { sessionId: 's' });
  queries.length = 0;
  const { maintenance } = createKit({ store, close: async () => {} });
  await maintenance.prune({ keepLast: 1 });
  const transactions: string[][] = [];
  for (const name of queries) {
    // Each transaction begins with one of these.
    if (name === 'prune_used' || name === 'collect_alone') transactions.push([]);
    transactions.at(-1)?.push(name);
  }
  const documents = transactions.filter((names) => names.includes('collect_own'));
  expect(documents.length).toBeGreaterThanOrEqual(1);
  // All turns with a state wait for it: it must not wait for one of their sessions.
  expect(documents.flat().filter((name) => /session|branch/.test(name))).toEqual([]);
  expect(await maintenance.verify()).toEqual([]);
  await app.close();
  await postgres.stop();
});

test.each([
  ['a changed message', `UPDATE messages SET body = replace(body, 'two', 'new') WHERE id = $id`],
  ['a message that is no JSON', `UPDATE messages SET body = 'damaged' WHERE id = $id`],
  ['a message that is gone', 'DELETE FROM messages WHERE id = $id'],
])('S651: %s is a fault of its session alone, although others are read with it', async (_, sql) => {
  const path = join(directory, 'damaged.db');
  const filled = sqliteStore(path);
  await fill(filled);
  await filled.close?.();
  const db = new DatabaseSync(path);
  const messages = db.prepare(`SELECT id FROM messages WHERE body LIKE '%two%' ORDER BY id`).all();
  // What triggers call. The checksum of the row is another fault, which names no session.
  db.function('waymark_row_sum', () => 0);
  // The question and its answer of the second turn have the word.
  db.prepare(sql).run({ $id: Number(messages[60]?.id) });
  db.close();
  const store = sqliteStore(path);
  const { maintenance } = createKit({ store, close: async () => {} });
  const faults = (await maintenance.verify()).filter((fault) => fault.sessionId !== undefined);
  expect(new Set(faults.map((fault) => fault.sessionId))).toEqual(new Set(['s30']));
  // The second and the third turn have it.
  expect(faults.length).toBe(2);
  await store.close?.();
});

test('S651: a state that is a change of itself is reported', async () => {
  const path = join(directory, 'circular.db');
  const filled = sqliteStore(path);
  const app = waymark({ store: filled, work: false });
  const agent = app.defineCustomAgent({ name: 'noted' }, async (session) => {
    await session.run(async () => {
      const note = 'n'.repeat(5000);
      session.updateCustom(() => ({ note, at: session.messages.length }));
    });
  });
  for (const text of ['one', 'two', 'three']) await agent.runText(text, { sessionId: 's' });
  await app.close();
  const db = new DatabaseSync(path);
  db.function('waymark_row_sum', () => 0);
  const { changes } = db.prepare('UPDATE blobs SET prev = row_id WHERE prev IS NOT NULL').run();
  expect(changes).toBe(2);
  db.close();
  const store = sqliteStore(path);
  const { maintenance } = createKit({ store, close: async () => {} });
  const faults = (await maintenance.verify()).filter((fault) => fault.sessionId === 's');
  expect(faults.map(({ message }) => message.slice(0, 35))).toEqual([
    'A stored state is a change of itsel',
    'A stored state is a change of itsel',
  ]);
  await store.close?.();
});

test('S649: the thread that checks the whole file of SQLite writes the log back', async () => {
  const path = join(directory, 'long.db');
  const store = sqliteStore(path, { durability: 'normal' });
  const kit = createKit({ store, close: async () => {} });
  await kit.turn('first', { text: 'hello' });
  await kit.maintenance.verify();
  expect(sessionsWithoutLog(path)).toBe(1);
  for (let no = 1; no < 20; no++) await kit.turn(`s${no}`, { text: 'hello' });
  expect(sessionsWithoutLog(path)).toBe(1);
  await kit.maintenance.verify();
  expect(sessionsWithoutLog(path)).toBe(20);
  await store.close?.();
});

/** How many sessions the file of a database has without its log. */
function sessionsWithoutLog(path: string): number {
  const copy = `${path}.copy`;
  cpSync(path, copy);
  const db = new DatabaseSync(copy);
  const count = db.prepare('SELECT count(*) AS count FROM sessions').get()?.count;
  db.close();
  return Number(count);
}

test('S342: large states that are not needed any more are removed a few at a time', async () => {
  const store = sqliteStore(join(directory, 'large.db'), { durability: 'normal' });
  const app = waymark({ store, work: false });
  const agent = app.defineCustomAgent({ name: 'large' }, async (session) => {
    await session.run(async () => {
      session.setCustom({ text: String(session.messages.length).repeat(200_000) });
    });
  });
  for (let no = 0; no < 30; no++) await agent.runText('next', { sessionId: 's' });
  const { maintenance } = createKit({ store, close: async () => {} });
  const prune = await countTurns(() => maintenance.prune({ keepLast: 1 }));
  expect(prune.sum.characters).toBeGreaterThan(29 * 200_000);
  expect(prune.most.characters).toBeLessThan(1_500_000);
  expect(await maintenance.verify()).toEqual([]);
  await app.close();
});

/** A session with many turns. */
async function longSession(store: Store, turns: number, textOf: (turn: number) => string) {
  const app = waymark({ store, work: false });
  const agent = app.defineCustomAgent({ name: 'long' }, async (session) => {
    await session.run(async () => {
      session.addMessages({ role: 'model', content: [{ text: 'ok' }] });
    });
  });
  const turn = (text: string) => agent.runText(text, { sessionId: 's' });
  for (let no = 0; no < turns; no++) await turn(textOf(no));
  return { app, agent, turn };
}

test('S342 S641: one long session is verified and pruned in steps, each of a bounded number of rows and characters', async () => {
  const turns = 450;
  const store = sqliteStore(join(directory, 'long.db'), { durability: 'normal' });
  const long = 'x'.repeat(60_000);
  const { app } = await longSession(store, turns, (no) => (no % 100 === 99 ? long : `turn ${no}`));
  const { maintenance } = createKit({ store, close: async () => {} });
  const verify = await countTurns(() => maintenance.verify());
  expect(verify.sum.rows).toBeGreaterThan(3 * turns);
  expect(verify.most.rows).toBeLessThanOrEqual(400);
  expect(verify.most.hashed).toBeLessThanOrEqual(600);
  expect(verify.most.characters).toBeLessThan(250_000);
  // The history is read once: with 4 long texts, it has about 300,000 characters.
  expect(verify.sum.characters).toBeLessThan(1_000_000);
  const prune = await countTurns(() => maintenance.prune({ keepLast: 1 }));
  expect(prune.sum.rows).toBeGreaterThan(turns);
  expect(prune.most.rows).toBeLessThanOrEqual(650);
  expect(await maintenance.verify()).toEqual([]);
  await app.close();
});

test('S342: what to prune of several sessions is chosen in steps of a bounded number of snapshots', async () => {
  const store = sqliteStore(join(directory, 'several.db'), { durability: 'normal' });
  const { turn, maintenance } = createKit({ store, close: async () => {} });
  for (let no = 0; no < 10; no++) {
    for (let count = 0; count < 150; count++) await turn(`s${no}`);
  }
  // How often the policy was asked, which is once for each session, in one turn of the event loop.
  let [asked, most, sum, isDone] = [0, 0, 0, false];
  const endTurn = (): void => {
    most = Math.max(most, asked);
    sum += asked;
    asked = 0;
    if (!isDone) setImmediate(endTurn);
  };
  setImmediate(endTurn);
  await maintenance.prune({
    get keepLast() {
      asked++;
      return 150;
    },
  });
  isDone = true;
  endTurn();
  expect(sum).toBeGreaterThanOrEqual(10);
  expect(most).toBeLessThanOrEqual(5);
  await store.close?.();
});

test('S525: a session that continues while it is pruned stays whole', async () => {
  const store = sqliteStore(join(directory, 'busy.db'), { durability: 'normal' });
  const { app, agent, turn } = await longSession(store, 250, (no) => `turn ${no}`);
  const { maintenance } = createKit({ store, close: async () => {} });
  let isDone = false;
  const pruning = maintenance.prune({ keepLast: 5 }).finally(() => {
    isDone = true;
  });
  let turns = 250;
  while (!isDone) {
    await turn(`meanwhile ${turns++}`);
    await new Promise((resolve) => setImmediate(resolve));
  }
  expect((await pruning).snapshots).toBeGreaterThanOrEqual(245);
  const session = await agent.getSession('s');
  expect(session?.state?.messages).toHaveLength(2 * turns);
  expect(await maintenance.verify()).toEqual([]);
  await app.close();
});

test('S525: snapshots that are restored, labelled or continued from after prune looked at them stay', async () => {
  const path = join(directory, 'race.db');
  const actions: (() => Promise<unknown>)[] = [];
  const running: Promise<unknown>[] = [];
  const store = sqliteStore(path, {
    durability: 'normal',
    onQuery(name) {
      if (name !== 'prune_snapshots') return;
      // After this query, which is in a transaction.
      const after = new Promise((resolve) => setImmediate(resolve));
      running.push(...actions.splice(0).map((act) => after.then(act)));
    },
  });
  const kit = createKit({ store, close: async () => {} });
  const { turn, scope, timeline, maintenance } = kit;
  for (const text of ['one', 'two', 'three', 'four', 'five']) {
    for (const session of ['restored', 'labelled', 'continued']) await turn(session, { text });
  }
  const idOf = async (session: string): Promise<string> => {
    const { items } = await timeline.listSnapshots(scope, session);
    return items.find((each) => each.index === 1)?.snapshotId ?? '';
  };
  const ids = {
    restored: await idOf('restored'),
    labelled: await idOf('labelled'),
    continued: await idOf('continued'),
  };
  actions.push(
    () => timeline.restore(scope, ids.restored),
    () => timeline.label(scope, ids.labelled, 'keep'),
    async () => {
      const head = (await timeline.getSession(scope, 'continued'))?.headId ?? '';
      await timeline.restore(scope, ids.continued);
      await turn('continued', { status: 'failed' });
      await timeline.restore(scope, head);
    },
  );
  await maintenance.prune({ keepLast: 1 });
  expect(running).toHaveLength(3);
  await Promise.all(running);
  for (const snapshotId of Object.values(ids)) {
    expect(await store.getSnapshot(scope, { snapshotId })).toBeDefined();
  }
  expect(await maintenance.verify()).toEqual([]);
  await store.close?.();
});

test('S342: a key rotation that was stopped is completed by the next one', async () => {
  const key = (byte: number): Uint8Array => new Uint8Array(32).fill(byte);
  const path = join(directory, 'rotation.db');
  const old = sqliteStore(path, { encryption: { key: key(1) } });
  await fill(old);
  await old.close?.();
  const both = sqliteStore(path, { encryption: { keys: [key(2), key(1)] } });
  const controller = new AbortController();
  const stopped = both.rotateKeys({
    signal: controller.signal,
    onProgress: (done) => {
      if (done === 1) controller.abort();
    },
  });
  await expect(stopped).rejects.toMatchObject({ status: 'CANCELLED' });
  expect(await both.rotateKeys()).toBeGreaterThan(0);
  await both.close?.();
  const renewed = sqliteStore(path, { encryption: { key: key(2) } });
  expect(await renewed.maintenance?.verify()).toEqual([]);
  await renewed.close?.();
});

test('S342: prune of files holds the lock for one session at a time', async () => {
  const { maintenance } = await fill(fileStore(directory, { durability: 'normal' }));
  const steps: number[] = [];
  const onProgress = (done: number): void => void steps.push(done);
  await maintenance.prune({ keepLast: 1 }, undefined, { onProgress });
  expect(steps.length).toBe(sessions);
});

test.each([
  ['memory', () => memoryStore()],
  ['files', () => fileStore(directory, { durability: 'normal' })],
])('S641: in %s, what forks share is hashed once', async (_, open) => {
  const store = open();
  const { app, agent } = await longSession(store, 100, (no) => `turn ${no}`);
  const head = (await agent.getSession('s'))?.headId ?? '';
  const { maintenance } = createKit({ store, close: async () => {} });
  const alone = await countTurns(() => maintenance.verify());
  for (let no = 0; no < 10; no++) await agent.fork(head);
  const together = await countTurns(() => maintenance.verify());
  // Two for each message.
  expect(alone.sum.hashed).toBeGreaterThanOrEqual(400);
  expect(together.sum.hashed - alone.sum.hashed).toBeLessThan(100);
  await app.close();
});

/** Does something to a session as soon as `breaths` turns of the event loop have passed; resolves to whether the task had ended before. */
async function after(breaths: number, task: Promise<unknown>, act: () => Promise<unknown>) {
  let isDone = false;
  const ended = task.finally(() => {
    isDone = true;
  });
  for (let count = 0; count < breaths && !isDone; count++) {
    await new Promise((resolve) => setImmediate(resolve));
  }
  const wasDone = isDone;
  await act();
  const isStillRunning = !isDone;
  await ended;
  return { wasDone, isStillRunning };
}

test('S741: turns in the same and in other sessions are saved while files are verified or pruned', async () => {
  const store = fileStore(directory, { durability: 'normal' });
  const { maintenance, turn, textsOf } = await fill(store);
  const tasks = [() => maintenance.verify(), () => maintenance.prune({ keepLast: 2 })];
  for (const [at, task] of tasks.entries()) {
    const running = after(2, task(), async () => {
      await turn('s0', { text: `meanwhile ${at}` });
      await turn('s59', { text: `meanwhile ${at}` });
      await turn(`other ${at}`, { text: 'hello' });
    });
    expect((await running).wasDone).toBe(false);
  }
  for (const sessionId of ['s0', 's59']) {
    expect(await textsOf({ sessionId })).toHaveLength(2 * (3 + tasks.length));
  }
  expect(await maintenance.verify()).toEqual([]);
  await store.close?.();
});

test.each([
  ['many turns', 510, 'ok', 3],
  ['long turns', 1, 'x'.repeat(40_000), 5],
])(
  'S525: in files, what another process has added after %s is pruned as well',
  async (_, turns, text, added) => {
    const [store, other] = [fileStore(directory), fileStore(directory)];
    const [ours, theirs] = [store, other].map((each) => {
      const app = waymark({ store: each, work: false });
      const agent = app.defineCustomAgent({ name: 'long' }, async (session) => {
        await session.run(async () => {
          session.addMessages({ role: 'model', content: [{ text }] });
        });
      });
      return { app, agent };
    });
    for (let no = 0; no < turns; no++) await ours?.agent.runText('one', { sessionId: 's' });
    for (let no = 0; no < added; no++) await theirs?.agent.runText('two', { sessionId: 's' });
    expect(await store.maintenance?.prune({ keepLast: 1 })).toMatchObject({
      snapshots: turns + added - 1,
    });
    const head = (await ours?.agent.getSession('s'))?.headId ?? '';
    await ours?.agent.label(head, 'kept');
    for (const side of [ours, theirs]) {
      expect((await side?.agent.getSnapshot(head))?.state?.messages).toHaveLength(
        2 * (turns + added),
      );
      expect((await side?.agent.listSnapshots('s'))?.items.map((each) => each.snapshotId)).toEqual([
        head,
      ]);
    }
    expect(await other.maintenance?.verify()).toEqual([]);
    await Promise.all([ours?.app.close(), theirs?.app.close()]);
  },
);

test('S642: sessions in files that are deleted by a policy or with their owner are removed one tree at a time', async () => {
  const clock = { at: 1_000_000 };
  const store = fileStore(directory, {
    durability: 'normal',
    clock: { ...systemClock, now: () => clock.at },
  });
  const owned = { agent: 'chat', owner: 'ada' };
  const { maintenance, turn, timeline } = createKit({ store, close: async () => {} }, owned);
  for (let no = 0; no < 100; no++) await turn(`s${no}`, { text: 'one' });
  clock.at += 60_000;
  const policy = { olderThan: 30_000, dropSessions: true };
  const pruned = maintenance.prune(policy, owned, {});
  const { isStillRunning } = await after(3, pruned, () => turn('s7', { text: 'two' }));
  expect(isStillRunning).toBe(true);
  // The session that continued stays, without the snapshot that is too old.
  expect(await pruned).toEqual({ snapshots: 100, sessions: 99 });
  expect((await timeline.listSessions(owned)).items.map((each) => each.sessionId)).toEqual(['s7']);
  expect(await maintenance.verify()).toEqual([]);
  for (let no = 0; no < 100; no++) await turn(`s${no}`, { text: 'again' });
  const steps: number[] = [];
  const controller = new AbortController();
  const stopped = maintenance.eraseOwner(owned.owner, {
    signal: controller.signal,
    onProgress(done) {
      steps.push(done);
      if (done >= 32) controller.abort();
    },
  });
  await expect(stopped).rejects.toMatchObject({ status: 'CANCELLED' });
  expect(steps).toEqual(Array.from({ length: 32 }, (_, at) => at + 1));
  expect((await timeline.listSessions(owned, { limit: 200 })).items).toHaveLength(68);
  expect(await maintenance.eraseOwner(owned.owner)).toBe(68);
  expect((await timeline.listSessions(owned)).items).toEqual([]);
  expect(readdirSync(directory)).not.toContain('trash');
  expect(await maintenance.verify()).toEqual([]);
  await store.close?.();
});

test('S643: verify of files continues from the cursor of a call that was stopped', async () => {
  const store = fileStore(directory, { durability: 'normal' });
  const { maintenance } = await fill(store);
  let cursor: string | undefined;
  let done = 0;
  const controller = new AbortController();
  const stopped = maintenance.verify({
    signal: controller.signal,
    onProgress(count, progress) {
      done = count;
      cursor = progress.cursor;
      if (count >= 3 * 20) controller.abort();
    },
  });
  await expect(stopped).rejects.toMatchObject({ status: 'CANCELLED' });
  let rest = 0;
  const options = { ...(cursor !== undefined && { cursor }) };
  const onProgress = (count: number): void => {
    rest = count;
  };
  expect(await maintenance.verify({ ...options, onProgress })).toEqual([]);
  expect(done).toBe(3 * 20);
  expect(rest).toBe(3 * (sessions - 20));
  await expect(maintenance.verify({ cursor: '17' })).rejects.toMatchObject({
    status: 'INVALID_ARGUMENT',
  });
  await store.close?.();
});

/** The most items that a task reported in one turn of the event loop. */
async function mostAtOnce(
  work: (onProgress: NonNullable<MaintenanceOptions['onProgress']>) => Promise<unknown>,
): Promise<number> {
  let [most, before, now] = [0, 0, 0];
  let isDone = false;
  const endTurn = (): void => {
    most = Math.max(most, now - before);
    before = now;
    if (!isDone) setImmediate(endTurn);
  };
  setImmediate(endTurn);
  await work((done) => {
    now = done;
  });
  isDone = true;
  endTurn();
  return most;
}

test('S342: verify, prune and erasure in memory let turns run after each session or batch of sessions', async () => {
  const owned = { agent: 'kept', owner: 'someone' };
  const kit = createKit({ store: memoryStore(), close: async () => {} }, owned);
  const { maintenance, turn } = kit;
  for (let no = 0; no < 300; no++) {
    for (const text of ['one', 'two', 'three']) await turn(`s${no}`, { text });
  }
  const verified = await mostAtOnce((onProgress) => maintenance.verify({ onProgress }));
  // A turn of the event loop may see the end of one step and the beginning of the next, and a session has three snapshots.
  expect(verified).toBeLessThanOrEqual(6);
  const pruned = await mostAtOnce((onProgress) =>
    maintenance.prune({ keepLast: 1 }, owned, { onProgress }),
  );
  expect(pruned).toBeLessThanOrEqual(2);
  const erased = await mostAtOnce((onProgress) =>
    maintenance.eraseOwner(owned.owner, { onProgress }),
  );
  expect(erased).toBeGreaterThan(0);
  expect(erased).toBeLessThanOrEqual(128);
  expect((await kit.timeline.listSessions(owned)).items).toEqual([]);
});

test('S525: in memory, a session that is used after prune looked at it stays', async () => {
  const clock = { at: 1_000_000 };
  const store = memoryStore({ clock: { ...systemClock, now: () => clock.at } });
  const { maintenance, turn, timeline, scope } = createKit({ store, close: async () => {} });
  for (let no = 0; no < 100; no++) await turn(`s${no}`, { text: 'one' });
  clock.at += 60_000;
  const policy = { olderThan: 30_000, dropSessions: true };
  let used: Promise<unknown> | undefined;
  const report = await maintenance.prune(policy, scope, {
    onProgress(done) {
      if (done === 50) used = turn('s7', { text: 'two' });
    },
  });
  await used;
  expect(report.sessions).toBe(99);
  expect((await timeline.listSessions(scope)).items.map((each) => each.sessionId)).toEqual(['s7']);
  expect(await maintenance.verify()).toEqual([]);
});
