import { afterAll, beforeAll, expect, test } from 'vitest';
import { createClient } from '../../src/client/client.ts';
import { serve } from '../../src/server/serve.ts';
import { scriptedModel } from '../../src/testing/scripted-model.ts';
import { openApp, type TestApp } from '../agent/support/kit.ts';

const usage = { inputTokens: 8, outputTokens: 2, totalTokens: 10 };
let app: TestApp;
let server: Awaited<ReturnType<typeof serve>>;

beforeAll(async () => {
  app = openApp({ price: (_, { totalTokens = 0 }) => ({ USD: totalTokens * 3 }) });
  const model = scriptedModel(Array.from({ length: 9 }, () => ({ text: 'ok', usage })));
  app.defineAgent({ name: 'chat', model });
  server = await serve(app, {
    port: 0,
    auth: ({ headers }) => ({ principal: headers.get('authorization') ?? 'nobody' }),
  });
});
afterAll(async () => {
  await server.close();
  await app.close({ grace: 0 });
});

const as = (owner: string) =>
  createClient({ url: server.url, headers: { authorization: owner } }).agent('chat');

test('S382 a caller reads what it has spent, in a session or in all, and nothing of others', async () => {
  const ann = as('ann');
  const { sessionId, usage: used } = await ann.run('a');
  expect(used).toMatchObject({ ...usage, cost: { USD: 30 } });
  await ann.run('b');
  expect(await ann.getUsage()).toEqual({
    calls: 2,
    usage: { inputTokens: 16, outputTokens: 4, totalTokens: 20, cost: { USD: 60 } },
  });
  expect(await ann.getUsage({ sessionId, by: 'model' })).toMatchObject({
    calls: 1,
    usage: { cost: { USD: 30 } },
    items: [{ key: 'scripted', calls: 1, usage: { totalTokens: 10 } }],
  });
  expect(await as('bob').getUsage({ sessionId })).toEqual({ calls: 0, usage: {} });
  expect(await ann.getUsage({ since: '2999-01-01' })).toEqual({ calls: 0, usage: {} });
  await expect(ann.getUsage({ since: 'yesterday' })).rejects.toMatchObject({
    status: 'INVALID_ARGUMENT',
  });
  await expect(ann.getUsage({ by: 'moon' as 'day' })).rejects.toMatchObject({
    status: 'INVALID_ARGUMENT',
  });
});
