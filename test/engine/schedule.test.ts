import { afterAll, beforeAll, expect, test } from 'vitest';
import { startPostgres, type TestPostgres } from '../support/postgres.ts';
import { openQueueApp } from './support/agents.ts';

let postgres: TestPostgres;
beforeAll(async () => {
  postgres = await startPostgres();
});
afterAll(() => postgres.stop());

// The shortest schedule is a minute, so this waits for the next one to begin: in the long tests only.
if (process.env.LONG === '1') {
  test('a schedule fires by the clock, once however many workers there are', async () => {
    const { connectionString } = postgres;
    const workers = [1, 2, 3].map(() => openQueueApp({ connectionString }));
    const [{ app, engine }] = workers as [(typeof workers)[0]];
    await app.ready();
    const input = { message: { role: 'user' as const, content: [{ text: 'tick' }] } };
    await engine.schedule({ key: 'minutely', cron: '* * * * *', agent: 'echo', input });
    const sessions = async () => (await app.agent('echo').listSessions()).items;
    await expect.poll(sessions, { timeout: 150_000, interval: 250 }).toHaveLength(1);
    const seconds = new Date().getSeconds();
    await engine.unschedule('minutely');
    const [session] = await sessions();
    const head = { sessionId: session?.sessionId ?? '' };
    const said = async () => (await app.agent('echo').getSnapshot(head))?.state?.messages?.at(-1);
    await expect.poll(said).toMatchObject({ role: 'model', content: [{ text: ':tick' }] });
    console.info(`cron: the run was there ${seconds} s after the minute began`);
    expect(await sessions()).toHaveLength(1);
    await Promise.all(workers.map((each) => each.close()));
  }, 200_000);
}

test('a schedule that is no schedule is refused, and an unknown one is not found', async () => {
  const server = openQueueApp({ connectionString: postgres.connectionString, work: false });
  await server.app.ready();
  const bad = { key: 'bad', agent: 'echo', input: {}, cron: 'whenever' };
  await expect(server.engine.schedule(bad)).rejects.toMatchObject({
    status: 'INVALID_ARGUMENT',
    message: expect.stringContaining('cron'),
  });
  await expect(server.engine.runNow('bad')).rejects.toMatchObject({ status: 'NOT_FOUND' });
  await server.close();
});
