import { afterAll, beforeAll, expect, test } from 'vitest';
import { startPostgres, type TestPostgres } from '../support/postgres.ts';

let postgres: TestPostgres;
beforeAll(async () => {
  postgres = await startPostgres();
  process.env.DATABASE_URL = postgres.connectionString;
});
afterAll(() => postgres.stop());

test('the example of a deployment works on a background run', async () => {
  const { app, counter, engine } = await import('../../deploy/agents.ts');
  await app.ready();
  const message = { role: 'user' as const, content: [{ text: 'one two three' }] };
  const { snapshotId = '' } = await counter.run({ message, detach: true });
  const { state } = await counter.wait(snapshotId);
  expect(state?.messages?.at(-1)?.content).toEqual([{ text: '3 words' }]);
  expect(await engine.deadLetters()).toEqual([]);
  await app.close();
});
