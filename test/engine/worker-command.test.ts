import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { resolve } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { startPostgres, type TestPostgres } from '../support/postgres.ts';
import { detached, openQueueApp } from './support/agents.ts';

const root = resolve(import.meta.dirname, '../..');
let postgres: TestPostgres;
beforeAll(async () => {
  postgres = await startPostgres();
});
afterAll(() => postgres.stop());

/** The command in a process, with what it has said so far. */
function startWorker(file: string, ...options: readonly string[]) {
  const args = ['src/cli/main.ts', 'worker', `test/engine/support/${file}`, ...options];
  const child = spawn(process.execPath, args, {
    cwd: root,
    env: { ...process.env, DATABASE_URL: postgres.connectionString },
  });
  let said = '';
  child.stderr.on('data', (data: Buffer) => {
    said += data.toString();
  });
  return { child, said: () => said };
}

test('waymark worker works on runs until it is told to end, and then lets go of them', async () => {
  const { connectionString } = postgres;
  const server = openQueueApp({ connectionString, work: false });
  await server.app.ready();
  const { child, said } = startWorker('agents-file.ts', '--slots', '2', '--drain', '100');
  await expect.poll(said).toContain('Working on runs');

  const echo = server.app.agent('echo');
  const { snapshotId: quick = '' } = await echo.run(detached('hello'));
  expect((await echo.wait(quick)).status).toBe('succeeded');
  const { snapshotId: long = '' } = await echo.run(detached('{"ms":50,"steps":10000}'));
  for await (const event of echo.watch(long)) if (event.type === 'chunk') break;
  child.kill('SIGTERM');
  const [code] = await once(child, 'exit');
  expect(code).toBe(0);
  expect(said()).toContain('Draining');
  // It is in the queue again, for the next worker.
  expect(await server.engine.status()).toMatchObject({ waiting: 1 });
  expect(await echo.abort(long)).toBe('aborted');
  await server.close(0);
});

test('waymark worker --until-idle drains when it is told to end', async () => {
  const { connectionString } = postgres;
  const server = openQueueApp({ connectionString, work: false });
  await server.app.ready();
  const echo = server.app.agent('echo');
  const { snapshotId: long = '' } = await echo.run(detached('{"ms":50,"steps":10000}'));
  const options = ['--until-idle', '600000', '--drain', '100'];
  const { child, said } = startWorker('agents-file.ts', ...options);
  for await (const event of echo.watch(long)) if (event.type === 'chunk') break;
  child.kill('SIGTERM');
  const [code] = await once(child, 'close');
  expect(code).toBe(0);
  expect(said()).toBe('Draining …\n');
  // It is in the queue again, for the next worker.
  expect(await server.engine.status()).toMatchObject({ waiting: 1 });
  expect(await echo.abort(long)).toBe('aborted');
  await server.close(0);
});

test('waymark worker --until-idle closes the app when it cannot work', async () => {
  const { child, said } = startWorker('broken-queue.ts', '--until-idle', '1000');
  const [code] = await once(child, 'close');
  expect(code).toBe(1);
  expect(said()).toBe('closed\n✗ The queue is away.\n');
});
