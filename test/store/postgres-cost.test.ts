import pg from 'pg';
import { afterAll, beforeAll } from 'vitest';
import { systemClock } from '../../src/core/clock.ts';
import { createIds } from '../../src/core/id.ts';
import { postgresStore } from '../../src/store/postgres/index.ts';
import { startPostgres, type TestPostgres } from '../support/postgres.ts';
import { type MeasuredStore, storeCosts } from '../support/store-cost.ts';

let postgres: TestPostgres;
let pool: pg.Pool;
beforeAll(async () => {
  postgres = await startPostgres();
  pool = new pg.Pool({ connectionString: postgres.connectionString, max: 4 });
}, 60_000);
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
  toolTurns: 1_000_000,
  overhead: 1024,
});
