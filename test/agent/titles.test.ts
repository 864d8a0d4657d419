import { expect, test, vi } from 'vitest';
import { z } from 'zod';
import { memoryStore, waymark } from '../../src/index.ts';
import { scriptedModel } from '../../src/testing/scripted-model.ts';

const model = scriptedModel({
  patterns: [[/fail/, { error: new Error('The model broke.') }]],
  otherwise: 'Hello.',
});

function createApp(onError?: (error: unknown, info: object) => void) {
  return waymark({ model, store: memoryStore(), ...(onError && { onError }) });
}

test('S273: the default title is one line of at most 80 characters', async () => {
  const chat = createApp().defineAgent({ name: 'chat' });
  const { sessionId } = await chat.run(`Plan\n\n  a trip ${'🚲 '.repeat(100)}`);
  const title = (await chat.getSession(sessionId))?.title ?? '';
  expect(title).toMatch(/^Plan a trip 🚲 🚲.*🚲…$/u);
  expect([...title].length).toBeLessThanOrEqual(80);
});

test('S273: a message without text gives no title, and no later one does', async () => {
  const chat = createApp().defineAgent({ name: 'chat' });
  const media = { url: 'data:image/png;base64,', contentType: 'image/png' };
  const { sessionId } = await chat.run({ role: 'user', content: [{ media }] });
  await chat.run('What is it?', { sessionId });
  expect((await chat.getSession(sessionId))?.title).toBeUndefined();
});

test('S273: an agent makes its own titles, or none', async () => {
  const app = createApp();
  const options = {
    state: z.object({ city: z.string() }),
    initialState: { city: 'Lisbon' },
  };
  const trips = app.defineAgent({
    ...options,
    name: 'trips',
    title: ({ custom, messages }) => `${custom.city} in ${messages.length} messages`,
  });
  const silent = app.defineAgent({ ...options, name: 'silent', title: false });
  const unsure = app.defineAgent({ ...options, name: 'unsure', title: () => undefined });
  expect((await trips.getSession((await trips.run('hi')).sessionId))?.title).toBe(
    'Lisbon in 2 messages',
  );
  for (const agent of [silent, unsure]) {
    const { sessionId } = await agent.run('hi');
    expect((await agent.getSession(sessionId))?.title).toBeUndefined();
  }
});

test('S273: a title that cannot be made is reported, and the turn succeeds', async () => {
  const onError = vi.fn();
  const chat = createApp(onError).defineAgent({
    name: 'chat',
    title() {
      throw new Error('No title.');
    },
  });
  const { sessionId, text } = await chat.run('hi');
  expect(text).toBe('Hello.');
  expect((await chat.getSession(sessionId))?.title).toBeUndefined();
  expect(onError).toHaveBeenCalledExactlyOnceWith(
    expect.objectContaining({ message: 'No title.' }),
    expect.objectContaining({ phase: 'hook', agent: 'chat', sessionId }),
  );
});

test('S272: a session whose first turn failed has its title and is listed as failed', async () => {
  const chat = createApp(() => {}).defineAgent({ name: 'chat' });
  await chat.run('this must fail', { throwOnError: false });
  await chat.run('this is fine');
  expect((await chat.listSessions({ failed: true })).items).toMatchObject([
    { title: 'this must fail' },
  ]);
});

test('S273: a fork is called after the session it was forked from', async () => {
  const app = createApp();
  const chat = app.defineAgent({ name: 'chat' });
  const first = await chat.run('Plan a trip');
  const titleOf = async ({ sessionId }: { sessionId: string }) =>
    (await chat.getSession(sessionId))?.title;
  const fork = await chat.fork(first);
  expect(await titleOf(fork)).toBe('Plan a trip (fork)');
  // Later turns, and forks of a fork, do not add to it.
  const second = await chat.run('By bike', { sessionId: fork.sessionId });
  expect(await titleOf(second)).toBe('Plan a trip (fork)');
  expect(await titleOf(await chat.fork(second))).toBe('Plan a trip (fork)');
  await chat.updateSession(first.sessionId, { title: 'Lisbon' });
  expect(await titleOf(await chat.fork(first))).toBe('Lisbon (fork)');
  const silent = app.defineAgent({ name: 'silent', title: false });
  const { sessionId } = await silent.fork(await silent.run('hi'));
  expect((await silent.getSession(sessionId))?.title).toBeUndefined();
});

test('S273: a background run gives its session a title', async () => {
  const chat = createApp().defineAgent({ name: 'chat' });
  const run = await chat.start('In the background');
  await run.wait();
  expect((await chat.getSession(run.sessionId))?.title).toBe('In the background');
});
