import { describe, expect, test } from 'vitest';
import { createIds } from '../../../src/core/id.ts';
import { systemClock } from '../../../src/core/time.ts';
import { type D1Binding, d1Store } from '../../../src/store/d1/index.ts';
import type { SqlStore } from '../../../src/store/sql/sql-store.ts';
import { createTurns, plainTurn, type Turns } from '../../support/store-workload.ts';

const newId = createIds(systemClock);

/** A database with a clock that is ahead: stored times are the database's. */
export function withClock(real: D1Binding, ahead: () => number): D1Binding {
  return {
    prepare: (sql) =>
      real.prepare(
        sql.replaceAll("unixepoch('subsec')", `(unixepoch('subsec') + ${ahead() / 1000})`),
      ),
    batch: (statements) => real.batch(statements),
  };
}

/** The database for a process that ends with a batch, before it is sent or before its answer comes. */
function cutOff(db: D1Binding, at: number, when: When) {
  let batches = 0;
  const own: D1Binding = {
    prepare: (sql) => db.prepare(sql),
    async batch(statements) {
      batches++;
      if (batches < at) return await db.batch(statements);
      if (batches === at && when === 'after') await db.batch(statements);
      throw new Error('D1_ERROR: Network connection lost.');
    },
  };
  return { own, isCut: () => batches >= at };
}

type When = 'before' | 'after';

const rowsOf = async (db: D1Binding, ...texts: readonly string[]) =>
  (await db.batch(texts.map((sql) => db.prepare(sql)))).map(({ results }) => results);

/** The rows of all tables of the store, in an order. */
async function dump(db: D1Binding): Promise<readonly string[]> {
  const [names = []] = await rowsOf(
    db,
    `SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite%' AND substr(name, 1, 1) <> '_'`,
  );
  const tables = names.map((row) => (row as { readonly name: string }).name);
  const found = await rowsOf(db, ...tables.map((name) => `SELECT * FROM "${name}"`));
  return found
    .flatMap((rows, at) => rows.map((row) => `${tables[at]} ${JSON.stringify(row)}`))
    .sort();
}

interface Filled {
  readonly turns: Turns;
  readonly snapshots: readonly string[];
  readonly document: unknown;
}

/** A session of five turns that is found by its text, and a background run that has expired. */
async function fill(db: D1Binding): Promise<Filled> {
  const store = d1Store(db);
  const turns = createTurns(store);
  await turns.take(5, plainTurn);
  const { scope, sessionId } = turns;
  await store.timeline?.listSessions(scope, { query: 'the' });
  const items = (await store.timeline?.listSnapshots(scope, sessionId))?.items ?? [];
  const document = await store.maintenance?.exportSession(scope, sessionId);
  const request = { runId: newId(), sessionId: 'expired', from: 'head', inputs: [] } as const;
  await store.runs?.claim(scope, { ...request, mode: 'accepted', ttl: 1, worker: 'gone' });
  await store.close?.();
  return { turns, snapshots: items.map(({ snapshotId }) => snapshotId), document };
}

async function* bytes() {
  yield new Uint8Array(1_500_000).fill(7);
}

/** Writes that read what they have just written. */
const writes: Readonly<Record<string, (store: SqlStore, given: Filled) => Promise<unknown>>> = {
  'deletes a session': async ({ timeline }, { turns }) =>
    await timeline?.deleteSession(turns.scope, turns.sessionId),
  'deletes old snapshots': async ({ maintenance }) => await maintenance?.prune({ keepLast: 1 }),
  'forks a session': async ({ timeline }, { turns, snapshots }) => {
    const target = { sessionId: newId(), snapshotId: newId() };
    await timeline?.fork(turns.scope, snapshots[2] ?? '', target);
  },
  'imports a session': async ({ maintenance }, { turns, document }) =>
    await maintenance?.importSession({ ...turns.scope, owner: 'new' }, document as never),
  'takes over a run': async ({ runs }, { turns }) =>
    await runs?.takeOver({ agents: [turns.scope.agent], worker: 'w', ttl: 60_000, limit: 5 }),
  'stores a file': async ({ files }, { turns }) =>
    await files?.write({ scope: turns.scope }, bytes()),
};

/** Tests of transactions that take several batches. */
export function d1Transactions(database: () => D1Binding): void {
  for (const [name, write] of Object.entries(writes)) {
    for (const when of ['before', 'after'] as const) {
      test(`a process that ${name} and ends ${when} any batch leaves nothing half done`, async () => {
        const db = database();
        const given = await fill(db);
        const length = given.turns.base()?.state.history.length;
        for (let at = 1; ; at++) {
          const before = await dump(db);
          const { own, isCut } = cutOff(db, at, when);
          const store = d1Store(own);
          const error = await write(store, given).catch((thrown: unknown) => thrown);
          await store.close?.();
          if (!isCut()) {
            // Only an import that was done, and whose answer was lost, is refused the second time.
            if (error instanceof Error) {
              expect([when, error]).toMatchObject(['after', { status: 'ALREADY_EXISTS' }]);
            }
            break;
          }
          // Another process comes later.
          const next = d1Store(withClock(db, () => 20_000));
          const { scope, sessionId } = given.turns;
          const head = await next.getSnapshot(scope, { sessionId });
          expect(await rowsOf(db, 'SELECT owner FROM _waymark_lock')).toEqual([[{ owner: null }]]);
          const after = await dump(db);
          if (after.join('\n') !== before.join('\n')) {
            // What was done was a transaction of its own.
            expect(await next.maintenance?.verify()).toEqual([]);
            expect([undefined, length]).toContain(head?.state?.messages?.length);
          }
          await next.close?.();
          expect(at).toBeLessThan(200);
        }
      });
    }
  }

  describe('a transaction that is under way', () => {
    test('is not seen by a reader before it ends, and other writes wait for it', async () => {
      const db = database();
      const { turns, snapshots } = await fill(db);
      const { scope, sessionId } = turns;
      const held = Promise.withResolvers<void>();
      const reached = Promise.withResolvers<void>();
      const own: D1Binding = {
        prepare: (sql) => db.prepare(sql),
        async batch(statements) {
          const results = await db.batch(statements);
          const [[lock] = []] = await rowsOf(db, 'SELECT owner FROM _waymark_lock');
          if ((lock as { owner: string | null } | undefined)?.owner !== null) {
            reached.resolve();
            await held.promise;
          }
          return results;
        },
      };
      const store = d1Store(own);
      const other = d1Store(db);
      await other.open?.();
      await store.open?.();
      const restored = store.timeline?.restore(scope, snapshots[4] ?? '', {});
      await reached.promise;
      const order: string[] = [];
      const read = other.getSnapshot(scope, { sessionId }).then((found) => {
        order.push('read');
        return found;
      });
      const label = other.timeline?.label(scope, snapshots[3] ?? '', 'mine').then(() => {
        order.push('labelled');
      });
      await systemClock.sleep(50);
      expect(order).toEqual([]);
      held.resolve();
      const head = await restored;
      await label;
      expect((await read)?.snapshotId).toBe(head?.snapshotId);
      expect(await other.maintenance?.verify()).toEqual([]);
    });

    test('is undone when it stands still, and then begins again', async () => {
      const db = database();
      const { turns, snapshots } = await fill(db);
      const { scope } = turns;
      const other = d1Store(withClock(db, () => 60_000));
      const target = { sessionId: newId(), snapshotId: newId() };
      await other.timeline?.fork(scope, snapshots[2] ?? '', target);
      let undone = 0;
      const own: D1Binding = {
        prepare: (sql) => db.prepare(sql),
        async batch(statements) {
          const results = await db.batch(statements);
          const [[lock] = []] = await rowsOf(db, 'SELECT owner FROM _waymark_lock');
          const { owner } = lock as { owner: string | null };
          if (owner !== null && undone < 2) {
            undone++;
            await other.timeline?.label(scope, snapshots[3] ?? '', `label ${undone}`);
          }
          return results;
        },
      };
      const store = d1Store(own);
      expect(await store.timeline?.deleteSession(scope, target.sessionId)).toBe(true);
      expect(undone).toBe(2);
      expect(await other.timeline?.getSession(scope, target.sessionId)).toBe(undefined);
      expect(await other.maintenance?.verify()).toEqual([]);
    });
  });

  test('many stores on one database lose nothing', async () => {
    const db = database();
    const stores = Array.from({ length: 4 }, () => d1Store(db));
    const all = stores.map((store) => createTurns(store));
    await Promise.all(
      stores.map(async (store, at) => {
        const turns = all[at];
        for (let n = 0; n < 4 && turns !== undefined; n++) {
          await turns.take(1, plainTurn);
          const { items = [] } =
            (await store.timeline?.listSnapshots(turns.scope, turns.sessionId)) ?? {};
          const target = { sessionId: newId(), snapshotId: newId() };
          await store.timeline?.fork(turns.scope, items[0]?.snapshotId ?? '', target);
          await store.timeline?.deleteSession(turns.scope, target.sessionId);
        }
      }),
    );
    const [store] = stores;
    for (const { scope, sessionId } of all) {
      const read = await store?.getSnapshot(scope, { sessionId });
      expect(read?.state?.messages).toHaveLength(8);
    }
    expect((await store?.timeline?.listSessions({ agent: 'bench' }))?.items).toHaveLength(4);
    expect(await store?.maintenance?.verify()).toEqual([]);
  });

  describe('a database that cannot be used', () => {
    const failing = (db: D1Binding, message: string): D1Binding => ({
      prepare: (sql) => db.prepare(sql),
      batch: () => Promise.reject(new Error(message)),
    });

    for (const [message, status] of [
      ['D1_ERROR: Network connection lost.', 'UNAVAILABLE'],
      ['D1_ERROR: D1 DB is overloaded. Requests queued for too long.', 'UNAVAILABLE'],
      [
        'D1_ERROR: D1 DB storage operation exceeded timeout which caused object to be reset.',
        'UNAVAILABLE',
      ],
      ['D1_ERROR: Exceeded maximum DB size.', 'RESOURCE_EXHAUSTED'],
      ['D1_ERROR: database or disk is full: SQLITE_FULL', 'RESOURCE_EXHAUSTED'],
      ['D1_ERROR: attempt to write a readonly database: SQLITE_READONLY', 'FAILED_PRECONDITION'],
      ['D1_ERROR: database disk image is malformed: SQLITE_CORRUPT', 'DATA_LOSS'],
    ] as const) {
      test(`answers "${message}"`, async () => {
        const db = database();
        await expect(d1Store(failing(db, message)).open?.()).rejects.toMatchObject({ status });
        const store = d1Store(db);
        await store.open?.();
        expect(await store.maintenance?.verify()).toEqual([]);
      });
    }

    test('has tables of another program', async () => {
      const db = database();
      await rowsOf(db, 'CREATE TABLE invoices(id INTEGER)');
      await expect(d1Store(db).open?.()).rejects.toMatchObject({
        status: 'FAILED_PRECONDITION',
        message: expect.stringContaining('invoices'),
      });
      expect(
        await rowsOf(db, `SELECT name FROM sqlite_schema WHERE name LIKE '_waymark%'`),
      ).toEqual([[]]);
    });

    test('is of a newer version: a store that opens refuses it, and one that is open goes on', async () => {
      const db = database();
      const { turns } = await fill(db);
      const older = d1Store(db);
      await older.open?.();
      await rowsOf(db, 'UPDATE meta SET format = format + 98');
      await expect(d1Store(db).open?.()).rejects.toMatchObject({
        status: 'FAILED_PRECONDITION',
        message: expect.stringMatching(/format \d+.*Update waymark/),
      });
      expect(await older.timeline?.deleteSession(turns.scope, turns.sessionId)).toBe(true);
      expect(await older.maintenance?.verify()).toEqual([]);
    });

    test('is opened for the first time by several at once', async () => {
      const db = database();
      const stores = Array.from({ length: 4 }, () => d1Store(db));
      await Promise.all(stores.map((store) => store.open?.()));
      const turns = stores.map((store) => createTurns(store));
      await Promise.all(turns.map((each) => each.take(1, plainTurn)));
      expect(await stores[0]?.maintenance?.verify()).toEqual([]);
    });

    test('gets a value that is too large for it', async () => {
      const { scope, sessionId } = (await fill(database())).turns;
      const metadata = { long: 'é'.repeat(1_100_000) };
      await expect(
        d1Store(database()).timeline?.updateSession(scope, sessionId, { metadata } as never),
      ).rejects.toThrow();
    });

    test('is no D1 database', () => {
      expect(() => d1Store(undefined as never)).toThrow('env.DB');
      expect(() => d1Store({} as never)).toThrow('env.DB');
      expect(() => d1Store(database(), { encrypt: 1 } as never)).toThrow('Unknown');
    });
  });
}
