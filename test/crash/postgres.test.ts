import { afterAll, beforeAll } from 'vitest';
import { startPostgres, type TestPostgres } from '../support/postgres.ts';
import { type PostgresClock, postgresClock } from '../support/postgres-clock.ts';
import { processSuite } from './support/suite.ts';

let postgres: TestPostgres;
let clock: PostgresClock;
beforeAll(async () => {
  postgres = await startPostgres();
  clock = await postgresClock(postgres.connectionString);
});
afterAll(async () => {
  await clock.close();
  await postgres.stop();
});

processSuite('Postgres', {
  place: (schema) => ({ kind: 'postgres', at: clock.connectionString, schema }),
  advance: (ms) => clock.advance(ms),
  settled: (application) => clock.settled(application),
  processes: 4,
});
