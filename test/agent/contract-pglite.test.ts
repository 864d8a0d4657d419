import { afterAll, beforeAll } from 'vitest';
import { agentContract } from '../../src/testing/agent-contract/agent-contract.ts';
import { pgliteSchemas } from '../support/pglite.ts';

let schemas: Awaited<ReturnType<typeof pgliteSchemas>>;
beforeAll(async () => {
  schemas = await pgliteSchemas();
});
afterAll(() => schemas.close());

agentContract('in process over a PGlite store', () => schemas.open());
