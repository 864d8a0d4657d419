import { afterAll, beforeAll } from 'vitest';
import { systemClock } from '../../src/core/clock.ts';
import { createIds } from '../../src/core/id.ts';
import { postgresStore } from '../../src/store/postgres/index.ts';
import { type OpenedStore, storeContract } from '../../src/testing/contract.ts';
import { startPostgres, type TestPostgres } from '../support/postgres.ts';

let postgres: TestPostgres;
beforeAll(async () => {
  postgres = await startPostgres();
}, 60_000);
afterAll(() => postgres.stop());

const newId = createIds(systemClock);

async function openSchema(): Promise<OpenedStore> {
  const { connectionString } = postgres;
  const schema = `s${newId().replaceAll('-', '').slice(0, 24)}`;
  let store = postgresStore({ connectionString, schema, max: 4 });
  return {
    store,
    async reopen() {
      await store.close?.();
      store = postgresStore({ connectionString, schema, max: 4 });
      await store.open?.();
      return store;
    },
    close: async () => store.close?.(),
  };
}

storeContract('postgres', openSchema, { runs: process.env.LONG === '1' ? 500 : 10 });
