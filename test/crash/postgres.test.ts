import { afterAll, beforeAll } from 'vitest';
import { startPostgres, type TestPostgres } from '../support/postgres.ts';
import { processSuite } from './support/suite.ts';

let postgres: TestPostgres;
beforeAll(async () => {
  postgres = await startPostgres();
}, 120_000);
afterAll(() => postgres.stop());

processSuite('Postgres', {
  place: (schema) => ({ kind: 'postgres', at: postgres.connectionString, schema }),
  processes: 4,
});
