import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { client } from '../../src/client/index.ts';
import { eventually } from '../support/eventually.ts';
import { bundleWorker, respond, startWorker } from './cloudflare/start.ts';

const asked: string[] = [];
let isHolding = false;
const folder = mkdtempSync(join(tmpdir(), 'waymark-d1-'));
const script = await bundleWorker('d1-app.ts');
const start = () =>
  startWorker(script, {
    d1Databases: ['DB'],
    d1Persist: folder,
    outboundService({ url }: Request) {
      asked.push(new URL(url).pathname);
      return isHolding ? new Promise(() => {}) : respond('ok');
    },
  });
let worker = await start();
afterAll(async () => {
  await worker.dispose();
  rmSync(folder, { recursive: true, force: true });
});

const chat = () => client({ url: worker.url, agent: 'chat' });

test('a conversation continues in the next request', async () => {
  const first = await chat().run('hello');
  expect(first.text).toBe('done');
  const next = await chat().run('and now?', { sessionId: first.sessionId });
  const session = await chat().getSession(next.sessionId);
  expect(session?.state?.messages).toHaveLength(4);
});

test('a background run executes after its response', async () => {
  const { id } = await chat().start('later');
  expect((await chat().wait(id)).status).toBe('succeeded');
});

test('the cron trigger continues a background run that was cut off', async () => {
  asked.length = 0;
  isHolding = true;
  const { id } = await chat().start('later');
  await eventually(() => asked.length === 1);
  // As at a deployment: the database stays.
  await worker.dispose();
  worker = await start();
  isHolding = false;
  expect((await chat().getSnapshot({ snapshotId: id }))?.status).toBe('pending');
  await eventually(async () => {
    await worker.scheduled();
    return (await chat().getSnapshot({ snapshotId: id }))?.status === 'succeeded';
  });
  expect(asked).toHaveLength(2);
  await worker.scheduled();
  expect(asked).toHaveLength(2);
});
