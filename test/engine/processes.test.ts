import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { createClient } from '../../src/client/index.ts';
import { serve } from '../../src/server/index.ts';
import { command } from '../cli/support/command.ts';
import { startPostgres, type TestPostgres } from '../support/postgres.ts';
import { detached, openQueueApp, type QueueApp } from './support/agents.ts';
import { endChildren, startChild } from './support/processes.ts';

let postgres: TestPostgres;
let server: QueueApp;

beforeAll(async () => {
  postgres = await startPostgres();
  server = openQueueApp({ connectionString: postgres.connectionString, work: false });
  await server.app.ready();
});
afterEach(endChildren);
afterAll(async () => {
  await server.close(0);
  await postgres.stop();
});

const worker = (drainMs = 0) =>
  startChild({ role: 'worker', connectionString: postgres.connectionString, drainMs });

/** Begins a run, and resolves when somebody works on it. */
async function beginRun(text: string): Promise<string> {
  const echo = server.app.agent('echo');
  const { snapshotId = '' } = await echo.run(detached(text));
  for await (const event of echo.watch(snapshotId)) if (event.type === 'chunk') break;
  return snapshotId;
}

test('a run whose worker is killed goes on in another within 15 seconds', async () => {
  const held = await mkdtemp(join(tmpdir(), 'waymark-held-'));
  const first = await worker();
  const runId = await beginRun(JSON.stringify({ steps: 3, waitWhile: held }));
  const second = await worker();
  first.kill('SIGKILL');
  await rm(held, { recursive: true });
  const killedAt = Date.now();
  const echo = server.app.agent('echo');
  const kinds: string[] = [];
  for await (const event of echo.watch(runId)) {
    if (event.type === 'reset') kinds.push(`reset after ${Date.now() - killedAt}`);
    if (event.type === 'end') kinds.push(event.snapshot.status);
  }
  expect(kinds.at(-1)).toBe('succeeded');
  const resets = kinds.filter((kind) => kind.startsWith('reset'));
  expect(resets).toHaveLength(1);
  expect(Number(resets[0]?.split(' ').at(-1))).toBeLessThan(15_000);
  expect(second.pid).not.toBe(first.pid);
});

test('an abort reaches the worker of another process at once', async () => {
  await worker();
  const runId = await beginRun('{"ms":50,"steps":1000}');
  const echo = server.app.agent('echo');
  const started = performance.now();
  expect(await echo.abort(runId)).toBe('aborted');
  const ended = await echo.wait(runId);
  expect(ended.status).toBe('aborted');
  expect(performance.now() - started).toBeLessThan(2_000);
  await expect.poll(() => server.app.store && listPartial(runId), { timeout: 5_000 }).toBe(true);
});

async function listPartial(runId: string): Promise<boolean> {
  const snapshot = await server.app.agent('echo').getSnapshot({ snapshotId: runId });
  return (snapshot?.state?.messages?.length ?? 0) > 0;
}

test('a worker that is told to end hands its runs over in under two seconds', async () => {
  const held = await mkdtemp(join(tmpdir(), 'waymark-held-'));
  const first = await worker(100);
  const runId = await beginRun(JSON.stringify({ steps: 3, waitWhile: held }));
  await worker();
  const echo = server.app.agent('echo');
  const reset = (async () => {
    for await (const event of echo.watch(runId)) if (event.type === 'reset') return Date.now();
    return Number.POSITIVE_INFINITY;
  })();
  await sleep(100);
  first.kill('SIGTERM');
  const toldAt = Date.now();
  await first.ended;
  expect(Date.now() - toldAt).toBeLessThan(3_000);
  expect((await reset) - toldAt).toBeLessThan(2_000);
  await rm(held, { recursive: true });
  expect((await echo.wait(runId)).status).toBe('succeeded');
});

test('a run that kills its workers is given up, with the error of each, and can be retried by hand', async () => {
  const attempts = process.env.LONG === '1' ? 3 : 1;
  const poison = await mkdtemp(join(tmpdir(), 'waymark-poison-'));
  const echo = server.app.agent('echo');
  const { connectionString } = postgres;
  for (let n = 0; n <= attempts; n++) {
    await startChild({ role: 'worker', connectionString, engine: { attempts } });
  }
  const text = JSON.stringify({ dieWhile: poison });
  const { snapshotId: runId = '', sessionId } = await echo.run(detached(text));
  const ended = await echo.wait(runId);
  expect(ended.status).toBe('failed');
  expect(ended.error).toMatchObject({ details: { deadLetter: true } });
  expect(ended.error?.details).toHaveProperty('attempts.length', attempts);
  expect(JSON.stringify(ended.error?.details)).toContain('no sign of life');

  const [letter] = await server.engine.deadLetters();
  expect(letter).toMatchObject({ runId, agent: 'echo', sessionId });
  await rm(poison, { recursive: true });

  const served = await serve(server.app, { port: 0, log: () => {} });
  const remote = createClient({ url: served.url }).agent('echo');
  const attemptsOf = Array.from({ length: attempts }, () => ({
    attempt: expect.any(Number),
    error: expect.stringContaining('no sign of life'),
  }));
  const dead = { snapshotId: runId, sessionId, agent: 'echo', since: expect.any(String) };
  expect(await remote.listDeadRuns()).toEqual([{ ...dead, attempts: attemptsOf }]);
  const listed = await command(process.cwd(), ['retry', '--url', served.url]);
  expect(listed.stdout).toContain(runId);
  expect(listed.stdout).toContain('no sign of life');
  expect(await echo.listDeadRuns({ owner: 'bob' })).toEqual([]);
  await expect(echo.retryRun(runId, { owner: 'bob' })).rejects.toMatchObject({
    status: 'NOT_FOUND',
  });

  const retried = await command(process.cwd(), ['retry', runId, '--url', served.url, '--json']);
  expect(retried).toMatchObject({ code: 0 });
  const again = JSON.parse(retried.stdout) as { snapshotId: string; sessionId: string };
  expect(again.sessionId).toBe(sessionId);
  expect((await remote.wait(again.snapshotId)).status).toBe('succeeded');
  expect(await server.engine.deadLetters()).toEqual([]);
  await expect(server.engine.retry(runId)).rejects.toMatchObject({ status: 'NOT_FOUND' });
  await expect(remote.retryRun(runId)).rejects.toMatchObject({ status: 'NOT_FOUND' });
  await served.close();
}, 120_000);

test('what is told of a run that was given up is erased with its session', async () => {
  const poison = await mkdtemp(join(tmpdir(), 'waymark-poison-'));
  const echo = server.app.agent('echo');
  const { connectionString } = postgres;
  for (let n = 0; n < 2; n++) {
    await startChild({ role: 'worker', connectionString, engine: { attempts: 1 } });
  }
  const text = JSON.stringify({ dieWhile: poison });
  const { snapshotId: runId = '', sessionId } = await echo.run(detached(text));
  expect((await echo.wait(runId)).status).toBe('failed');
  expect(await server.engine.deadLetters()).toMatchObject([{ runId, sessionId }]);
  await echo.deleteSession(sessionId);
  expect(await server.engine.deadLetters()).toEqual([]);
  await rm(poison, { recursive: true });
}, 120_000);
