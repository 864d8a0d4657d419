import pg from 'pg';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { waymark } from 'waymark';
import { postgresStore } from 'waymark/postgres';
import { eventually } from '../support/eventually.ts';
import { startPostgres, type TestPostgres } from '../support/postgres.ts';

// A table with millions of rows must never be read from one end to the other by a turn. In a small database Postgres prefers to do just
// that; told not to, it still does where no index fits. Its own counters tell, also of statements within functions.

let postgres: TestPostgres;
let admin: pg.Pool;
beforeAll(async () => {
  postgres = await startPostgres();
  admin = new pg.Pool({ connectionString: postgres.connectionString, max: 1 });
});
afterAll(async () => {
  await admin.end();
  await postgres.stop();
});

const schema = 'plans';

/** Tables that are read as a whole: one row; and where sessions are deleted, runs that are open or failed. */
const small = ['dead_runs', 'journal', 'meta'];

/** Resolves when the processes of the server that worked for the store have ended: only then their counters are complete. */
async function connectionsEnd(): Promise<void> {
  await eventually(async () => {
    const { rows } = await admin.query<{ count: string }>(
      `SELECT COUNT(*) AS count FROM pg_stat_activity WHERE application_name = 'plans'`,
    );
    return rows[0]?.count === '0';
  }, 'the connections of the store end');
}

/** How often each table has been read as a whole. */
async function wholeReads(): Promise<ReadonlyMap<string, number>> {
  await connectionsEnd();
  const { rows } = await admin.query<{ relname: string; seq_scan: string }>(
    'SELECT relname, seq_scan FROM pg_stat_user_tables WHERE schemaname = $1',
    [schema],
  );
  return new Map(rows.map((row) => [row.relname, Number(row.seq_scan)]));
}

function open() {
  const pool = new pg.Pool({
    connectionString: postgres.connectionString,
    application_name: 'plans',
    options: '-c enable_seqscan=off',
    max: 3,
  });
  const store = postgresStore({ pool, schema });
  const app = waymark({ store, work: false });
  const agent = app.defineCustomAgent({ name: 'plans' }, async (session) => {
    await session.run(async () => {
      session.addMessages({ role: 'model', content: [{ text: 'an answer' }] });
      session.updateCustom(() => ({ now: crypto.randomUUID() }));
      session.addArtifacts({ name: 'file', parts: [{ text: 'x'.repeat(5000) }] });
    });
  });
  const close = async (): Promise<void> => {
    await app.close();
    await pool.end();
  };
  return { store, agent, close };
}

test('S526: turns, reads, lists, branches and retention find their rows by an index', async () => {
  const first = open();
  await first.agent.runText('hello', { sessionId: 'zero' });
  await first.close();
  const before = await wholeReads();

  const { store, agent, close } = open();
  const ids: string[] = [];
  for (const sessionId of ['one', 'two', 'three']) {
    for (const text of ['first', 'second', 'third']) {
      const { snapshotId } = await agent.run(text, {
        sessionId,
        requestId: `${sessionId}-${text}`,
      });
      ids.push(snapshotId ?? '');
    }
  }
  await agent.getSession('zero');
  await agent.getSession('one', { messages: { last: 2 } });
  await agent.listSnapshots('one');
  await agent.listSessions({ limit: 2 });
  await agent.restore(ids[0] ?? '');
  await agent.runText('a different answer', { sessionId: 'one' });
  await agent.fork(ids[4] ?? '', { sessionId: 'fork' });
  await agent.runText('on the fork', { sessionId: 'fork' });
  await store.maintenance?.prune({ keepLast: 1 });
  await agent.deleteSession('three');
  await close();

  const after = await wholeReads();
  const read = [...after].filter(([table, count]) => count > (before.get(table) ?? 0));
  expect(read.map(([table]) => table).sort()).toEqual(small);
});

test('S650: maintenance finds the few rows that differ by an index, where most are alike', async () => {
  const schema = 'alike';
  const open = () => {
    const pool = new pg.Pool({
      connectionString: postgres.connectionString,
      application_name: 'plans',
    });
    const store = postgresStore({ pool, schema });
    const close = async (): Promise<void> => {
      await store.close?.();
      await pool.end();
    };
    return { store, close };
  };
  const first = open();
  const agent = waymark({ store: first.store, work: false }).defineCustomAgent(
    { name: 'alike' },
    async (session) => {
      await session.run(async () => {
        const isRare = session.id === 'rare';
        session.updateCustom(() => ({ turn: isRare ? session.messages.length : 0 }));
      });
    },
  );
  const turns = 300;
  for (let turn = 0; turn < turns; turn++) await agent.runText('hello', { sessionId: `s${turn}` });
  // Now Postgres knows of one document that every snapshot has.
  await admin.query('VACUUM ANALYZE');
  for (let turn = 0; turn < turns; turn++) await agent.runText('hello', { sessionId: 'rare' });
  await first.close();

  const rowsRead = async (): Promise<readonly [all: number, byIndex: number]> => {
    await connectionsEnd();
    const { rows } = await admin.query<{ all: string; by_index: string }>(
      `SELECT SUM(t.seq_tup_read) AS all, (SELECT SUM(i.idx_tup_read) FROM pg_stat_user_indexes i
         WHERE i.schemaname = $1 AND i.relname IN ('snapshots', 'blobs')) AS by_index
       FROM pg_stat_user_tables t WHERE t.schemaname = $1 AND t.relname IN ('snapshots', 'blobs')`,
      [schema],
    );
    return [Number(rows[0]?.all), Number(rows[0]?.by_index)];
  };
  const [all, byIndex] = await rowsRead();
  const { store, close } = open();
  expect(await store.maintenance?.verify()).toEqual([]);
  await store.maintenance?.prune({ keepLast: 1 });
  expect(await store.maintenance?.verify()).toEqual([]);
  await close();
  // As a whole, tables are only read to be compared with their indexes, once in each `verify`. By plans for rows that are alike, 148,000 rows were read.
  const [allAfter, byIndexAfter] = await rowsRead();
  expect(allAfter - all).toBeLessThan(8 * turns);
  // 16,000 rows. Parents were looked for among all snapshots of the session, of which Postgres expects one: that was 61,000.
  expect(byIndexAfter - byIndex).toBeLessThan(100 * turns);
});
