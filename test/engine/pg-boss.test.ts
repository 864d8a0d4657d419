import { afterAll, beforeAll, expect, test } from 'vitest';
import { startPostgres, type TestPostgres } from '../support/postgres.ts';
import { detached, openQueueApp, type QueueApp, type QueueAppOptions } from './support/agents.ts';

let postgres: TestPostgres;
const open: QueueApp[] = [];

beforeAll(async () => {
  postgres = await startPostgres();
});
afterAll(async () => {
  await Promise.all(open.map((each) => each.close(0)));
  await postgres.stop();
});

function start(options: Partial<QueueAppOptions> = {}): QueueApp {
  const made = openQueueApp({ connectionString: postgres.connectionString, ...options });
  open.push(made);
  return made;
}

test('a server that only accepts records a run, and a worker works on it', async () => {
  const server = start({ work: false });
  await server.app.ready();
  const echo = server.app.agent('echo');
  const { snapshotId = '', finishReason } = await echo.run(detached('hello'));
  expect(finishReason).toBe('detached');
  await new Promise((resolve) => setTimeout(resolve, 300));
  expect((await echo.getSnapshot({ snapshotId }))?.status).toBe('pending');
  expect(await server.engine.status()).toMatchObject({ waiting: 1 });

  const worker = start();
  const ended = await echo.wait(snapshotId);
  expect(ended.status).toBe('succeeded');
  expect(ended.state?.messages?.at(-1)?.content).toEqual([{ text: ':hello' }]);
  await worker.close();
  await server.close();
});
