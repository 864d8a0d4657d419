import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { type RunningServer, serve } from '../../src/server/index.ts';
import { post } from '../server/kit.ts';
import { endProcesses } from '../support/child-process.ts';
import { eventually } from '../support/eventually.ts';
import { hostileRequests, hostileSchemas } from '../support/hostile-schemas.ts';
import { startPostgres, type TestPostgres } from '../support/postgres.ts';
import { openQueueApp, type QueueApp } from './support/agents.ts';
import { startChild } from './support/processes.ts';

let postgres: TestPostgres;
let opened: QueueApp;
let server: RunningServer;
const agents = ['chat'];
beforeAll(async () => {
  postgres = await startPostgres();
  const { connectionString } = postgres;
  opened = openQueueApp({ connectionString, work: false, agents });
  await opened.app.ready();
  server = await serve(opened.app, {
    port: 0,
    log: () => {},
    openai: { allow: ['tools'] },
    limits: { requestsPerMinute: 100_000, backgroundRunsPerPrincipal: 1_000 },
  });
});
afterEach(endProcesses);
afterAll(async () => {
  await server.close();
  await opened.close(0);
  await postgres.stop();
});

test('S660 three workers on one Postgres stay up with background runs that have hostile schemas', async () => {
  const { connectionString } = postgres;
  const workers = await Promise.all(
    [1, 2, 3].map(() => startChild({ role: 'worker', connectionString, agents })),
  );
  const chat = opened.app.agent('chat');
  let accepted = 0;
  for (const hostile of hostileSchemas) {
    for (const { path, body } of hostileRequests(hostile)) {
      // A turn of AG-UI has a caller who waits.
      if (path.startsWith('/agui')) continue;
      const { input } = body as { input?: object };
      const inBackground =
        typeof input === 'object'
          ? { input: { ...input, detach: true } }
          : { ...body, background: true };
      const response = await post(`${server.url}${path}`, inBackground);
      const text = await response.text();
      expect([200, 202, 400], text).toContain(response.status);
      if (response.status !== 400) accepted++;
    }
  }
  expect(accepted).toBeGreaterThan(100);
  await eventually(async () => (await chat.listRuns()).items.length === 0, 'the end of all runs');
  expect((await chat.listDeadRuns()).items).toEqual([]);
  expect(await Promise.all(workers.map((each) => each.end('SIGTERM')))).toEqual(
    workers.map(() => ({ code: 0, signal: null })),
  );
});
