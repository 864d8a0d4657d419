import { afterEach, expect, test } from 'vitest';
import { memoryStore, waymark } from 'waymark';
import { serve } from 'waymark/server';
import { scriptedModel } from 'waymark/testing';
import { z } from 'zod';
import { openStudioFolder } from './support/studio-folder.ts';

const closing: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close();
});

async function setUp({ auth = false } = {}) {
  let booked = 0;
  const seen: { system: string; temperature: unknown }[] = [];
  const model = scriptedModel({
    patterns: [[/^book (\w+)/, ([, what]) => ({ toolCalls: [{ name: 'book', input: { what } }] })]],
    afterTools: (_, [result]) => `Done: ${JSON.stringify(result)}`,
    otherwise: ({ messages, config }) => {
      const [first] = messages;
      const system = first?.role === 'system' ? first.content : [];
      const text = system.map((part) => ('text' in part ? part.text : '')).join('');
      seen.push({ system: text, temperature: config?.temperature });
      if (text === 'Hang.') return { chunks: ['half '], hang: true };
      return `You said ${messages.filter(({ role }) => role === 'user').length} things.`;
    },
  });
  const app = waymark({ model, store: memoryStore() });
  const book = app.defineTool(
    { name: 'book', description: 'Books.', input: z.object({ what: z.string() }) },
    ({ what }, { session }) => {
      booked++;
      session.setCustom({ booked: [what] });
      return { what, number: booked };
    },
  );
  const desk = app.defineAgent({ name: 'desk', system: 'Be brief.', tools: [book] });
  app.defineCustomAgent({ name: 'custom' }, (session) =>
    session.run(() => {
      session.addMessages({ role: 'model', content: [{ text: 'Hi' }] });
    }),
  );
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
  const rerun = async (body: object, signal: AbortSignal | null = null) => {
    const response = await fetch(`${server.url}/studio/rerun`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ agent: 'desk', ...body }),
      signal,
    });
    return { status: response.status, body: await response.json() };
  };
  return { app, desk, seen, rerun, booked: () => booked };
}

test('S491 S492 a turn runs again in a session of its own, with another prompt and settings for this turn only', async () => {
  const { desk, seen, rerun } = await setUp();
  const chat = desk.chat();
  await chat.send('hello');
  const second = await chat.send('again');
  const { status, body } = await rerun({
    snapshotId: second.snapshotId,
    system: 'Be rude.',
    config: { temperature: 0.5 },
  });
  expect(status).toBe(200);
  expect(body).toMatchObject({ turns: 1 });
  expect(body.sessionId).not.toBe(second.sessionId);
  expect(seen.at(-1)).toEqual({ system: 'Be rude.', temperature: 0.5 });
  const replayed = await desk.getSession(body.sessionId);
  expect(replayed).toMatchObject({
    headId: body.snapshotId,
    title: 'hello (replay)',
    metadata: { 'waymark.rerunOf': second.snapshotId },
  });
  expect(replayed?.state?.messages).toHaveLength(4);

  // The original session and the agent are as they were.
  expect((await desk.getSession(second.sessionId))?.headId).toBe(second.snapshotId);
  await chat.send('third');
  expect(seen.at(-1)).toEqual({ system: 'Be brief.', temperature: undefined });
});

test('S493 recorded tools are not executed and repeat what they did to the state; live ones run', async () => {
  const { desk, rerun, booked } = await setUp();
  const { snapshotId } = await desk.run('book hotel');
  expect(booked()).toBe(1);
  const recorded = await rerun({ snapshotId });
  expect(booked()).toBe(1);
  const session = await desk.getSession(recorded.body.sessionId);
  expect(session?.state?.custom).toEqual({ booked: ['hotel'] });
  expect(session?.text).toContain('"number":1');
  const live = await rerun({ snapshotId, tools: 'live' });
  expect(booked()).toBe(2);
  expect((await desk.getSession(live.body.sessionId))?.text).toContain('"number":2');
});

test('S491 a conversation runs again from its start, and its answers carry forward', async () => {
  const { desk, rerun } = await setUp();
  const chat = desk.chat();
  await chat.send('book hotel');
  await chat.send('hello');
  const last = await chat.send('bye');
  const { body } = await rerun({ snapshotId: last.snapshotId, scope: 'conversation' });
  expect(body.turns).toBe(3);
  const { items } = await desk.listSnapshots(body.sessionId);
  expect(items.map(({ turnIndex }) => turnIndex)).toEqual([0, 1, 2]);
});

test.each(['turn', 'conversation'])(
  'S491 a rerun of a %s stops when the client leaves, and its session is deleted',
  async (scope) => {
    const { desk, seen, rerun } = await setUp();
    const chat = desk.chat();
    await chat.send('hello');
    const { snapshotId } = await chat.send('again');
    const client = new AbortController();
    const asked = rerun({ snapshotId, scope, system: 'Hang.' }, client.signal);
    await expect.poll(() => seen.at(-1)?.system).toBe('Hang.');
    expect((await desk.listSessions()).items).toHaveLength(2);
    client.abort();
    await expect(asked).rejects.toThrow();
    await expect.poll(async () => (await desk.listSessions()).items.length).toBe(1);
    expect(seen.filter(({ system }) => system === 'Hang.')).toHaveLength(1);
  },
);

test('S492 what cannot run again is refused with a reason, and clients of a server with auth cannot ask for it', async () => {
  const { app, desk, rerun } = await setUp();
  const custom = await app.agent('custom').run('hi');
  const refused = await rerun({ agent: 'custom', snapshotId: custom.snapshotId });
  expect(refused.status).toBe(400);
  expect(JSON.stringify(refused.body)).toContain('custom agent');
  const { snapshotId } = await desk.run('hello');
  const edited = await desk.edit(snapshotId ?? '', {
    artifacts: [{ name: 'a', parts: [{ text: 'A' }] }],
  });
  const noTurn = await rerun({ snapshotId: edited.snapshotId });
  expect(JSON.stringify(noTurn.body)).toContain('not the end of a turn');
  const unknown = await rerun({ snapshotId: '00000000-0000-4000-8000-000000000000' });
  expect(unknown.status).toBe(404);
  const badModel = await rerun({ snapshotId, model: 'no/such' });
  expect(badModel.status).toBe(400);
  expect((await desk.listSessions()).items).toHaveLength(1);

  const guarded = await setUp({ auth: true });
  expect((await guarded.rerun({ snapshotId })).status).toBe(404);
});
