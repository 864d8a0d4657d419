import { mkdtemp, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { createClient } from '../../src/client/index.ts';
import { serve } from '../../src/server/index.ts';
import { command } from '../cli/support/command.ts';
import { endProcesses } from '../support/child-process.ts';
import { eventually } from '../support/eventually.ts';
import { startPostgres, type TestPostgres } from '../support/postgres.ts';
import { type PostgresClock, postgresClock } from '../support/postgres-clock.ts';
import { detached, openQueueApp, type QueueApp } from './support/agents.ts';
import { type Child, startChild } from './support/processes.ts';

let postgres: TestPostgres;
let clock: PostgresClock;
let server: QueueApp;

beforeAll(async () => {
  postgres = await startPostgres();
  clock = await postgresClock(postgres.connectionString);
  server = openQueueApp({ connectionString: clock.connectionString, work: false });
  await server.app.ready();
  await clock.drive('waymark_queue');
});
afterEach(endProcesses);
afterAll(async () => {
  await server.close(0);
  await clock.close();
  await postgres.stop();
});

const worker = (drainMs = 0) =>
  startChild({ role: 'worker', connectionString: clock.connectionString, drainMs });

/** Lets the claims and heartbeats of a dead process expire. */
async function expire(dead: Child): Promise<void> {
  await clock.settled(dead.name);
  await clock.advance(120_000);
}

/** Begins a run, and resolves when somebody works on it. */
async function beginRun(text: string): Promise<string> {
  const echo = server.app.agent('echo');
  const { snapshotId = '' } = await echo.run(detached(text));
  for await (const event of echo.watch(snapshotId)) if (event.type === 'chunk') break;
  return snapshotId;
}

test('a run whose worker is killed goes on in another when its claim has expired', async () => {
  const held = await mkdtemp(join(tmpdir(), 'waymark-held-'));
  const first = await worker();
  const runId = await beginRun(JSON.stringify({ steps: 3, waitWhile: held }));
  await worker();
  await first.end();
  await rm(held, { recursive: true });
  await expire(first);
  const kinds: string[] = [];
  for await (const event of server.app.agent('echo').watch(runId)) {
    if (event.type === 'reset') kinds.push('reset');
    if (event.type === 'end') kinds.push(event.snapshot.status);
  }
  expect(kinds).toEqual(['reset', 'succeeded']);
});

test('an abort reaches the worker of another process', async () => {
  await worker();
  const runId = await beginRun('{"ms":50,"steps":100000}');
  const echo = server.app.agent('echo');
  expect(await echo.abort(runId)).toBe('aborted');
  const ended = await echo.wait(runId);
  expect(ended.status).toBe('aborted');
  await expect.poll(() => server.app.store && listPartial(runId)).toBe(true);
});

async function listPartial(runId: string): Promise<boolean> {
  const snapshot = await server.app.agent('echo').getSnapshot({ snapshotId: runId });
  return (snapshot?.state?.messages?.length ?? 0) > 0;
}

test('a worker that is told to end hands its runs over before their claims expire', async () => {
  const held = await mkdtemp(join(tmpdir(), 'waymark-held-'));
  const first = await worker(100);
  const runId = await beginRun(JSON.stringify({ steps: 3, waitWhile: held }));
  await worker();
  const echo = server.app.agent('echo');
  expect(await first.end('SIGTERM')).toEqual({ code: 0, signal: null });
  // The clock has not been moved: the claim of the first worker would last for a minute.
  await eventually(async () => {
    const [run] = (await echo.listRuns()).items;
    return (run?.attempt ?? 0) > 1;
  }, 'another worker to continue the run');
  await rm(held, { recursive: true });
  expect((await echo.wait(runId)).status).toBe('succeeded');
});

test('a run that kills its workers is given up, with the error of each, and can be retried by hand', async () => {
  const attempts = process.env.LONG === '1' ? 3 : 1;
  const poison = await mkdtemp(join(tmpdir(), 'waymark-poison-'));
  const echo = server.app.agent('echo');
  const workers = await mortalWorkers(attempts + 1, attempts);
  const text = JSON.stringify({ dieWhile: poison });
  const { snapshotId: runId = '', sessionId } = await echo.run(detached(text));
  await expireDying(workers, attempts);
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
  expect((await remote.listDeadRuns()).items).toEqual([{ ...dead, attempts: attemptsOf }]);
  const listed = await command(process.cwd(), ['retry', '--url', served.url]);
  expect(listed.stdout).toContain(runId);
  expect(listed.stdout).toContain('no sign of life');
  expect(await echo.listDeadRuns({ owner: 'bob' })).toEqual({ items: [] });
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
});

test('S665 a run that blocks its workers counts a crash of each and is given up', async () => {
  const attempts = process.env.LONG === '1' ? 3 : 1;
  const folder = await mkdtemp(join(tmpdir(), 'waymark-block-'));
  const echo = server.app.agent('echo');
  const workers = await mortalWorkers(attempts + 1, attempts);
  const { snapshotId: runId = '' } = await echo.run(
    detached(JSON.stringify({ blockWhile: folder })),
  );
  for (let blocked = 1; blocked <= attempts; blocked++) {
    await eventually(
      async () => (await readdir(folder)).length === blocked,
      `worker ${blocked} to be blocked`,
    );
    await clock.advance(120_000);
  }
  const ended = await echo.wait(runId);
  expect(ended).toMatchObject({ status: 'failed', error: { details: { deadLetter: true } } });
  expect(ended.error?.details).toHaveProperty('attempts.length', attempts);
  // They continue, and change nothing.
  await rm(folder, { recursive: true });
  const another = await echo.run(detached('{}'));
  expect((await echo.wait(another.snapshotId ?? '')).status).toBe('succeeded');
  expect(await Promise.all(workers.map((each) => each.end('SIGTERM')))).toEqual(
    workers.map(() => ({ code: 0, signal: null })),
  );
  expect((await echo.getSnapshot({ snapshotId: runId }))?.status).toBe('failed');
  await echo.deleteSession(ended.sessionId);
});

test('what is told of a run that was given up is erased with its session', async () => {
  const poison = await mkdtemp(join(tmpdir(), 'waymark-poison-'));
  const echo = server.app.agent('echo');
  const workers = await mortalWorkers(2, 1);
  const text = JSON.stringify({ dieWhile: poison });
  const { snapshotId: runId = '', sessionId } = await echo.run(detached(text));
  await expireDying(workers, 1);
  expect((await echo.wait(runId)).status).toBe('failed');
  expect(await server.engine.deadLetters()).toMatchObject([{ runId, sessionId }]);
  await echo.deleteSession(sessionId);
  expect(await server.engine.deadLetters()).toEqual([]);
  await rm(poison, { recursive: true });
});

/** Workers that a run may kill. */
async function mortalWorkers(count: number, attempts: number): Promise<Child[]> {
  const { connectionString } = clock;
  const options = { role: 'worker', connectionString, engine: { attempts } } as const;
  return await Promise.all(
    Array.from({ length: count }, () => startChild(options, { mayDie: true })),
  );
}

/** Waits for so many workers to die, one after the other, and lets the claim of each expire. */
async function expireDying(workers: readonly Child[], count: number): Promise<void> {
  const left = new Set(workers);
  for (let died = 0; died < count; died++) {
    const dead = await Promise.race(
      [...left].map(async (each) => {
        await each.ended;
        return each;
      }),
    );
    left.delete(dead);
    await expire(dead);
  }
}
