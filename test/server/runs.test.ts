import { expect, test } from 'vitest';
import { z } from 'zod';
import { client } from '../../src/client/index.ts';
import { memoryStore, waymark } from '../../src/index.ts';
import { type ServeOptions, serve } from '../../src/server/index.ts';

/** An agent that says how far it is, and then waits for its end. */
async function openServer(options: ServeOptions = {}) {
  const app = waymark({ store: memoryStore() });
  const gate = Promise.withResolvers<void>();
  app.defineCustomAgent(
    {
      name: 'digger',
      status: z.object({ done: z.number(), of: z.number() }),
      transform: {
        chunk: ({ status, ...chunk }) =>
          status === undefined ? chunk : { ...chunk, status: hide(status) },
      },
    },
    async (session, { respond }) => {
      await session.run(async () => {
        await respond.status({ done: 1, of: 3, secret: 'x' } as { done: number; of: number });
        await gate.promise;
      });
    },
  );
  const server = await serve(app, { port: 0, log: () => {}, grace: 100, ...options });
  return {
    url: server.url,
    finish: () => gate.resolve(),
    async [Symbol.asyncDispose]() {
      gate.resolve();
      await server.close();
      await app.close({ grace: 100 });
    },
  };
}

function hide(status: unknown): { done: number } {
  return { done: (status as { done: number }).done };
}

const dig = { message: { role: 'user', content: [{ text: 'dig' }] }, detach: true } as const;
const input = { ...dig, message: { ...dig.message, content: [...dig.message.content] } };

test('open runs are listed with their last status, as it may leave, until they end', async () => {
  await using server = await openServer();
  const digger = client({ url: server.url, agent: 'digger' });
  expect(await digger.listRuns()).toEqual({ items: [] });
  const { snapshotId = '', sessionId } = await digger.run(input);
  await expect
    .poll(async () => (await digger.listRuns()).items)
    .toEqual([
      {
        snapshotId,
        sessionId,
        agent: 'digger',
        mode: 'detached',
        attempt: 1,
        inputs: 1,
        inputsDone: 0,
        createdAt: expect.any(String),
        heartbeatAt: expect.any(String),
        expired: false,
        stopping: false,
        status: { done: 1 },
      },
    ]);
  server.finish();
  await digger.wait(snapshotId);
  expect(await digger.listRuns()).toEqual({ items: [] });
});

test('nobody sees another principal’s runs', async () => {
  await using server = await openServer({
    auth: (request) => ({ principal: request.headers.get('authorization') ?? 'nobody' }),
  });
  const as = (authorization: string) =>
    client({ url: server.url, agent: 'digger', headers: { authorization } });
  await as('ann').run(input);
  expect((await as('ann').listRuns()).items).toHaveLength(1);
  expect(await as('bob').listRuns()).toEqual({ items: [] });
});

test('S470 open runs are listed page by page, oldest first, and all of them without a limit', async () => {
  await using server = await openServer();
  const digger = client({ url: server.url, agent: 'digger' });
  const started: string[] = [];
  for (let n = 0; n < 3; n++) started.push((await digger.start('dig')).id);
  const all = await digger.listRuns();
  expect(all.items.map(({ snapshotId }) => snapshotId).sort()).toEqual(started.sort());
  expect(all.next).toBeUndefined();
  const first = await digger.listRuns({ limit: 2 });
  expect(first.items).toHaveLength(2);
  const rest = await digger.listRuns({ limit: 2, cursor: String(first.next) });
  expect(rest.next).toBeUndefined();
  expect([...first.items, ...rest.items].map(({ snapshotId }) => snapshotId)).toEqual(
    all.items.map(({ snapshotId }) => snapshotId),
  );
  expect(await digger.listDeadRuns({ limit: 1 })).toEqual({ items: [] });
  await expect(digger.listRuns({ cursor: 'x' })).rejects.toMatchObject({
    status: 'INVALID_ARGUMENT',
  });
  server.finish();
});
