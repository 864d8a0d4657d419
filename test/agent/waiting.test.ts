import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import type { InterruptEvent } from '../../src/agent/spec/interrupt-event.ts';
import { createClient } from '../../src/client/index.ts';
import { toolApproval } from '../../src/generate/middleware/tool-approval.ts';
import { serve } from '../../src/server/index.ts';
import type { Store } from '../../src/store/contract/store.ts';
import { fileStore } from '../../src/store/file/index.ts';
import { memoryStore } from '../../src/store/memory/memory-store.ts';
import { sqliteStore } from '../../src/store/sqlite/index.ts';
import { scriptedModel } from '../../src/testing/scripted-model.ts';
import { must, openApp, type TestApp } from './support/kit.ts';

function define(app: TestApp) {
  const pay = app.defineTool({ name: 'pay', description: 'Pays.' }, () => 'paid');
  const model = scriptedModel({
    patterns: [[/pay/, { toolCalls: [{ name: 'pay', input: {} }] }]],
    otherwise: 'ok',
  });
  return app.defineAgent({ name: 'desk', model, tools: [pay], use: [toolApproval(['pay'])] });
}

const stores: Record<string, (folder: string) => Store> = {
  memory: () => memoryStore(),
  sqlite: (folder) => sqliteStore(join(folder, 'test.db')),
  file: (folder) => fileStore(join(folder, 'files')),
};

describe.each(Object.entries(stores))('with the %s store', (_, open) => {
  test('S414 S415 S416 lists what waits, per owner and in pages; answers say by whom and when', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'waymark-waiting-'));
    const store = open(folder);
    const events: InterruptEvent[] = [];
    try {
      await using app = openApp({ store, onInterrupt: (event) => void events.push(event) });
      const desk = define(app);
      for (const sessionId of ['a', 'b', 'c']) {
        await desk.run('pay', { sessionId, owner: 'ann' });
        await desk.run('talk', { sessionId: `${sessionId}-quiet`, owner: 'ann' });
      }
      await desk.run('pay', { sessionId: 'd', owner: 'bob' });
      const first = await desk.listInterrupts({ owner: 'ann', limit: 2 });
      expect(first.items.map(({ sessionId }) => sessionId)).toEqual(['c', 'b']);
      const rest = await desk.listInterrupts({ owner: 'ann', cursor: must(first.next) });
      expect(rest.items.map(({ sessionId }) => sessionId)).toEqual(['a']);
      expect(rest.next).toBeUndefined();
      const [waiting] = rest.items;
      expect(waiting).toMatchObject({
        agent: 'desk',
        requests: [{ toolRequest: { name: 'pay' } }],
      });
      expect(events.map(({ sessionId, owner }) => [sessionId, owner])).toEqual([
        ['a', 'ann'],
        ['b', 'ann'],
        ['c', 'ann'],
        ['d', 'bob'],
      ]);
      expect(events[0]).toMatchObject({ agent: 'desk', runId: waiting?.snapshotId });

      const { interrupts } = must(waiting);
      const output = await desk.resume(
        must(waiting),
        interrupts.map((each) => each.approve()),
        { owner: 'ann' },
      );
      expect(output.finishReason).toBe('stop');
      const after = await desk.getSession('a', { owner: 'ann' });
      expect(after?.state?.messages?.[2]?.metadata).toEqual({
        answered: { by: 'ann', at: expect.stringMatching(/^\d{4}-.*Z$/) },
      });
      const left = await desk.listInterrupts({ owner: 'ann' });
      expect(left.items.map(({ sessionId }) => sessionId)).toEqual(['c', 'b']);
      // A restored branch waits again.
      await desk.restore(must(waiting?.snapshotId), { owner: 'ann' });
      expect((await desk.listInterrupts({ owner: 'ann' })).items).toHaveLength(3);
    } finally {
      await store.close?.();
      await rm(folder, { recursive: true });
    }
  });
});

test('S414 S416 a client lists and answers; a failing listener fails no turn', async () => {
  await using app = openApp({
    onInterrupt: () => {
      throw new Error('on purpose');
    },
  });
  define(app);
  const server = await serve(app, { port: 0, log: () => {} });
  try {
    const desk = createClient({ url: server.url }).agent('desk');
    const { id } = await desk.start('pay', { sessionId: 'a' });
    await desk.wait(id);
    const { items } = await desk.listInterrupts();
    expect(JSON.parse(JSON.stringify(items))).toMatchObject([
      { sessionId: 'a', snapshotId: id, agent: 'desk' },
    ]);
    const [waiting] = items;
    const answers = must(waiting).interrupts.map((each) => each.decline('too much'));
    expect((await desk.resume(must(waiting), answers)).finishReason).toBe('stop');
    expect((await desk.listInterrupts()).items).toEqual([]);
  } finally {
    await server.close();
  }
  expect(app.errors.map(String)).toEqual(['Error: on purpose']);
});
