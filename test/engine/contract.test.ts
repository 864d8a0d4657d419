import pg from 'pg';
import { afterAll, beforeAll } from 'vitest';
import { localEngine, memoryStore, waymark } from 'waymark';
import { pgBossEngine } from 'waymark/pg-boss';
import { postgresStore } from 'waymark/postgres';
import { engineContract } from 'waymark/testing/contract';
import { startPostgres, type TestPostgres } from '../support/postgres.ts';

engineContract('local', async () => {
  const store = memoryStore();
  return {
    // The store is shared, and must outlive each of them.
    createApp: ({ work }) =>
      waymark({
        store: { ...store, close: async () => {} },
        engine: localEngine(),
        work,
        claimTtl: 500,
      }),
    close: async () => {},
  };
});

let postgres: TestPostgres;
let count = 0;
beforeAll(async () => {
  postgres = await startPostgres();
});
afterAll(() => postgres.stop());

engineContract(
  'pg-boss',
  async () => {
    const { connectionString } = postgres;
    const pools: pg.Pool[] = [];
    const schema = `contract_${count++}`;
    return {
      createApp({ work }) {
        const pool = new pg.Pool({ connectionString, max: 6 });
        pool.on('error', () => {});
        pools.push(pool);
        const store = postgresStore({ pool, schema });
        return waymark({ store, engine: pgBossEngine({ pool, schema: `${schema}_queue` }), work });
      },
      async close() {
        await Promise.all(pools.map((pool) => pool.end()));
      },
    };
  },
  { dispatches: true },
);
