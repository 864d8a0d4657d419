import { afterEach, expect, test } from 'vitest';
import { type App, memoryStore, type Store, waymark } from 'waymark';
import {
  contains,
  exact,
  judge,
  matchesSchema,
  recordedSession,
  replay,
  scriptedModelFrom,
} from 'waymark/replay';
import 'waymark/replay/vitest';
import { scriptedModel } from 'waymark/testing';
import { z } from 'zod';

const closers: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const close of closers.splice(0)) await close();
});

/** An agent that repeats what was said so far, so that each answer depends on those before it. */
function open(greeting = 'Hi'): App {
  const model = scriptedModel({
    patterns: [[/pay/, { toolCalls: [{ name: 'pay' }] }]],
    afterTools: (_, results) => JSON.stringify(results),
    otherwise: ({ messages }) => {
      const said = messages.filter(({ role }) => role === 'model').length;
      const system = messages.find(({ role }) => role === 'system');
      return `${greeting} ${said} ${JSON.stringify(system?.content ?? '')}`;
    },
  });
  const app = waymark({ model, store: memoryStore(), onError: () => {} });
  closers.push(() => app.close());
  const pay = app.defineInterrupt({ name: 'pay', description: 'Asks.' });
  app.defineAgent({ name: 'chat', system: 'Be brief.', tools: [pay] });
  return app;
}

async function record(app: App): Promise<string> {
  const chat = app.agent('chat');
  const { sessionId } = await chat.run('one');
  await chat.run('two', { sessionId });
  const asked = await chat.run('pay', { sessionId });
  await chat.resume(
    asked,
    asked.interrupts.map((each) => each.respond('yes')),
  );
  return sessionId;
}

test('S425 a changed prompt or model is seen where it matters; ignored kinds and paths do not count', async () => {
  const app = open();
  const sessionId = await record(app);
  const report = await replay(app, { sessions: sessionId, with: { system: 'Be wordy.' } });
  const found = report.turns.map(({ divergences }) => divergences.map(({ path }) => path));
  expect(found).toEqual([['/text'], ['/text'], [], []]);
  expect(report.turns[0]?.replayed.text).toContain('Be wordy.');
  expect(report).not.toMatchRecording();
  expect(report).toMatchRecording({ ignore: ['text'] });
  expect(report.turns[2]).toMatchRecording();
  expect(() => expect(report).toMatchRecording()).toThrow(/turn 1 \/text: .*Be brief.*Be wordy/);
  const ignored = await replay(app, {
    sessions: sessionId,
    with: { app: open('Hello') },
    ignore: ['/text'],
  });
  expect(ignored.same).toBe(true);
  const slower = scriptedModel({
    patterns: [],
    otherwise: { text: 'x', usage: { totalTokens: 99 } },
  });
  const tokens = await replay(app, {
    sessions: sessionId,
    with: { model: slower },
    ignore: ['text', 'toolCall', 'finishReason'],
    tolerance: { tokens: 1.5 },
  });
  expect(tokens.turns[0]?.divergences).toMatchObject([{ path: '/tokens', replayed: 99 }]);
});

test('S425 in a conversation the new answers carry forward, and interrupts are answered as they were', async () => {
  const app = open();
  const sessionId = await record(app);
  const same = await replay(app, { sessions: sessionId, mode: 'conversation' });
  expect(same.turns).toHaveLength(4);
  expect(same).toMatchRecording();
  // Without its tool call, there is nothing to answer.
  const mute = scriptedModel({ patterns: [], otherwise: 'No.' });
  const changed = await replay(app, {
    sessions: sessionId,
    mode: 'conversation',
    with: { model: mute },
  });
  expect(changed.turns).toHaveLength(3);
  expect(changed.skipped).toMatchObject([{ turnIndex: 3 }]);
  expect(changed.skipped[0]?.reason).toContain('interrupt');
});

test('S423 calls that a plain message declined are not calls of its turn', async () => {
  const app = open();
  const chat = app.agent('chat');
  const { sessionId } = await chat.run('pay');
  await chat.run('pay', { sessionId });
  const report = await replay(app, {
    sessions: sessionId,
    with: (session) => ({ model: scriptedModelFrom(session) }),
  });
  expect(report.turns.map(({ recorded }) => recorded.toolCalls.length)).toEqual([1, 1]);
  expect(report).toMatchRecording();
});

test('S431 a budget ends the replay, and a judge has one of its own', async () => {
  const app = open();
  const sessionId = await record(app);
  const cut = await replay(app, { sessions: sessionId, budget: { turns: 2 } });
  expect(cut).toMatchObject({ stopped: 'budget', turns: [{}, {}] });
  const tokens = await replay(app, { sessions: sessionId, budget: { tokens: 1 } });
  expect(tokens.turns).toHaveLength(1);
  const referee = scriptedModel(
    Array.from({ length: 9 }, () => JSON.stringify({ score: 0.5, reason: 'So so.' })),
  );
  const report = await replay(app, {
    sessions: sessionId,
    score: [
      exact('custom'),
      contains('text', 'Hi'),
      matchesSchema('toolCalls', z.array(z.object({ name: z.literal('pay') }))),
      function short({ replayed }) {
        return replayed.messages.length < 3;
      },
      judge(referee, 'It is polite.', { budget: { calls: 2 } }),
    ],
    concurrency: 1,
  });
  expect(report.scores).toEqual({
    'exact custom': 1,
    'text contains "Hi"': 0.5,
    'schema of toolCalls': 1,
    short: 1,
    'It is polite.': 0.25,
  });
  expect(report.turns[3]?.scores.at(-1)?.reason).toContain('used up');
  expect(JSON.stringify(referee.requests[0]?.messages)).toContain('It is polite.');
});

test('S423 the recorded answers also serve a test that talks to the agent itself', async () => {
  const app = open();
  const sessionId = await record(app);
  const document = await (app.store as Store).maintenance?.exportSession(
    { agent: 'chat' },
    sessionId,
  );
  if (document === undefined) expect.fail('nothing was exported');
  const session = recordedSession(document);
  expect(session.turns.map(({ toolCalls }) => toolCalls.length)).toEqual([0, 0, 1, 1]);
  const model = scriptedModelFrom(session);
  const chat = open('Other').agent('chat');
  const first = await chat.run('one', { model });
  expect(first.text).toContain('Hi 0');
  const second = await chat.run('two', { model, sessionId: first.sessionId });
  expect(second.text).toContain('Hi 1');
  const asked = await chat.run('pay', { model, sessionId: first.sessionId });
  const answers = asked.interrupts.map((each) => each.respond('yes'));
  expect((await chat.resume(asked, answers, { model })).text).toBe('["yes"]');
  await expect(chat.run('never said', { model })).rejects.toThrow('has no recorded answer');
});
