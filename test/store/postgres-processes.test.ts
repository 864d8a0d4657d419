import { afterAll, beforeAll } from 'vitest';
import { startPostgres, type TestPostgres } from '../support/postgres.ts';
import { storeProcesses } from '../support/store-processes.ts';

let postgres: TestPostgres;
beforeAll(async () => {
  postgres = await startPostgres();
});
afterAll(() => postgres.stop());

let count = 0;

async function share() {
  const { connectionString } = postgres;
  return {
    shared: { kind: 'postgres', connectionString, schema: `s${count++}` } as const,
    close: async () => {},
  };
}

// Much less on a quiet machine; two busy cores run a database and four processes here.
storeProcesses('one Postgres schema', share, { processes: 4 });
