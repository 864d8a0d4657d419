import { afterAll, beforeAll, expect, test } from 'vitest';
import { createIds } from '../../src/core/id.ts';
import { systemClock } from '../../src/core/time.ts';
import { postgresStore } from '../../src/store/postgres/index.ts';
import { storeContract } from '../../src/testing/contract.ts';
import { type CleanSchemas, cleanSchemas } from '../support/clean-schemas.ts';
import { openPostgres } from '../support/contract-stores.ts';
import { startPostgres, type TestPostgres } from '../support/postgres.ts';
import { type PostgresClock, postgresClock } from '../support/postgres-clock.ts';

let postgres: TestPostgres;
let clock: PostgresClock;
let schemas: CleanSchemas;
beforeAll(async () => {
  postgres = await startPostgres();
  clock = await postgresClock(postgres.connectionString);
  schemas = cleanSchemas(postgres.connectionString);
});
afterAll(async () => {
  await schemas.close();
  await clock.close();
  await postgres.stop();
});

const newId = createIds(systemClock);

storeContract('postgres', () => openPostgres({ clock, schemas }), { runs: 5 });

test('a clock of the database expires claims in every process that uses it, and in no other', async () => {
  const other = await postgresClock(postgres.connectionString);
  // One of its own: other tests have moved theirs.
  const still = await postgresClock(postgres.connectionString);
  const schema = 'two_clocks';
  const open = ({ connectionString }: PostgresClock) =>
    postgresStore({ connectionString, schema, max: 2 });
  const stores = [open(other), open(other), open(still)] as const;
  const scope = { agent: 'a' };
  const request = { runId: newId(), sessionId: 's', from: 'head', mode: 'attached' } as const;
  await stores[0].runs?.claim(scope, { ...request, inputs: [], ttl: 60_000, worker: 'w' });
  const expired = () =>
    Promise.all(
      stores.map(async (store) => (await store.runs?.getRun(scope, request.runId))?.expired),
    );
  expect(await expired()).toEqual([false, false, false]);
  await other.advance(60_000);
  expect(await expired()).toEqual([true, true, false]);
  await Promise.all(stores.map((store) => store.close?.()));
  await other.close();
  await still.close();
});
