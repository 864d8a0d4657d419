import { afterAll, beforeAll } from 'vitest';
import { postgresStore } from '../../src/store/postgres/index.ts';
import { agentContract } from '../../src/testing/agent-contract/agent-contract.ts';
import { startPostgres, type TestPostgres } from '../support/postgres.ts';

let postgres: TestPostgres;
beforeAll(async () => {
  postgres = await startPostgres();
});
afterAll(() => postgres.stop());

let schemas = 0;

agentContract('in process over Postgres', async () => {
  const { connectionString } = postgres;
  const schema = `agents_${++schemas}`;
  const open = () => postgresStore({ connectionString, schema, max: 4 });
  return { store: open(), reopen: async () => open() };
});
