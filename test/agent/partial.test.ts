import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type Agent, type App, memoryStore, type Store, waymark } from 'waymark';
import { createClient } from 'waymark/client';
import { fileStore } from 'waymark/file';
import { postgresStore } from 'waymark/postgres';
import { serve } from 'waymark/server';
import { sqliteStore } from 'waymark/sqlite';
import { scriptedModel } from 'waymark/testing';
import { z } from 'zod';
import { movableClock } from '../support/movable-clock.ts';
import { startPostgres, type TestPostgres } from '../support/postgres.ts';
import { mortalStore } from './support/mortal-store.ts';

let postgres: TestPostgres;
let folder: string;
beforeAll(async () => {
  postgres = await startPostgres();
  folder = await mkdtemp(join(tmpdir(), 'partial-'));
});
afterAll(async () => {
  await postgres.stop();
  await rm(folder, { recursive: true, force: true });
});

const stores: Readonly<Record<string, () => Store>> = {
  memory: () => memoryStore(),
  file: () => fileStore(join(folder, 'files')),
  SQLite: () => sqliteStore(join(folder, 'partial.db')),
  Postgres: () => postgresStore({ connectionString: postgres.connectionString }),
};

function openApp(options: Parameters<typeof waymark>[0] = {}): App {
  const model = scriptedModel({
    patterns: [
      [/^hang/, { chunks: ['half ', 'an answer'], hang: true }],
      [/^note/, { toolCalls: [{ name: 'note' }] }],
    ],
    afterTools: () => ({ chunks: ['noted'], hang: true }),
    otherwise: ({ messages }) => `Answer ${messages.filter(({ role }) => role === 'user').length}.`,
  });
  const app = waymark({ model, onError: () => {}, ...options });
  const note = app.defineTool(
    { name: 'note', description: 'Takes a note', input: z.object({}) },
    async (_, { session }) => {
      session.updateCustom((custom) => {
        (custom as { notes: number }).notes++;
      });
      return 'ok';
    },
  );
  app.defineAgent({
    name: 'chat',
    state: z.object({ notes: z.number() }),
    initialState: { notes: 0 },
    tools: [note],
  });
  return app;
}

/** Starts a run in the background, aborts it once it has said something, and waits for its partial state. */
async function abortRun(agent: Agent, text: string, options: object = {}): Promise<string> {
  const run = await agent.start(text, options);
  for await (const event of run.watch()) {
    const part = event.type === 'chunk' && event.chunk.modelChunk?.content[0];
    if (part && 'text' in part && part.text !== '') break;
  }
  await run.abort();
  await expect
    .poll(async () => (await agent.getSnapshot(run.id))?.state?.messages?.at(-1)?.role)
    .toBe('model');
  return run.id;
}

function told(messages: readonly { role: string; content: readonly object[] }[] = []): string[] {
  return messages.map(({ role, content }) => `${role}: ${JSON.stringify(content[0]).slice(0, 40)}`);
}

test.each(Object.keys(stores))(
  'S721 a session continues from the partial state of an aborted background run, on a %s store',
  async (name) => {
    const store = stores[name]?.() as Store;
    const app = openApp({ store });
    const agent = app.agent('chat') as Agent;
    const first = await agent.run('hello');
    const { sessionId } = first;
    const run = await abortRun(agent, 'note it', { sessionId });
    const before = await agent.getSnapshot(run);
    await expect(agent.run('more', { snapshotId: run })).rejects.toMatchObject({
      status: 'FAILED_PRECONDITION',
    });
    const restored = await agent.restore(run, { partial: true, ifHead: first });
    expect(restored).toMatchObject({
      event: 'edit',
      status: 'succeeded',
      finishReason: 'aborted',
      parentId: first.snapshotId,
      turnIndex: 1,
      stateHash: before?.stateHash,
      edit: { reason: `Partial state of the aborted run ${run}.` },
      state: { custom: { notes: 1 } },
    });
    // The aborted snapshot stays as it was.
    expect(await agent.getSnapshot(run)).toEqual(before);
    const session = await agent.getSession(sessionId);
    expect(session).toMatchObject({ headId: restored.snapshotId, turnCount: 2 });
    const next = await agent.run('more', { sessionId });
    expect(next.text).toBe('Answer 3.');
    const { messages = [] } = (await agent.getSnapshot(next))?.state ?? {};
    expect(told(messages)).toEqual([
      ...told(before?.state?.messages),
      'user: {"text":"more"}',
      'model: {"text":"Answer 3."}',
    ]);
    // The messages of the partial turn are marked, as those of any turn.
    expect(messages.flatMap(({ metadata }) => metadata?.snapshotId ?? [])).toEqual([
      first.snapshotId,
      restored.snapshotId,
      next.snapshotId,
    ]);
    expect(await store.maintenance?.verify()).toEqual([]);
    await app.close();
  },
);

test('S721 the first turn of a session, over HTTP, as the caller', async () => {
  const app = openApp({ store: memoryStore() });
  const server = await serve(app, {
    port: 0,
    log: () => {},
    auth: ({ headers }) => ({ principal: headers.get('x-user') ?? '' }),
  });
  const agentOf = (user: string) =>
    createClient({ url: server.url, headers: { 'x-user': user } }).agent('chat');
  const agent = agentOf('ada');
  const run = await abortRun(agent as unknown as Agent, 'hang');
  await expect(agentOf('bob').restore(run, { partial: true })).rejects.toMatchObject({
    status: 'NOT_FOUND',
  });
  const restored = await agent.restore(run, { partial: true });
  expect(restored).toMatchObject({ event: 'edit', turnIndex: 0, edit: { by: 'ada' } });
  expect(restored.parentId).toBeUndefined();
  const next = await agent.run('more', { sessionId: restored.sessionId });
  expect(next.text).toBe('Answer 2.');
  await server.close();
  await app.close();
});

test('S721 only the partial state of an aborted run can be restored', async () => {
  const app = openApp({ store: memoryStore() });
  const agent = app.agent('chat') as Agent;
  const done = await agent.run('hello');
  const refusal = { status: 'FAILED_PRECONDITION' };
  await expect(agent.restore(done, { partial: true })).rejects.toMatchObject(refusal);
  const { sessionId } = done;
  const run = await agent.start('hang', { sessionId });
  await expect(agent.restore(run.id, { partial: true })).rejects.toMatchObject(refusal);
  await run.abort();
  const unknown = '0193b7a0-0000-7000-8000-000000000000';
  await expect(agent.restore(unknown, { partial: true })).rejects.toMatchObject({
    status: 'NOT_FOUND',
  });
  const other = await agent.run('more', { sessionId });
  await expect(agent.restore(run.id, { partial: true, ifHead: done })).rejects.toMatchObject({
    status: 'ABORTED',
    details: { headId: other.snapshotId },
  });
  expect((await agent.getSession(sessionId))?.headId).toBe(other.snapshotId);
  await app.close();
});

test('S721 of a run whose worker died, the last checkpoint is restored', async () => {
  const { clock } = movableClock();
  const store = memoryStore({ clock });
  const line = mortalStore(store);
  const dying = openApp({ clock, store: line });
  const run = await dying.agent('chat').start('note it');
  for await (const event of run.watch()) {
    const part = event.type === 'chunk' && event.chunk.modelChunk?.content[0];
    if (part && 'text' in part) break;
  }
  line.cut();
  const app = openApp({ clock, store });
  const agent = app.agent('chat') as Agent;
  await agent.abort(run.id);
  const restored = await agent.restore(run.id, { partial: true });
  expect(restored.state?.messages?.[0]).toMatchObject({ role: 'user' });
  expect((await agent.run('more', { sessionId: run.sessionId })).text).toBe('Answer 2.');
  await line.heal();
  await Promise.all([app.close({ grace: 0 }), dying.close({ grace: 0 })]);
});
