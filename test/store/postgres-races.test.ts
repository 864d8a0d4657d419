import pg from 'pg';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type Store, waymark } from '../../src/index.ts';
import { lockKey } from '../../src/store/postgres/dialect.ts';
import { postgresStore } from '../../src/store/postgres/index.ts';
import { eventually } from '../support/eventually.ts';
import { raceForTurns, scope, sessionId, takeTurn } from '../support/expired-turn.ts';
import { startPostgres, type TestPostgres } from '../support/postgres.ts';

let postgres: TestPostgres;
beforeAll(async () => {
  postgres = await startPostgres();
});
afterAll(() => postgres.stop());

/** How often Postgres had to end one of two that waited for each other; what closed connections have counted is in it. */
async function deadlocks(): Promise<number> {
  const client = new pg.Client({ connectionString: postgres.connectionString });
  await client.connect();
  const { rows } = await client.query<{ found: string }>(
    'SELECT sum(deadlocks) AS found FROM pg_stat_database',
  );
  await client.end();
  return Number(rows[0]?.found);
}

test('a session that is taken in the moment in which its slow worker saves continues from what was saved', async () => {
  const stores = Array.from({ length: 4 }, () =>
    postgresStore({ connectionString: postgres.connectionString, max: 2 }),
  );
  await Promise.all(stores.map((store) => store.open?.()));
  await raceForTurns(stores, 100);
  expect(await deadlocks()).toBe(0);
});

test('a commit goes by what the claim has found, and by what is there when that has changed', async () => {
  const { connectionString } = postgres;
  const names: string[] = [];
  const store = postgresStore({
    connectionString,
    schema: 'changed',
    onQuery: (name) => names.push(name),
  });
  const other = new pg.Client({ connectionString });
  await other.connect();
  const turn = async (text: string, change?: string): Promise<readonly string[]> => {
    await takeTurn(store, text, async () => {
      if (change !== undefined) await other.query(change);
      names.length = 0;
    });
    return [...names];
  };
  expect(await turn('a')).toEqual(['commit']);
  expect(await turn('b')).toEqual(['commit']);
  const again = await turn('c', 'UPDATE changed.sessions SET next_index = 7');
  expect(again).toEqual(['commit', 'commit_facts', 'commit']);
  expect(await turn('d')).toEqual(['commit']);
  // As if it had been pruned: there is nothing to continue from.
  const gone = 'UPDATE changed.snapshots SET status = 3 WHERE idx = 8';
  await expect(turn('e', gone)).rejects.toThrow('is not a succeeded snapshot of session "s"');
  const page = await store.timeline?.listSnapshots(scope, sessionId);
  expect(page?.items.map(({ index }) => index)).toEqual([0, 1, 7, 8]);
  await other.end();
  await store.close?.();
});

test('S647: turns with a state, forks, deletions and maintenance of two processes never wait for each other, and leave nothing behind', async () => {
  const { connectionString } = postgres;
  const before = await deadlocks();
  const store = postgresStore({ connectionString, schema: 'pruned' });
  const app = waymark({ store, work: false });
  const agent = app.defineCustomAgent({ name: 'noted' }, async (session) => {
    await session.run(async () => {
      const { length } = session.messages;
      session.updateCustom((state) => ({ ...Object(state), at: length % 7 }));
      if (length % 5 === 4) session.setMessages(session.messages.slice(2));
    });
  });
  const other = postgresStore({ connectionString, schema: 'pruned' });
  let isDone = false;
  const turns = async (name: string): Promise<void> => {
    for (let round = 0; round < 6; round++) {
      const ends = [];
      for (let no = 0; no < 10; no++) {
        ends.push(await agent.runText(`${no}`, { sessionId: name }));
      }
      // It may be pruned by now.
      const fork = await agent.fork(ends[3 + round]?.snapshotId ?? '').catch(() => undefined);
      if (fork !== undefined) await agent.runText('forked', { sessionId: fork.sessionId });
      if (round % 2 === 1) await agent.deleteSession(name);
    }
  };
  const pruning = async (which: Store): Promise<void> => {
    while (!isDone) await which.maintenance?.prune({ keepLast: 3 });
  };
  const collecting = [pruning(store), pruning(other)];
  await Promise.all(['a', 'b', 'c', 'd'].map(turns)).finally(() => {
    isDone = true;
  });
  await Promise.all(collecting);
  expect(await store.maintenance?.verify()).toEqual([]);
  const { items } = await agent.listSessions();
  for (const { sessionId: name } of items) await agent.deleteSession(name);
  expect(await store.maintenance?.verify()).toEqual([]);
  const client = new pg.Client({ connectionString });
  await client.connect();
  for (const table of [
    'snapshots',
    'branches',
    'views',
    'view_refs',
    'messages',
    'blobs',
    'trash',
  ]) {
    const { rows } = await client.query(`SELECT * FROM pruned.${table}`);
    expect(rows, table).toEqual([]);
  }
  await Promise.all([client.end(), app.close(), other.close?.()]);
  expect(await deadlocks()).toBe(before);
});

/** An agent that adds nothing to the message of a turn. */
function plainOn(store: Store) {
  const app = waymark({ store, work: false });
  const agent = app.defineCustomAgent({ name: 'plain' }, async (session) => {
    await session.run(async () => {});
  });
  return { app, agent };
}

async function connected(): Promise<pg.Client> {
  const client = new pg.Client({ connectionString: postgres.connectionString });
  await client.connect();
  return client;
}

/** Waits until another connection waits for a lock. */
async function blocked(on: pg.Client): Promise<void> {
  await eventually(async () => {
    const { rows } = await on.query(
      "SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock'",
    );
    return rows.length > 0;
  }, 'a connection waits for a lock');
}

/** Locks a table that `verify` reads within a transaction, and turns do not. */
async function stopVerify(on: pg.Client, schema: string): Promise<void> {
  await on.query('BEGIN');
  await on.query(`LOCK TABLE ${schema}.views IN ACCESS EXCLUSIVE MODE`);
}

test('S648: with one connection, a turn runs while verify is in a transaction', async () => {
  const { connectionString } = postgres;
  const store = postgresStore({ connectionString, schema: 'single', max: 1 });
  const { app, agent } = plainOn(store);
  await agent.runText('one', { sessionId: 's' });
  const [other, watcher] = [await connected(), await connected()];
  await stopVerify(other, 'single');
  const verifying = store.maintenance?.verify();
  await blocked(watcher);
  // On the same connection it would wait for good.
  await agent.runText('two', { sessionId: 's' });
  await other.query('COMMIT');
  expect(await verifying).toEqual([]);
  await Promise.all([other.end(), watcher.end(), app.close()]);
});

test('S648: maintenance runs while an app keeps a connection of the pool', async () => {
  const { connectionString } = postgres;
  const pool = new pg.Pool({ connectionString });
  const store = postgresStore({ pool, schema: 'used' });
  const { app, agent } = plainOn(store);
  for (const text of ['one', 'two', 'three']) await agent.runText(text, { sessionId: 's' });
  const used = await pool.connect();
  const tasks = Array.from({ length: 12 }, () => store.maintenance?.verify());
  expect(await Promise.all(tasks)).toEqual(tasks.map(() => []));
  expect(await store.maintenance?.prune({ keepLast: 1 })).toEqual({ snapshots: 2, sessions: 0 });
  used.release();
  await app.close();
  await pool.end();
});

test('S647: a document whose last snapshot goes during a collection is collected by the next one', async () => {
  const { connectionString } = postgres;
  const store = postgresStore({ connectionString, schema: 'judged' });
  const app = waymark({ store, work: false });
  const agent = app.defineCustomAgent({ name: 'noted' }, async (session) => {
    await session.run(async () => session.setCustom({ text: 'x'.repeat(100) }));
  });
  const { snapshotId = '' } = await agent.runText('one', { sessionId: 's' });
  const other = new pg.Client({ connectionString });
  await other.connect();
  // Another process removes the snapshot: the document is noted already, so its own note changes nothing.
  await other.query(
    'INSERT INTO judged.trash(kind, row_id) SELECT 1, custom FROM judged.snapshots',
  );
  const plain = app.defineCustomAgent({ name: 'plain' }, async (session) => {
    await session.run(async () => {});
  });
  await plain.runText('one', { sessionId: 'another' });
  await other.query('INSERT INTO judged.trash(kind, row_id) SELECT 0, row_id FROM judged.branches');
  await other.query('DELETE FROM judged.trash WHERE kind = 0 AND row_id = 1');
  await other.query('BEGIN');
  await other.query('DELETE FROM judged.snapshots WHERE custom IS NOT NULL');
  await other.query("UPDATE judged.sessions SET head = NULL, branch_end = NULL WHERE id = 's'");
  await other.query(
    'INSERT INTO judged.trash(kind, row_id) SELECT 1, row_id FROM judged.blobs ON CONFLICT DO NOTHING',
  );
  await store.maintenance?.prune({ keepLast: 5 });
  // The rest is done, and the documents wait.
  const { rows: kinds } = await other.query('SELECT DISTINCT kind FROM judged.trash');
  expect(kinds).toEqual([{ kind: 1 }]);
  await other.query('COMMIT');
  await other.query('INSERT INTO judged.trash(kind, row_id) SELECT 0, row_id FROM judged.branches');
  expect(await store.getSnapshot(scope, { snapshotId })).toBeUndefined();
  expect(await store.maintenance?.verify()).toEqual([]);
  expect((await other.query('SELECT * FROM judged.blobs')).rows).toEqual([]);
  await other.end();
  await app.close();
});

test('S647: a collection of an older version, which holds the documents, is waited for', async () => {
  const { connectionString } = postgres;
  const store = postgresStore({ connectionString, schema: 'older' });
  const names: string[] = [];
  const kit = postgresStore({
    connectionString,
    schema: 'older',
    onQuery: (name) => names.push(name),
  });
  const { app, agent } = plainOn(store);
  for (const text of ['one', 'two']) await agent.runText(text, { sessionId: 's' });
  const other = new pg.Client({ connectionString });
  await other.connect();
  await other.query('BEGIN');
  await other.query(`SELECT pg_advisory_xact_lock(${lockKey('older', 'blobs')})`);
  const pruning = kit.maintenance?.prune({ keepLast: 1 });
  const watcher = new pg.Client({ connectionString });
  await watcher.connect();
  await blocked(watcher);
  expect(names.at(-1)).toBe('collect_share');
  await agent.runText('three', { sessionId: 's' });
  await other.query('COMMIT');
  await pruning;
  expect(await kit.maintenance?.verify()).toEqual([]);
  await Promise.all([other.end(), watcher.end(), kit.close?.(), app.close()]);
});

test('S648: the connection of maintenance is made as those of the pool, waited for, and closed with the store', async () => {
  const { connectionString } = postgres;
  class OwnPool extends pg.Pool {
    constructor(url: string) {
      super({
        connectionString: url,
        max: 1,
        connectionTimeoutMillis: 500,
        idleTimeoutMillis: 0,
      });
      this.on('connect', (client) => void client.query("SET application_name = 'mine'"));
    }
  }
  const pool = new OwnPool(connectionString);
  const store = postgresStore({ pool, schema: 'own' });
  const { app, agent } = plainOn(store);
  await agent.runText('one', { sessionId: 's' });
  const [other, watcher] = [await connected(), await connected()];
  await stopVerify(other, 'own');
  const tasks = [store.maintenance?.verify(), store.maintenance?.prune({ keepLast: 1 })];
  await blocked(watcher);
  // Longer than the pool's own users may wait.
  await new Promise((resolve) => setTimeout(resolve, 700));
  const named = "SELECT pid FROM pg_stat_activity WHERE application_name = 'mine'";
  expect((await watcher.query(named)).rows).toHaveLength(2);
  await other.query('COMMIT');
  await Promise.all(tasks);
  // One that waits for the connection gets an answer when the store is closed, whichever it is.
  await stopVerify(other, 'own');
  const last = Promise.allSettled([store.maintenance?.verify(), store.maintenance?.verify()]);
  await blocked(watcher);
  const closing = app.close();
  await other.query('COMMIT');
  await Promise.all([last, closing]);
  await expect(store.maintenance?.verify()).rejects.toThrow('The store has been closed.');
  await pool.end();
  const isGone = async () => (await watcher.query(named)).rows.length === 0;
  await eventually(isGone, 'the connections end');
  await Promise.all([other.end(), watcher.end()]);
});
