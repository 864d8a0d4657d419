import { afterAll, beforeAll } from 'vitest';
import { pgBossEngine } from '../../src/engine/pg-boss/index.ts';
import { type CleanSchemas, cleanSchemas } from '../support/clean-schemas.ts';
import { openPostgres } from '../support/contract-stores.ts';
import { pgliteSchemas } from '../support/pglite.ts';
import { startPostgres, type TestPostgres } from '../support/postgres.ts';
import { type PostgresClock, postgresClock } from '../support/postgres-clock.ts';
import { scheduleSuite } from './support/schedule-suite.ts';

let postgres: TestPostgres;
let clock: PostgresClock;
let schemas: CleanSchemas;
let pglite: Awaited<ReturnType<typeof pgliteSchemas>>;
beforeAll(async () => {
  postgres = await startPostgres();
  clock = await postgresClock(postgres.connectionString);
  schemas = cleanSchemas(postgres.connectionString);
  pglite = await pgliteSchemas();
});
afterAll(async () => {
  await pglite.close();
  await schemas.close();
  await clock.close();
  await postgres.stop();
});

scheduleSuite('PGlite', () => pglite.open());
scheduleSuite('Postgres', () => openPostgres({ clock, schemas }));

let queues = 0;
scheduleSuite(
  'Postgres with pg-boss',
  async () => {
    queues++;
    return await openPostgres({ clock, schemas });
  },
  () =>
    pgBossEngine({
      connectionString: postgres.connectionString,
      schema: `queue_${queues}`,
      max: 2,
    }),
);
