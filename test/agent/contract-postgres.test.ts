import { afterAll, beforeAll } from 'vitest';
import { postgresStore } from '../../src/store/postgres/index.ts';
import { agentContract } from '../../src/testing/agent-contract/agent-contract.ts';
import { type CleanSchemas, cleanSchemas } from '../support/clean-schemas.ts';
import { startPostgres, type TestPostgres } from '../support/postgres.ts';

let postgres: TestPostgres;
let schemas: CleanSchemas;
beforeAll(async () => {
  postgres = await startPostgres();
  schemas = cleanSchemas(postgres.connectionString);
});
afterAll(async () => {
  await schemas.close();
  await postgres.stop();
});

agentContract('in process over Postgres', async () => {
  const { connectionString } = postgres;
  const schema = schemas.take();
  const open = () => postgresStore({ connectionString, schema, max: 4 });
  return { store: open(), reopen: async () => open(), close: () => schemas.giveBack(schema) };
});
