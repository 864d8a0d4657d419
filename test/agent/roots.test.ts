import { afterEach, expect, test } from 'vitest';
import { type App, memoryStore, type Store, waymark } from 'waymark';
import { replay } from 'waymark/replay';
import { scriptedModel } from 'waymark/testing';

const closers: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const close of closers.splice(0)) await close();
});

function open(options: Parameters<App['defineAgent']>[0] = { name: 'chat' }): App {
  const model = scriptedModel({
    patterns: [[/^use (\d+)/, ([, n]) => ({ text: 'used', usage: { totalTokens: Number(n) } })]],
    otherwise: ({ messages }) => `Answer ${messages.length}.`,
  });
  const app = waymark({ model, store: memoryStore(), onError: () => {} });
  closers.push(() => app.close());
  app.defineAgent({
    ...options,
    messages: [{ role: 'model', content: [{ text: 'Welcome.' }] }],
  });
  return app;
}

function maintenanceOf({ store }: App): NonNullable<Store['maintenance']> {
  return (store as Store).maintenance ?? expect.fail('The store has no maintenance.');
}

test('S720: a second root starts as the first one did, and both are kept', async () => {
  const app = open();
  const agent = app.agent('chat');
  const { sessionId, ...first } = await agent.run('one');
  const second = await agent.run('two', { sessionId });
  const other = await agent.run('uno', { sessionId, from: null });
  expect(other.sessionId).toBe(sessionId);
  const shot = await agent.getSnapshot(other);
  expect(shot?.state?.messages?.map(({ content }) => content[0])).toMatchObject([
    { text: 'Welcome.' },
    { text: 'uno' },
    { text: 'Answer 2.' },
  ]);
  expect(await agent.getSession(sessionId)).toMatchObject({
    headId: other.snapshotId,
    turnCount: 1,
    title: 'one',
  });
  // The session continues on the new root, and the other one can be restored, forked and compared.
  await agent.run('dos', { sessionId });
  expect((await agent.listSnapshots(sessionId)).items.map(({ turnIndex }) => turnIndex)).toEqual([
    0, 1,
  ]);
  const fork = await agent.fork(first.snapshotId ?? '');
  expect((await agent.getSession(fork.sessionId))?.state?.messages).toHaveLength(3);
  const { messages } = await agent.diff(second, other);
  expect([messages.removed.length, messages.added.length]).toEqual([4, 2]);
  await agent.restore(second);
  expect((await agent.getSession(sessionId))?.state?.messages).toHaveLength(5);
});

test('S720: a session with two roots is exported, imported, replayed, pruned and verified', async () => {
  const app = open();
  const agent = app.agent('chat');
  const { sessionId } = await agent.run('one');
  await agent.run('two', { sessionId });
  const other = await agent.run('uno', { sessionId, from: null });
  const scope = { agent: 'chat' };
  const document =
    (await maintenanceOf(app).exportSession(scope, sessionId)) ??
    expect.fail('There is no session.');
  const copy = open();
  await maintenanceOf(copy).importSession(scope, document);
  const tree = async (of: App): Promise<unknown> =>
    (await of.agent('chat').listSnapshots(sessionId, { includeOrphaned: true })).items.map(
      ({ turnIndex, parentId, orphaned }) => [turnIndex, parentId === undefined, orphaned],
    );
  expect(await tree(copy)).toEqual([
    [0, true, true],
    [1, false, true],
    [0, true, false],
  ]);
  expect(await replay(app, { sessions: sessionId })).toMatchObject({
    same: true,
    turns: [{}, {}, {}],
    skipped: [],
  });
  await maintenanceOf(copy).prune({ keepLast: 1 });
  expect(await tree(copy)).toEqual([[0, true, false]]);
  expect((await copy.agent('chat').getSession(sessionId))?.headId).toBe(other.snapshotId);
  expect(await maintenanceOf(copy).verify()).toEqual([]);
  expect(await maintenanceOf(app).verify()).toEqual([]);
});

test('S720: a chat, a background run and a repeated request can begin another root', async () => {
  const app = open();
  const agent = app.agent('chat');
  const { sessionId } = await agent.run('one');
  await agent.run('two', { sessionId });
  const chat = agent.chat({ sessionId, from: null });
  expect(chat).toMatchObject({ sessionId, snapshotId: undefined });
  await chat.send('uno');
  const { snapshotId } = await chat.send('dos');
  expect((await agent.getSnapshot(snapshotId ?? ''))?.turnIndex).toBe(1);
  const run = await agent.start('tres', { sessionId, from: null });
  await run.wait();
  expect(await agent.getSnapshot(run.id)).toMatchObject({
    status: 'succeeded',
    turnIndex: 0,
    sessionId,
  });
  const once = await agent.run('x', { sessionId, from: null, requestId: 'once' });
  const again = await agent.run('x', { sessionId, from: null, requestId: 'once' });
  expect(again.snapshotId).toBe(once.snapshotId);
});

test('S720: another root does not give back the tokens of a session', async () => {
  const app = open({ name: 'chat', limits: { session: { tokens: 100 } } });
  const agent = app.agent('chat');
  const { sessionId } = await agent.run('use 80');
  await agent.run('use 30', { sessionId, from: null });
  await expect(agent.run('use 1', { sessionId, from: null })).rejects.toMatchObject({
    status: 'RESOURCE_EXHAUSTED',
  });
});
