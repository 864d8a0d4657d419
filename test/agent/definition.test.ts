import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import { waymark } from '../../src/app.ts';
import { lastMessages } from '../../src/generate/answer/history.ts';
import { on } from '../../src/session/policy.ts';
import { memoryStore } from '../../src/store/memory/memory-store.ts';
import { scriptedModel } from '../../src/testing/scripted-model.ts';
import { modelSays, must, openApp, refused, say, told, userSays } from './support/kit.ts';

test('S1 names are the app’s own: taken ones and unknown ones are refused', async () => {
  await using app = openApp();
  await using other = openApp();
  const model = scriptedModel([]);
  app.defineAgent({ name: 'chat', model });
  expect(() => app.defineAgent({ name: 'chat', model })).toThrow(
    expect.objectContaining({ status: 'ALREADY_EXISTS' }),
  );
  expect(app.agent('chat').name).toBe('chat');
  expect(app.agents().map(({ name }) => name)).toEqual(['chat']);
  expect(() => other.agent('chat')).toThrow(expect.objectContaining({ status: 'NOT_FOUND' }));
});

test('S2 an agent takes every option of a generate call', async () => {
  await using app = openApp();
  const model = scriptedModel([
    { toolCalls: [{ name: 'look' }] },
    { toolCalls: [{ name: 'look' }] },
    { toolCalls: [{ name: 'look' }] },
  ]);
  app.defineTool({ name: 'look', description: 'Looks.' }, () => 'seen');
  const seen: string[] = [];
  const chat = app.defineAgent({
    name: 'chat',
    model,
    system: 'Be kind.',
    tools: ['look'],
    toolChoice: 'required',
    config: { temperature: 0.5 },
    docs: ['A document.'],
    maxTurns: 2,
    use: [
      {
        model: (step, next) => {
          seen.push(step.model.name);
          return next(step);
        },
      },
    ],
  });
  const output = await chat.runText('hello', { throwOnError: false });
  expect(output).toMatchObject({ finishReason: 'failed', error: { status: 'RESOURCE_EXHAUSTED' } });
  expect(model.requests).toHaveLength(3);
  expect(seen).toEqual(['scripted', 'scripted', 'scripted']);
  expect(model.requests[0]).toMatchObject({
    config: { temperature: 0.5 },
    toolChoice: 'required',
    tools: [{ name: 'look' }],
  });
  expect(told(model.requests[0]?.messages)[1]).toContain('A document.');
});

describe('an agent over an existing prompt', () => {
  const open = (): { app: ReturnType<typeof openApp>; model: ReturnType<typeof scriptedModel> } => {
    const app = openApp();
    const model = scriptedModel(['one', 'two', 'three']);
    return { app, model };
  };

  test('S2 S3 S6 its settings are defaults, and what it renders is stored nowhere', async () => {
    const { app, model } = open();
    await using _ = app;
    const unused = scriptedModel([], { name: 'unused' });
    const role = app.definePrompt({
      name: 'role',
      model: unused,
      config: { temperature: 1, topK: 3 },
      input: z.object({ role: z.string() }),
      system: 'You are a {{role}}.',
      messages: [userSays('An example.'), modelSays('Its answer.')],
    });
    for (const prompt of [role, 'role'] as const) {
      const agent = app.defineAgent({
        name: `chat-${typeof prompt}`,
        prompt,
        promptInput: { role: 'poet' },
        model,
        config: { temperature: 0 },
      });
      const { sessionId } = await agent.runText('hello');
      const request = must(model.requests.at(-1));
      expect(told(request.messages)).toEqual([
        'system: You are a poet.',
        'user: An example.',
        'model: Its answer.',
        'user: hello',
      ]);
      expect(request.config).toEqual({ temperature: 0 });
      const { state } = must(await agent.getSession(sessionId));
      expect(told(state?.messages)).toHaveLength(2);
    }
    expect(unused.requests).toEqual([]);
  });

  test('S3 its own system prompt takes the place of the prompt’s', async () => {
    const { app, model } = open();
    await using _ = app;
    const prompt = app.definePrompt({ name: 'base', system: 'From the prompt.' });
    await app.defineAgent({ name: 'chat', prompt, system: 'Its own.', model }).runText('hello');
    expect(told(model.requests[0]?.messages)).toEqual(['system: Its own.', 'user: hello']);
  });

  test('S4 the prompt input is checked at the definition, or at ready when only the name is known', async () => {
    const { app, model } = open();
    await using _ = app;
    const role = app.definePrompt({
      name: 'role',
      input: z.object({ role: z.string() }),
      system: '{{role}}',
    });
    expect(() =>
      app.defineAgent({
        name: 'wrong',
        prompt: role,
        // @ts-expect-error the prompt takes a string
        promptInput: { role: 1 },
        model,
      }),
    ).toThrow(expect.objectContaining({ status: 'INVALID_ARGUMENT' }));
    const byDefault = app.definePrompt({
      name: 'default',
      input: z.object({ role: z.string() }),
      defaultInput: { role: 'poet' },
      system: '{{role}}',
    });
    app.defineAgent({ name: 'default-agent', prompt: byDefault, model });
    app.defineAgent({ name: 'named', prompt: 'role', promptInput: { role: 1 }, model });
    await refused(app.ready(), 'INVALID_ARGUMENT');
  });
});

test('S5 the agent’s messages are stored once, at the beginning of a session', async () => {
  await using app = openApp();
  const model = scriptedModel(['one', 'two']);
  const chat = app.defineAgent({
    name: 'chat',
    model,
    messages: [userSays('I learn.'), modelSays('Good.')],
  });
  const { sessionId } = await chat.runText('a');
  await chat.runText('b', { sessionId });
  const { state } = must(await chat.getSession(sessionId));
  expect(told(state?.messages)).toEqual([
    'user: I learn.',
    'model: Good.',
    'user: a',
    'model: one',
    'user: b',
    'model: two',
  ]);
  expect(told(model.requests[1]?.messages)).toHaveLength(5);
});

test('S7 structured output is read by its schema', async () => {
  await using app = openApp();
  const chat = app.defineAgent({
    name: 'chat',
    model: scriptedModel(['{"title":"Plan","steps":["a"]}', 'no json']),
    output: { schema: z.object({ title: z.string(), steps: z.array(z.string()) }) },
  });
  const { stream, output: given } = chat.streamText('plan');
  const ends = [];
  for await (const { turnEnd } of stream) if (turnEnd) ends.push(turnEnd.output);
  const { output } = await given;
  expect(output?.steps).toEqual(['a']);
  expect(ends).toEqual([output]);
  expect(await chat.runText('again', { throwOnError: false })).toMatchObject({
    finishReason: 'failed',
  });
});

test('S8 history narrows what the model sees, and not what is stored', async () => {
  await using app = openApp();
  const model = scriptedModel(['one', 'two', 'three']);
  const chat = app.defineAgent({ name: 'chat', model, history: lastMessages(1) });
  const talk = chat.chat();
  for (const text of ['a', 'b', 'c']) await talk.send(text);
  expect(told(model.requests[2]?.messages)).toEqual(['user: c']);
  const { state } = must(await chat.getSession(must(talk.sessionId)));
  expect(state?.messages).toHaveLength(6);
});

test('S9 what cannot work is refused at the definition', async () => {
  await using app = openApp();
  await using bare = openApp({ storeless: true });
  const model = scriptedModel([]);
  const { runs: _, ...withoutClaims } = memoryStore();
  const wrong: [() => unknown, string][] = [
    [() => bare.defineAgent({ name: 'a', model, snapshot: 'always' }), 'FAILED_PRECONDITION'],
    [
      () => app.defineAgent({ name: 'a', model, store: false, snapshot: on('turnEnd') }),
      'FAILED_PRECONDITION',
    ],
    [
      () => app.defineAgent({ name: 'a', model, clientState: { secret: 's' } }),
      'FAILED_PRECONDITION',
    ],
    [
      () => app.defineAgent({ name: 'a', model, store: withoutClaims, concurrency: 'wait' }),
      'FAILED_PRECONDITION',
    ],
    [() => bare.defineAgent({ name: 'a', model, concurrency: 'fork' }), 'FAILED_PRECONDITION'],
    [() => app.defineAgent({ name: 'a/b', model }), 'INVALID_ARGUMENT'],
    [() => app.defineAgent({ name: '', model }), 'INVALID_ARGUMENT'],
    [
      () =>
        app.defineAgent({
          name: 'a',
          model,
          state: z.object({ n: z.number() }),
          // @ts-expect-error not the schema's
          initialState: { n: 'one' },
        }),
      'INVALID_ARGUMENT',
    ],
    ...['returnToolRequests', 'resume', 'onChunk', 'signal', 'before', 'after'].map(
      (key): [() => unknown, string] => [
        () => app.defineAgent({ name: 'a', model, [key]: true }),
        'INVALID_ARGUMENT',
      ],
    ),
  ];
  for (const [define, status] of wrong) {
    expect(define).toThrow(expect.objectContaining({ status }));
  }
  expect(app.agents()).toEqual([]);
});

test('S10 an agent uses its own store, else the app’s, else none', async () => {
  const own = memoryStore();
  await using app = openApp();
  const model = scriptedModel(['1', '2', '3']);
  const ours = app.defineAgent({ name: 'ours', model });
  const its = app.defineAgent({ name: 'its', model, store: own });
  const none = app.defineAgent({ name: 'none', model, store: false });
  const { sessionId } = await its.runText('a');
  expect(await own.timeline?.getSession({ agent: 'its' }, sessionId)).toBeDefined();
  expect((await ours.runText('a')).state).toBeUndefined();
  expect((await none.runText('a')).state).toBeDefined();
  expect([ours, its, none].map(({ metadata }) => metadata.stateManagement)).toEqual([
    'server',
    'server',
    'client',
  ]);
});

test('S11 ready shows a mistake in any agent’s prompt', async () => {
  await using app = openApp();
  const model = scriptedModel([]);
  app.defineAgent({ name: 'fine', model });
  app.defineAgent({
    name: 'broken',
    model,
    system: () => {
      throw new Error('no template');
    },
  });
  const error: unknown = await app.ready().catch((reason: unknown) => reason);
  expect(error).toMatchObject({ status: 'FAILED_PRECONDITION', cause: new Error('no template') });
  expect(String(error)).toMatch(/prompt of agent "broken".*empty context.*no template/);
  await using missing = openApp();
  missing.defineAgent({ name: 'chat', prompt: 'undefined-prompt', model });
  await refused(missing.ready(), 'FAILED_PRECONDITION');
});

test('S17 a call may bring its model and its context', async () => {
  await using app = openApp();
  const [usual, special] = [
    scriptedModel([]),
    scriptedModel([{ toolCalls: [{ name: 'who' }] }, 'ok']),
  ];
  const seen: unknown[] = [];
  app.defineTool({ name: 'who', description: 'Who?' }, (_, { context }) => {
    seen.push(context);
    return null;
  });
  const chat = app.defineAgent({
    name: 'chat',
    model: usual,
    tools: ['who'],
    system: ({ context }) => `For ${JSON.stringify(context)}.`,
  });
  await chat.run(say('hello'), { model: special, context: { user: 'Ada' } });
  expect(usual.requests).toEqual([]);
  expect(told(special.requests[0]?.messages)[0]).toBe('system: For {"user":"Ada"}.');
  expect(seen).toEqual([{ user: 'Ada' }]);
  const handler: unknown[] = [];
  const custom = app.defineCustomAgent(
    { name: 'custom' },
    async (session, { context, init, model }) => {
      handler.push(context, init, model);
      await session.run(() => {});
    },
  );
  await custom.run(say('x'), { context: { user: 'Bob' }, sessionId: 's', model: special });
  expect(handler).toEqual([{ user: 'Bob' }, { sessionId: 's' }, special]);
});

test('S1 S248 an app without anything refuses a turn with a reason', async () => {
  const app = waymark();
  const chat = app.defineAgent({ name: 'chat' });
  await expect(chat.runText('hello', { throwOnError: false })).rejects.toMatchObject({
    status: 'FAILED_PRECONDITION',
    message: expect.stringContaining('Agent "chat" cannot run: There is no model.'),
  });
  await app.close();
});
