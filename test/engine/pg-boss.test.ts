import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { startPostgres, type TestPostgres } from '../support/postgres.ts';
import { type PostgresClock, postgresClock } from '../support/postgres-clock.ts';
import { detached, openQueueApp, type QueueApp, type QueueAppOptions } from './support/agents.ts';

let postgres: TestPostgres;
let clock: PostgresClock;
const open: QueueApp[] = [];

beforeAll(async () => {
  postgres = await startPostgres();
  clock = await postgresClock(postgres.connectionString);
});
afterAll(async () => {
  await Promise.all(open.map((each) => each.close(0)));
  await clock.close();
  await postgres.stop();
});

function start(options: Partial<QueueAppOptions> = {}): QueueApp {
  const made = openQueueApp({ connectionString: clock.connectionString, ...options });
  open.push(made);
  return made;
}

test('a server that only accepts records a run, and a worker works on it', async () => {
  const server = start({ work: false });
  await server.app.ready();
  const echo = server.app.agent('echo');
  const { snapshotId = '', finishReason } = await echo.run(detached('hello'));
  expect(finishReason).toBe('detached');
  expect((await echo.getSnapshot({ snapshotId }))?.status).toBe('pending');
  expect(await server.engine.status()).toMatchObject({ waiting: 1 });

  const worker = start();
  const ended = await echo.wait(snapshotId);
  expect(ended.status).toBe('succeeded');
  expect(ended.state?.messages?.at(-1)?.content).toEqual([{ text: ':hello' }]);
  await worker.close();
  await server.close();
});

test('a server and workers that start at the same time over an empty database share one queue', async () => {
  const errors: unknown[] = [];
  for (const schema of ['queue_a', 'queue_b', 'queue_c']) {
    const onError = (error: unknown): unknown => errors.push(error);
    const options = { engine: { schema }, onError };
    const all = [false, true, true, true].map((work) => start({ work, ...options }));
    await Promise.all(all.map(({ app }) => app.ready()));
    const echo = all[0]?.app.agent('echo');
    const { snapshotId = '' } = (await echo?.run(detached('hello'))) ?? {};
    expect((await echo?.wait(snapshotId))?.status).toBe('succeeded');
    await Promise.all(all.map((each) => each.close()));
  }
  expect(errors).toEqual([]);
});

test('a worker leaves runs of an agent that it does not know to others, and says so', async () => {
  const server = start({ work: false, agents: ['echo', 'other'] });
  await server.app.ready();
  const said: string[] = [];
  const stranger = start({ onError: (error) => said.push(String(error)) });
  const other = server.app.agent('other');
  const { snapshotId = '' } = await other.run(detached('hi'));
  await expect.poll(() => said.join()).toContain('does not know the agent "other"');
  expect((await other.getSnapshot({ snapshotId }))?.status).toBe('pending');
  const { snapshotId: known = '' } = await server.app.agent('echo').run(detached('hi'));
  expect((await server.app.agent('echo').wait(known)).status).toBe('succeeded');

  const friend = start({ agents: ['other'] });
  expect((await other.wait(snapshotId)).status).toBe('succeeded');
  expect(said.filter((text) => text.includes('does not know'))).toHaveLength(1);
  await Promise.all([stranger.close(), friend.close(), server.close()]);
});

test('a run goes to a worker of its version, and after a grace to any', async () => {
  const server = start({ work: false, version: '1' });
  await server.app.ready();
  const newer = start({ version: '2', engine: { versionGrace: 1_500 } });
  const echo = server.app.agent('echo');
  const textOf = async (runId: string): Promise<unknown> =>
    (await echo.wait(runId)).state?.messages?.at(-1)?.content;
  const begun = Date.now();
  const { snapshotId: lonely = '' } = await echo.run(detached('a'));
  expect((await echo.listRuns()).items).toMatchObject([{ snapshotId: lonely, version: '1' }]);
  expect(await textOf(lonely)).toEqual([{ text: '2:a' }]);
  expect(Date.now() - begun).toBeGreaterThan(1_400);

  await newer.close();

  // Longer than a busy machine lets the right one wait.
  const patient = start({ version: '2', engine: { versionGrace: 600_000 } });
  const older = start({ version: '1' });
  for (const text of ['b', 'c', 'd']) {
    const { snapshotId = '' } = await echo.run(detached(text));
    expect(await textOf(snapshotId)).toEqual([{ text: `1:${text}` }]);
  }
  await Promise.all([patient.close(), older.close(), server.close()]);
});

test('a full queue refuses more and says when to come back', async () => {
  const server = start({ work: false, engine: { maxWaiting: 3 } });
  await server.app.ready();
  const echo = server.app.agent('echo');
  const begun: string[] = [];
  for (let n = 0; n < 3; n++) begun.push((await echo.run(detached('x'))).snapshotId ?? '');
  await expect(echo.run(detached('x'))).rejects.toMatchObject({
    status: 'RESOURCE_EXHAUSTED',
    details: { retryAfter: 5 },
  });
  const worker = start();
  for (const runId of begun) await echo.wait(runId);
  await expect
    .poll(() =>
      echo.run(detached('x')).then(
        () => true,
        () => false,
      ),
    )
    .toBe(true);
  await worker.close();
  await server.close();
});

test('a schedule begins runs of an agent', async () => {
  const server = start({ work: false });
  await server.app.ready();
  await server.engine.schedule({
    key: 'daily',
    cron: '0 7 * * *',
    agent: 'echo',
    input: { message: { role: 'user', content: [{ text: 'good morning' }] } },
  });
  expect(await server.engine.schedules()).toMatchObject([{ key: 'daily', cron: '0 7 * * *' }]);
  const worker = start();
  await server.engine.runNow('daily');
  const echo = server.app.agent('echo');
  const texts = async (): Promise<string> => JSON.stringify((await echo.listSessions()).items);
  const before = await texts();
  await expect.poll(texts).not.toBe(before);
  await server.engine.unschedule('daily');
  expect(await server.engine.schedules()).toEqual([]);
  await worker.close();
  await server.close();
});

test('what was recorded is in the queue, and what was refused is not', async () => {
  // A queue of its own: a job of another test may still be waiting when it is counted.
  const engine = { schema: 'recorded' };
  const server = start({ work: false, engine });
  await server.app.ready();
  const echo = server.app.agent('echo');
  const { sessionId = '', snapshotId = '' } = await echo.run(detached('one'));
  await expect(echo.run(detached('two'), { sessionId })).rejects.toMatchObject({
    status: 'ABORTED',
  });
  expect(await server.engine.status()).toMatchObject({ waiting: 1 });
  expect(await echo.abort(snapshotId)).toBe('aborted');
  const worker = start({ engine });
  await expect.poll(async () => (await server.engine.status()).waiting).toBe(0);
  expect((await echo.getSnapshot({ snapshotId }))?.status).toBe('aborted');
  await worker.close();
  await server.close();
});

test('closing waits for a check of schedules that is under way', async () => {
  const worker = start({ engine: { schema: 'closing' } });
  const { pool, app } = worker;
  const checking = Promise.withResolvers<void>();
  const gate = Promise.withResolvers<void>();
  const query = pool.query.bind(pool) as (text: string, values?: unknown[]) => Promise<never>;
  Object.assign(pool, {
    async query(text: string, values?: unknown[]) {
      if (/SKIP LOCKED/.test(text) && JSON.stringify([text, values]).includes('scheduled-runs')) {
        checking.resolve();
        await gate.promise;
      }
      return await query(text, values);
    },
  });
  await app.ready();
  await checking.promise;
  let isClosed = false;
  const closing = app.close().then(() => {
    isClosed = true;
  });
  await sleep(300);
  expect(isClosed).toBe(false);
  gate.resolve();
  await closing;
});

// The last one: it moves the clock of the queue, and depths are counted by the real one.
test('higher priorities begin first, and a delayed run does not begin before its time', async () => {
  const server = start({ work: false });
  await server.app.ready();
  await clock.drive('waymark_queue');
  const echo = server.app.agent('echo');
  const begin = async (text: string, queue = {}): Promise<string> =>
    (await echo.run(detached(text), { queue })).snapshotId ?? '';
  const low = await begin('low');
  const late = await begin('late', { startAfter: 3_600_000 });
  const high = await begin('high', { priority: 10 });

  const worker = start({ engine: { slots: 1 } });
  const [lowEnd, highEnd] = await Promise.all([echo.wait(low), echo.wait(high)]);
  expect([lowEnd.status, highEnd.status]).toEqual(['succeeded', 'succeeded']);
  // By the time of their commits: who waits may learn of both at once, in any order.
  expect(Date.parse(highEnd.updatedAt ?? '')).toBeLessThan(Date.parse(lowEnd.updatedAt ?? ''));
  expect((await echo.getSnapshot({ snapshotId: late }))?.status).toBe('pending');
  await clock.advance(3_600_000);
  expect((await echo.wait(late)).status).toBe('succeeded');
  await worker.close();
  await server.close();
});
