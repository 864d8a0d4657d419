import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import type { InterruptEvent } from '../../src/agent/contract/spec.ts';
import { createClient } from '../../src/client/index.ts';
import type { Clock } from '../../src/core/time.ts';
import { toolApproval } from '../../src/generate/middleware/tool-approval.ts';
import { serve } from '../../src/server/index.ts';
import type { Store } from '../../src/store/contract/store.ts';
import { fileStore } from '../../src/store/file/index.ts';
import { memoryStore } from '../../src/store/memory/memory-store.ts';
import { sqliteStore } from '../../src/store/sqlite/index.ts';
import { scriptedModel } from '../../src/testing/scripted-model.ts';
import { movableClock } from '../support/movable-clock.ts';
import { must, openApp, type TestApp } from './support/kit.ts';

function define(app: TestApp, name = 'desk') {
  const tool = `${name}-pay`;
  const pay = app.defineTool({ name: tool, description: 'Pays.' }, () => 'paid');
  const model = scriptedModel({
    patterns: [[/pay/, { toolCalls: [{ name: tool, input: {} }] }]],
    otherwise: 'ok',
  });
  return app.defineAgent({ name, model, tools: [pay], use: [toolApproval([tool])] });
}

const stores: Record<string, (folder: string, options?: { readonly clock: Clock }) => Store> = {
  memory: (_, options) => memoryStore(options),
  sqlite: (folder, options) => sqliteStore(join(folder, 'test.db'), options),
  file: (folder, options) => fileStore(join(folder, 'files'), options),
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
        requests: [{ toolRequest: { name: 'desk-pay' } }],
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

  test('S565 lists what waits over all agents, newest first, page by page, without repeats', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'waymark-waiting-'));
    const { clock, advance } = movableClock();
    const store = open(folder, { clock });
    try {
      await using app = openApp({ store, clock });
      const desk = define(app);
      const till = define(app, 'till');
      app.defineCustomAgent({ name: 'stateless', store: false }, (session) =>
        session.run(() => {}),
      );
      const all: string[] = [];
      for (const [n, agent] of [desk, desk, till, desk, till, till, till].entries()) {
        advance(1_000);
        await agent.run('pay', { sessionId: `s${n}`, owner: 'ann' });
        all.unshift(`${agent.name} s${n}`);
      }
      await till.run('talk', { sessionId: 'quiet', owner: 'ann' });
      await till.run('pay', { sessionId: 'bobs', owner: 'bob' });
      for (const limit of [1, 2, 3, 20]) {
        const found: string[] = [];
        let cursor: string | undefined;
        do {
          const page = await app.listInterrupts({
            owner: 'ann',
            limit,
            ...(cursor !== undefined && { cursor }),
          });
          expect(page.items.length).toBeLessThanOrEqual(limit);
          found.push(...page.items.map(({ agent, sessionId }) => `${agent} ${sessionId}`));
          cursor = page.next;
        } while (cursor !== undefined);
        expect([limit, found]).toEqual([limit, all]);
      }
      const [newest] = (await app.listInterrupts({ owner: 'ann' })).items;
      const { agent, interrupts } = must(newest);
      const answers = interrupts.map((each) => each.approve());
      await app.agent(agent).resume(must(newest), answers, { owner: 'ann' });
      const left = await app.listInterrupts({ owner: 'ann' });
      expect(left.items).toHaveLength(all.length - 1);
      expect((await app.listInterrupts()).items).toEqual([]);
      await expect(app.listInterrupts({ cursor: '[1]' })).rejects.toThrow('cursor');
    } finally {
      await store.close?.();
      await rm(folder, { recursive: true });
    }
  });
});

test('S644 over HTTP, the list over many agents is read to its end, without repeats', async () => {
  const { clock, advance } = movableClock();
  await using app = openApp({ store: memoryStore({ clock }), clock });
  const agents = Array.from({ length: 120 }, (_, no) => define(app, `agent-of-department-${no}`));
  const all: string[] = [];
  for (const round of ['a', 'b']) {
    for (const [no, agent] of agents.entries()) {
      // Some have the same time.
      if (no % 3 === 0) advance(1_000);
      await agent.run('pay', { sessionId: `${round}${no}`, owner: 'ann' });
      all.push(`${round}${no}`);
    }
  }
  const server = await serve(app, { port: 0, log: () => {}, auth: () => ({ principal: 'ann' }) });
  try {
    const found: string[] = [];
    let cursor: string | undefined;
    do {
      const client = createClient({ url: server.url });
      const page = await client.listInterrupts({ limit: 50, ...(cursor && { cursor }) });
      found.push(...page.items.map(({ sessionId }) => sessionId));
      cursor = page.next;
      expect(encodeURIComponent(cursor ?? '').length).toBeLessThan(5000);
    } while (cursor !== undefined);
    expect(found.toSorted()).toEqual(all.toSorted());
  } finally {
    await server.close();
  }
});

test('S565 over HTTP, agents that the caller may not list are left out', async () => {
  await using app = openApp();
  const desk = define(app);
  const till = define(app, 'till');
  await desk.run('pay', { sessionId: 'a', owner: 'ann' });
  await till.run('pay', { sessionId: 'b', owner: 'ann' });
  const asked: string[] = [];
  const server = await serve(app, {
    port: 0,
    log: () => {},
    auth: ({ headers }) => ({ principal: headers.get('authorization') ?? 'nobody' }),
    authorize({ operation, agent, principal }) {
      asked.push(`${principal} ${operation} ${agent}`);
      return agent !== 'till' || principal === 'ann';
    },
  });
  const as = (authorization: string) =>
    createClient({ url: server.url, headers: { authorization } });
  try {
    const first = await as('ann').listInterrupts({ limit: 1 });
    expect(first.items.map(({ sessionId }) => sessionId)).toEqual(['b']);
    const rest = await as('ann').listInterrupts({ cursor: must(first.next) });
    expect(rest.items.map(({ sessionId }) => sessionId)).toEqual(['a']);
    expect(rest.next).toBeUndefined();
    await till.run('pay', { sessionId: 'c', owner: 'cem' });
    await desk.run('pay', { sessionId: 'd', owner: 'cem' });
    const cems = await as('cem').listInterrupts();
    expect(cems.items.map(({ sessionId }) => sessionId)).toEqual(['d']);
    expect(asked).toContain('cem listInterrupts till');
    const [waiting] = cems.items;
    const answers = must(waiting).interrupts.map((each) => each.decline('no'));
    await as('cem').agent('desk').resume(must(waiting), answers);
    expect((await as('cem').listInterrupts()).items).toEqual([]);
  } finally {
    await server.close();
  }
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
