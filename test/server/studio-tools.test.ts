import { request } from 'node:http';
import { afterEach, expect, test } from 'vitest';
import { memoryStore, waymark } from 'waymark';
import { serve } from 'waymark/server';
import { scriptedModel } from 'waymark/testing';
import { z } from 'zod';
import { rawServer } from '../mcp/support/raw.ts';
import { openStudioFolder } from '../replay/support/studio-folder.ts';

const closing: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close();
});

async function setUp({ auth = false } = {}) {
  let count = 0;
  let release = (): void => {};
  const held = new Promise<void>((resolve) => {
    release = resolve;
  });
  const app = waymark({ model: scriptedModel([]), store: memoryStore(), onError: () => {} });
  const state = z.object({ likes: z.array(z.string()) });
  const like = app.defineTool(
    { name: 'like', description: 'Notes a taste.', input: z.object({ what: z.string() }), state },
    ({ what }, { session, attach }) => {
      count++;
      session.updateCustom((draft) => void draft.likes.push(what));
      attach({ text: 'attached' });
      return { count };
    },
  );
  const slow = app.defineTool({ name: 'slow', description: 'Waits.' }, async () => {
    count++;
    await held;
    return count;
  });
  const broken = app.defineTool({ name: 'broken', description: 'Fails.' }, () => {
    throw new Error('The disk is full.', { cause: new TypeError('no space') });
  });
  const raw = rawServer('raw');
  const down = rawServer('down', 'exit');
  app.defineAgent({
    name: 'desk',
    system: 'Help.',
    state,
    initialState: { likes: ['tea'] },
    tools: [like, slow, broken, raw.only('echo', 'ask'), down],
  });
  await app.ready();
  const studio = await openStudioFolder();
  const server = await serve(app, {
    port: 0,
    studio: studio.path,
    log: () => {},
    grace: 50,
    ...(auth && { auth: () => ({ principal: 'ann' }) }),
  });
  closing.push(
    () => studio.remove(),
    () => app.close(),
    () => server.close(),
  );
  const run = async (body: object, headers: Record<string, string> = {}) => {
    const response = await fetch(`${server.url}/studio/tools/run`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', ...headers },
      body: JSON.stringify({ id: crypto.randomUUID(), ...body }),
    });
    return { status: response.status, body: await response.json() };
  };
  const sources = () => fetch(`${server.url}/studio/sources`);
  return { server, run, sources, count: () => count, release: () => release() };
}

test('S551 Studio calls a single tool of an agent, on the initial state, and saves nothing', async () => {
  const { run } = await setUp();
  const first = await run({ agent: 'desk', tool: 'like', input: { what: 'jazz' } });
  expect(first).toMatchObject({
    status: 200,
    body: {
      output: { count: 1 },
      content: [{ text: 'attached' }],
      custom: { likes: ['tea', 'jazz'] },
    },
  });
  const second = await run({ agent: 'desk', tool: 'like', input: { what: 'go' } });
  expect(second.body.custom).toEqual({ likes: ['tea', 'go'] });
  const failed = await run({ agent: 'desk', tool: 'broken' });
  expect(failed.body.failed).toMatchObject({ status: 'INTERNAL', message: 'The disk is full.' });
  expect(failed.body.failed.stack).toMatch(
    /studio-tools\.test\.ts[\s\S]*Caused by: TypeError: no space/,
  );
  const wrong = await run({ agent: 'desk', tool: 'like', input: { what: 7 } });
  expect(wrong.body.failed).toMatchObject({ status: 'INVALID_ARGUMENT' });
  const unknown = await run({ agent: 'desk', tool: 'lik' });
  expect(unknown.body.failed.message).toContain('has no tool "lik". It has like,');
  expect((await run({ agent: 'nobody', tool: 'like' })).status).toBe(404);
});

test('S551 a call that arrives twice runs the tool once, also while it still runs', async () => {
  const { run, count, release } = await setUp();
  const id = crypto.randomUUID();
  const both = [1, 2].map(() => run({ id, agent: 'desk', tool: 'slow' }));
  await expect.poll(count).toBe(1);
  release();
  for (const { body } of await Promise.all(both)) expect(body.output).toBe(1);
  expect((await run({ id, agent: 'desk', tool: 'slow' })).body.output).toBe(1);
  expect(count()).toBe(1);
});

test('S551 tools of MCP servers are called too, and their questions can be answered', async () => {
  const { run } = await setUp();
  const echo = await run({ source: 'raw', tool: 'raw_echo', input: { text: 'hi' } });
  expect(echo.body.output).toBe('echo hi');
  const call = { agent: 'desk', tool: 'raw_ask' };
  const { interrupted } = (await run(call)).body;
  expect(interrupted).toMatchObject({ message: 'Your name?', schema: { type: 'object' } });
  const resumed = { action: 'accept', content: { value: 'Ada' } };
  const next = (await run({ ...call, answer: { interrupted, resumed } })).body.interrupted;
  expect(next).toMatchObject({ message: 'Your age?' });
  const wrong = await run({ ...call, answer: { interrupted: next, resumed: 'Ada' } });
  expect(wrong.body.failed.message).toContain('This does not answer the question.');
  const last = { action: 'accept', content: { value: '36' } };
  const done = await run({ ...call, answer: { interrupted: next, resumed: last } });
  expect(done.body.output).toContain('"value":"36"');
  expect((await run({ source: 'gone', tool: 'x' })).body.failed).toMatchObject({
    status: 'NOT_FOUND',
  });
});

test('S550 Studio lists the tool sources with their state', async () => {
  const { sources } = await setUp();
  const { items } = await (await sources()).json();
  expect(items).toMatchObject([
    { name: 'raw', connections: [{ state: 'connected' }] },
    {
      name: 'down',
      connections: [{ state: 'failed', lastError: { message: expect.any(String) } }],
    },
  ]);
  const [{ connections }] = items;
  expect(connections[0].tools).toContainEqual(
    expect.objectContaining({ name: 'raw_remove', hints: { destructiveHint: true } }),
  );
});

test('S551 only the person at this machine can do so', async () => {
  const { server, run, count } = await setUp();
  const call = { agent: 'desk', tool: 'slow' };
  expect((await run(call, { origin: 'https://evil.example' })).status).toBe(403);
  expect((await run(call, { 'x-forwarded-for': '10.0.0.1' })).status).toBe(403);
  const asked = await new Promise<number | undefined>((resolve, reject) => {
    const headers = { host: 'evil.example' };
    request(`${server.url}/studio/sources`, { headers }, ({ statusCode }) => resolve(statusCode))
      .on('error', reject)
      .end();
  });
  expect(asked).toBe(403);
  const { run: runAs, sources } = await setUp({ auth: true });
  expect((await runAs(call)).status).toBe(404);
  expect((await sources()).status).toBe(404);
  expect(count()).toBe(0);
});
