import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import {
  type Agent,
  type App,
  type Model,
  memoryStore,
  type Store,
  waymark,
} from '../../src/index.ts';
import { postgresStore } from '../../src/store/postgres/index.ts';
import { scriptedModel } from '../../src/testing/scripted-model.ts';
import { bundleChild } from '../support/bundle-child.ts';
import { endProcesses, startProcess } from '../support/child-process.ts';
import { pgbouncer, startPgBouncer, type TestPooler } from '../support/pgbouncer.ts';
import { startPostgres, type TestPostgres } from '../support/postgres.ts';

describe.skipIf(pgbouncer === undefined)(
  'processes that live for one request, behind PgBouncer (skipped where it is not installed)',
  () => {
    let postgres: TestPostgres;
    let pooler: TestPooler;
    beforeAll(async () => {
      postgres = await startPostgres();
      pooler = await startPgBouncer(pgbouncer ?? '', postgres.connectionString, { poolSize: 4 });
      // Before a deployment, as `waymark migrate` does.
      await run('work');
    });
    afterEach(endProcesses);
    afterAll(async () => {
      await pooler?.stop();
      await postgres?.stop();
    });

    /** Starts a process, and gives what it has done. */
    async function run(
      what: 'work' | 'request',
      body: object = {},
      // biome-ignore lint/suspicious/noExplicitAny: tests look into whatever came
    ): Promise<{ readonly result: any; readonly most: number }> {
      const script = bundleChild(new URL('support/serverless-child.ts', import.meta.url));
      const child = startProcess([script, pooler.connectionString, what, JSON.stringify(body)]);
      await child.finished();
      return JSON.parse(child.lines.at(-1) ?? '');
    }
    const input = (text: string) => ({ message: { role: 'user', content: [{ text }] } });

    test('continue sessions, leave background runs to a scheduled call, and use two connections (S508)', async () => {
      const first = await Promise.all(
        Array.from({ length: 6 }, (_, n) =>
          n % 2 === 0
            ? run('request', { input: input('hello') })
            : run('request', { input: { ...input('later'), detach: true } }),
        ),
      );
      const turns = first.filter((_, n) => n % 2 === 0).map(({ result }) => result);
      const detached = first.filter((_, n) => n % 2 === 1).map(({ result }) => result);
      expect(turns.map(({ output }) => output)).toEqual(Array(3).fill('1 messages'));
      expect(detached.map(({ finishReason }) => finishReason)).toEqual(Array(3).fill('detached'));

      const [next, worker] = await Promise.all([
        run('request', { init: { sessionId: turns[0].sessionId }, input: input('again') }),
        run('work'),
      ]);
      expect(next.result.output).toBe('3 messages');
      expect(worker.result).toEqual({ isIdle: true });
      const store = postgresStore({ connectionString: postgres.connectionString });
      for (const { snapshotId } of detached) {
        const snapshot = await store.getSnapshot({ agent: 'chat' }, { snapshotId });
        expect(snapshot?.status).toBe('succeeded');
      }
      expect(await store.maintenance?.verify()).toEqual([]);
      await store.close?.();
      for (const { most } of [...first, next, worker]) expect(most).toBeLessThanOrEqual(2);
    });
  },
);

describe('app.work', () => {
  const hanging = scriptedModel({ patterns: [], otherwise: { text: 'It', hang: true } });
  const quick = scriptedModel({ patterns: [], otherwise: 'done' });
  const input = { message: { role: 'user' as const, content: [{ text: 'hello' }] }, detach: true };

  function open(store: Store, model: Model, work = false): { app: App; chat: Agent } {
    const app = waymark({ store, model, work });
    return { app, chat: app.defineAgent({ name: 'chat' }) };
  }

  test('continues what others have handed over, until nothing is left or the time is over (S508)', async () => {
    const store = memoryStore();
    const accepting = open(store, hanging);
    const { snapshotId = '' } = await accepting.chat.run(input);
    await accepting.app.close({ grace: 0 });

    // The run does not end: it is left to the next call.
    const slow = open(store, hanging);
    expect(await slow.app.work({ timeout: 300 })).toEqual({ isIdle: false });
    await slow.app.close({ grace: 0 });
    const last = open(store, quick);
    expect(await last.app.work()).toEqual({ isIdle: true });
    expect((await last.chat.wait(snapshotId)).status).toBe('succeeded');
    await last.app.close();
  });

  test('ends when the app closes, and takes nothing over again (S508)', async () => {
    const store = memoryStore();
    const accepting = open(store, hanging);
    const { snapshotId = '' } = await accepting.chat.run(input);
    await accepting.app.close({ grace: 0 });

    const slow = open(store, hanging);
    const working = slow.app.work();
    for await (const event of slow.chat.watch(snapshotId)) if (event.type === 'chunk') break;
    await slow.app.close({ grace: 0 });
    expect(await working).toEqual({ isIdle: false });
    const last = open(store, quick);
    expect(await last.app.work()).toEqual({ isIdle: true });
    expect((await last.chat.wait(snapshotId)).status).toBe('succeeded');
    await last.app.close();
  });

  test('is refused while the app works all the time, and after it was closed', async () => {
    const busy = open(memoryStore(), quick, true).app;
    await expect(busy.work()).rejects.toThrow('give waymark() `work: false`');
    await busy.close();
    const closed = open(memoryStore(), quick).app;
    await expect(closed.work({ timeout: Number.NaN })).rejects.toThrow('not NaN');
    await closed.close();
    await expect(closed.work()).rejects.toMatchObject({ status: 'UNAVAILABLE' });
  });
});
