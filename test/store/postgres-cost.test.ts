import pg from 'pg';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { waymark } from '../../src/app.ts';
import { createIds } from '../../src/core/id.ts';
import { systemClock } from '../../src/core/time.ts';
import { postgresStore } from '../../src/store/postgres/index.ts';
import { scriptedModel } from '../../src/testing/scripted-model.ts';
import { startPostgres, type TestPostgres } from '../support/postgres.ts';
import { type MeasuredStore, storeCosts } from '../support/store-cost.ts';
import { createTurns, plainTurn } from '../support/store-workload.ts';

let postgres: TestPostgres;
let pool: pg.Pool;
beforeAll(async () => {
  // A vacuum adds maps of free and visible space to the tables, whenever it comes.
  postgres = await startPostgres({ settings: { autovacuum: 'off' } });
  pool = new pg.Pool({ connectionString: postgres.connectionString, max: 4 });
});
afterAll(async () => {
  await pool.end();
  await postgres.stop();
});

const newId = createIds(systemClock);
const tables = ['sessions', 'branches', 'views', 'messages', 'blobs', 'snapshots', 'runs'];

async function open(): Promise<MeasuredStore> {
  const schema = `s${newId().replaceAll('-', '').slice(0, 24)}`;
  let names: string[] = [];
  const store = postgresStore({ pool, schema, onQuery: (name) => names.push(name) });
  return {
    store,
    queries() {
      const seen = names;
      names = [];
      return seen;
    },
    async rows() {
      const counts = tables.map((table) => `(SELECT COUNT(*) FROM ${schema}.${table}) AS ${table}`);
      const { rows } = await pool.query(`SELECT ${counts.join(', ')}`);
      return Object.fromEntries(tables.map((table) => [table, Number(rows[0][table])]));
    },
    async size() {
      const { rows } = await pool.query(
        `SELECT SUM(pg_total_relation_size(c.oid)) AS size FROM pg_class c
         JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = $1 AND c.relkind = 'r'`,
        [schema],
      );
      return Number(rows[0].size);
    },
    async close() {
      await store.close?.();
      await pool.query(`DROP SCHEMA ${schema} CASCADE`);
    },
  };
}

storeCosts('the Postgres store', open, {
  queriesPerTurn: 2,
  // 56 KB of it are the indexes of tables that are empty: the dead-letter queue and the request ids.
  // 32 KB of it are the empty tables and indexes of the search, 16 KB those of what was spent, 16 KB those of reservations, 8 KB the
  // empty index of what waits, 96 KB the empty tables and indexes of memory, 32 KB those of effects.
  toolTurns: 1_259_648,
  overhead: 1024,
});

// A connection keeps the plans it made, and may have made them when a table held a few rows: read as a whole, it would be
// read as a whole by every later turn as well.
test('a turn reads no table as a whole, whatever size the tables had when it was planned', async () => {
  const single = new pg.Pool({ connectionString: postgres.connectionString, max: 1 });
  const store = postgresStore({ pool: single, schema: 'planned' });
  const reads = async (): Promise<Record<string, number>> => {
    await single.query('SELECT pg_stat_force_next_flush()');
    const { rows } = await single.query(
      "SELECT relname, seq_scan FROM pg_stat_user_tables WHERE schemaname = 'planned'",
    );
    return Object.fromEntries(rows.map(({ relname, seq_scan }) => [relname, Number(seq_scan)]));
  };
  const turns = createTurns(store);
  await turns.take(3, plainTurn);
  await single.query('ANALYZE');
  await turns.take(10, plainTurn);
  const before = await reads();
  await turns.take(20, plainTurn);
  expect(await reads()).toEqual(before);
  await store.close?.();
  await single.query('DROP SCHEMA planned CASCADE');
  await single.end();
});

test('a write waits for the disk if it must outlive a power cut, and nothing after it is changed', async () => {
  const store = postgresStore({ pool, schema: 'awaited' });
  await store.open?.();
  const client = await pool.connect();
  const shown = async (): Promise<string> =>
    (await client.query('SHOW synchronous_commit')).rows[0].synchronous_commit;
  const { rows: found } = await client.query(
    `SELECT p.proname AS name FROM pg_proc p JOIN pg_namespace n ON n.oid = p.pronamespace
     WHERE n.nspname = 'awaited' AND p.proname LIKE 'write%'`,
  );
  const [{ name }] = found;
  const seen: string[] = [];
  for (const durable of [false, true]) {
    await client.query('BEGIN');
    await client.query(`SELECT awaited.${name}('{}', '{}', '{}', $1)`, [durable]);
    seen.push(await shown());
    await client.query('COMMIT');
    seen.push(await shown());
  }
  client.release();
  expect(seen).toEqual(['off', 'on', 'on', 'on']);
  await store.close?.();
  await pool.query('DROP SCHEMA awaited CASCADE');
});

test('S690 a model call under budgets takes two round trips: one to reserve, one to settle', async () => {
  const names: string[] = [];
  const store = postgresStore({ pool, schema: 'budgeted', onQuery: (name) => names.push(name) });
  const app = waymark({ store, work: false, price: () => ({ USD: 1 }) });
  const model = scriptedModel({ patterns: [], otherwise: 'x' });
  const limits = { session: { tokens: 9_999_999 }, owner: { cost: { USD: 99 } } };
  const agent = app.defineAgent({ name: 'a', model, limits });
  await agent.runText('warm', { sessionId: 's' });
  names.length = 0;
  await agent.runText('a', { sessionId: 's' });
  // The two sums are those before the turn begins. A slow turn may also write events.
  const sums = expect.stringMatching(/^spend_sums/);
  const ofBudgets = names.filter((name) => name.startsWith('spend_'));
  expect(ofBudgets).toEqual([sums, sums, 'spend_reserve', 'spend_add_all']);
  await app.close();
  await pool.query('DROP SCHEMA budgeted CASCADE');
});

test('S216: a first turn, and a turn under a request id, take as many round trips as any other', async () => {
  const names: string[] = [];
  const store = postgresStore({ pool, schema: 'keyed', onQuery: (name) => names.push(name) });
  const app = waymark({ store, work: false });
  const model = scriptedModel({ patterns: [], otherwise: 'x' });
  const agent = app.defineAgent({ name: 'a', model });
  await agent.runText('warm', { sessionId: 'warm' });
  names.length = 0;
  // S273: the title comes with the commit.
  await agent.runText('a', { sessionId: 's' });
  expect(names).toEqual(['claim', 'commit']);
  names.length = 0;
  await agent.runText('b', { sessionId: 's' });
  expect(names).toEqual(['claim', 'commit']);
  names.length = 0;
  await agent.runText('c', { sessionId: 's', requestId: 'c' });
  expect(names).toEqual(['claim', 'commit']);
  // Another process takes the turns in between.
  const other = waymark({ store: postgresStore({ pool, schema: 'keyed' }), work: false });
  await other.defineAgent({ name: 'a', model }).runText('d', { sessionId: 's' });
  names.length = 0;
  await agent.runText('e', { sessionId: 's' });
  // The state that the other process has written is read, by a statement each for the snapshot and its messages.
  expect(names.filter((name) => name === 'claim' || name.startsWith('commit'))).toEqual([
    'claim',
    'commit',
  ]);
  await other.close();
  await app.close();
  await pool.query('DROP SCHEMA keyed CASCADE');
});
