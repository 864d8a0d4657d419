import { describe, expect, test, vi } from 'vitest';
import { z } from 'zod';
import type { Action } from '../core/action.ts';
import { WaymarkError } from '../core/error.ts';
import { isDeepFrozen } from '../core/json/json.ts';
import { createRegistry } from '../core/registry.ts';
import { systemClock } from '../core/time.ts';
import type { Message } from '../protocol/message.ts';
import { openToolRequests } from '../protocol/messages.ts';
import type { ModelChunk } from '../protocol/turn.ts';
import { fakeClock } from '../testing/fake-clock.ts';
import { type ScriptStep, scriptedModel } from '../testing/scripted-model.ts';
import type { GenerateOptions } from './generate-options.ts';
import { createGenerator, type Generator } from './generator.ts';
import { generateScope } from './hooks.ts';
import { resource } from './resource.ts';
import { modelMessage, systemMessage, userMessage } from './template.ts';
import { closeToolRequests } from './tool/resume.ts';
import { tool } from './tool/tool.ts';

function setUp(script: readonly ScriptStep[] = []) {
  const clock = fakeClock('2026-01-01');
  let ids = 0;
  const model = scriptedModel(script, { clock });
  const app = createGenerator({
    registry: createRegistry<Action>(),
    clock,
    newId: () => `id-${++ids}`,
    model,
  });
  return { app, model, clock };
}

const weather = tool(
  {
    name: 'weather',
    description: 'Weather of a city',
    input: z.object({ city: z.string() }),
  },
  async ({ city }) => `Sunny in ${city}`,
);

const askWeather = (city: unknown = 'Rome', ref = 'r1') => ({
  toolCalls: [{ name: 'weather', ref, input: { city } as never }],
});

async function failure(promise: Promise<unknown>): Promise<WaymarkError> {
  return promise.then(
    () => expect.unreachable('should have failed'),
    (error: unknown) => {
      expect(error).toBeInstanceOf(WaymarkError);
      return error as WaymarkError;
    },
  );
}

describe('a plain answer', () => {
  test('has its text, message, finish reason and usage', async () => {
    const { app, model } = setUp([
      { text: 'Hello!', usage: { inputTokens: 3, outputTokens: 2, totalTokens: 5 } },
    ]);
    const response = await app.generate({ system: 'Be kind.', prompt: 'Hi' });
    expect(response).toMatchObject({
      text: 'Hello!',
      message: modelMessage('Hello!'),
      messages: [modelMessage('Hello!')],
      finishReason: 'stop',
      usage: { inputTokens: 3, outputTokens: 2, totalTokens: 5 },
      toolRequests: [],
      interrupts: [],
      model: 'scripted',
    });
    expect(model.requests[0]?.messages).toEqual([systemMessage('Be kind.'), userMessage('Hi')]);
    expect(isDeepFrozen(response.message)).toBe(true);
  });

  test('can be asked for by a text alone', async () => {
    const { app, model } = setUp(['Hello!']);
    expect((await app.generate('Hi')).text).toBe('Hello!');
    expect(model.requests[0]?.messages).toEqual([userMessage('Hi')]);
  });

  test('streams its pieces with their place and what came before', async () => {
    const { app } = setUp([{ reasoning: 'hm', chunks: ['Hel', 'lo', '!'] }]);
    const { stream, response } = app.generateStream('Hi');
    const seen: [string, string, number | undefined][] = [];
    for await (const chunk of stream) seen.push([chunk.text, chunk.accumulatedText, chunk.index]);
    expect(seen).toEqual([
      ['', '', 0],
      ['Hel', 'Hel', 0],
      ['lo', 'Hello', 0],
      ['!', 'Hello!', 0],
    ]);
    expect((await response).text).toBe('Hello!');
  });

  test('of a model that does not stream is heard all at once', async () => {
    const { app } = setUp();
    const silent = app.defineModel({ name: 'silent' }, async () => ({
      message: modelMessage('All of it'),
      finishReason: 'stop',
    }));
    const chunks: ModelChunk[] = [];
    await app.generate({
      model: silent,
      prompt: 'Hi',
      onChunk: (chunk) => void chunks.push(chunk),
    });
    expect(chunks).toEqual([{ role: 'model', index: 0, content: [{ text: 'All of it' }] }]);
  });

  test('does not wait for an unread stream', async () => {
    const { app } = setUp([{ chunks: Array.from({ length: 500 }, () => 'x') }]);
    expect((await app.generateStream('Hi').response).text).toHaveLength(500);
  });

  test('makes the model wait for a slow reader', async () => {
    const { app } = setUp();
    const events: string[] = [];
    app.defineModel({ name: 'eager' }, async (_, { stream }) => {
      for (const text of ['a', 'b']) {
        events.push(`send ${text}`);
        await stream({ content: [{ text }] });
      }
      return { message: modelMessage('ab'), finishReason: 'stop' };
    });
    await app.generate({
      model: 'eager',
      prompt: 'Hi',
      onChunk: async ({ content: [part] }) => {
        await Promise.resolve();
        events.push(`read ${part && 'text' in part ? part.text : ''}`);
      },
    });
    expect(events).toEqual(['send a', 'read a', 'send b', 'read b']);
  });

  test('reads the conversation and leaves it as it is', async () => {
    const { app, model } = setUp(['Fine.']);
    const messages = Object.freeze([userMessage('Hi'), modelMessage('Hello!')]);
    await app.generate({ messages, prompt: 'How are you?' });
    expect(model.requests[0]?.messages).toEqual([...messages, userMessage('How are you?')]);
    expect(model.requests[0]?.messages[0]).toBe(messages[0]);
  });

  test('passes config and tool choice on', async () => {
    const { app, model } = setUp(['ok']);
    await app.generate({
      prompt: 'Hi',
      config: { temperature: 0.2 },
      tools: [weather],
      toolChoice: { tool: 'weather' },
    });
    expect(model.requests[0]).toMatchObject({
      config: { temperature: 0.2 },
      toolChoice: { tool: 'weather' },
      tools: [
        { name: 'weather', description: 'Weather of a city', inputSchema: { type: 'object' } },
      ],
    });
  });

  test('can be had from another model than the defined one, for this call', async () => {
    const { app, model } = setUp();
    const other = scriptedModel(['from the other']);
    expect((await app.generate({ model: other, prompt: 'Hi' })).text).toBe('from the other');
    expect(model.requests).toEqual([]);
  });
});

describe('what the model sees around the conversation', () => {
  test('messages before and after stand around what the user said last', async () => {
    const { app, model } = setUp(['ok']);
    await app.generate({
      system: 'S',
      before: [userMessage('example'), modelMessage('answer')],
      messages: [userMessage('one'), modelMessage('two')],
      prompt: 'three',
      after: [userMessage('reminder')],
    });
    expect(model.requests[0]?.messages).toEqual([
      systemMessage('S'),
      userMessage('example'),
      modelMessage('answer'),
      userMessage('one'),
      modelMessage('two'),
      userMessage('three'),
      userMessage('reminder'),
    ]);
  });

  test('documents stand behind the last user message, and are in no message that is given back', async () => {
    const { app, model } = setUp(['ok']);
    const response = await app.generate({
      prompt: 'Who?',
      docs: ['Ann did it.', { content: 'Ben helped.', metadata: { title: 'Report' } }],
    });
    const [asked] = model.requests[0]?.messages ?? [];
    const text = asked?.content.map((part) => ('text' in part ? part.text : '')).join('');
    expect(text).toBe(
      'Who?\n\nUse these documents where they help:\n\n[1]\nAnn did it.\n\n[2] Report\nBen helped.',
    );
    expect(response.messages).toEqual([modelMessage('ok')]);
  });

  test('resources are read when the model is to see them', async () => {
    const { app, model } = setUp(['ok']);
    const note = resource(
      { name: 'note', uri: 'note://{id}' },
      ({ params }) => `Note ${params.id}`,
    );
    await app.generate({
      resources: [note],
      prompt: [{ text: 'Sum up: ' }, { resource: { uri: 'note://7' } }],
    });
    expect(model.requests[0]?.messages).toEqual([
      userMessage([{ text: 'Sum up: ' }, { text: 'Note 7' }]),
    ]);
  });

  test('an unknown resource is NOT_FOUND and lists the known ones', async () => {
    const { app } = setUp(['ok']);
    app.defineResource({ name: 'note', uri: 'note://{id}' }, () => 'x');
    const error = await failure(
      app.generate({ resources: ['note'], prompt: { resource: { uri: 'file:///etc/passwd' } } }),
    );
    expect(error.status).toBe('NOT_FOUND');
    expect(error.message).toContain('note://{id}');
  });

  test('a history selection changes what the model sees, not what is stored', async () => {
    const { app, model } = setUp(['ok']);
    const messages = [userMessage('a'), modelMessage('b'), userMessage('c')];
    await app.generate({ messages, history: (all) => all.slice(-1) });
    expect(model.requests[0]?.messages).toEqual([userMessage('c')]);
  });
});

describe('tools', () => {
  test('run, and the model continues with their results', async () => {
    const { app, model } = setUp([askWeather(), 'It is sunny.']);
    const response = await app.generate({ prompt: 'Weather?', tools: [weather] });
    expect(response.text).toBe('It is sunny.');
    expect(response.messages).toEqual([
      modelMessage({ toolRequest: { name: 'weather', ref: 'r1', input: { city: 'Rome' } } }),
      {
        role: 'tool',
        content: [{ toolResponse: { name: 'weather', ref: 'r1', output: 'Sunny in Rome' } }],
      },
      modelMessage('It is sunny.'),
    ]);
    expect(model.requests[1]?.messages).toEqual([
      userMessage('Weather?'),
      ...response.messages.slice(0, 2),
    ]);
    const used = response.usage;
    expect(used.totalTokens).toBe((used.inputTokens ?? 0) + (used.outputTokens ?? 0));
  });

  test('of one message run side by side, and their results keep the order of the requests', async () => {
    const { app } = setUp([
      {
        toolCalls: [
          { name: 'slow', ref: '1' },
          { name: 'fast', ref: '2' },
        ],
      },
      'done',
    ]);
    const events: string[] = [];
    const gate = Promise.withResolvers<void>();
    const slow = tool({ name: 'slow', description: 'd' }, async () => {
      events.push('slow begins');
      await gate.promise;
      events.push('slow ends');
      return 1;
    });
    const fast = tool({ name: 'fast', description: 'd' }, () => {
      events.push('fast');
      gate.resolve();
      return 2;
    });
    const { messages } = await app.generate({ prompt: 'go', tools: [slow, fast] });
    expect(events).toEqual(['slow begins', 'fast', 'slow ends']);
    expect(messages[1]?.content).toEqual([
      { toolResponse: { name: 'slow', ref: '1', output: 1 } },
      { toolResponse: { name: 'fast', ref: '2', output: 2 } },
    ]);
  });

  test('stream their results, and what they show on the way', async () => {
    const { app } = setUp([{ toolCalls: [{ name: 'work', ref: 'r' }] }, 'done']);
    const work = tool({ name: 'work', description: 'd' }, async (_, { stream }) => {
      await stream('half');
      return 'all';
    });
    const chunks: ModelChunk[] = [];
    await app.generate({
      prompt: 'go',
      tools: [work],
      onChunk: (chunk) => void chunks.push(chunk),
    });
    expect(chunks.slice(1)).toEqual([
      {
        role: 'tool',
        index: 1,
        content: [
          { toolResponse: { name: 'work', ref: 'r', output: 'half' }, metadata: { partial: true } },
        ],
      },
      {
        role: 'tool',
        index: 1,
        content: [{ toolResponse: { name: 'work', ref: 'r', output: 'all' } }],
      },
      { role: 'model', index: 2, content: [{ text: 'done' }] },
    ]);
  });

  test('with wrong arguments are an error that the model reads and corrects', async () => {
    const { app } = setUp([askWeather(7), askWeather('Oslo', 'r2'), 'ok']);
    const { messages } = await app.generate({ prompt: 'Weather?', tools: [weather] });
    expect(messages[1]?.content).toEqual([
      {
        toolResponse: {
          name: 'weather',
          ref: 'r1',
          output: expect.stringMatching(/input of tool "weather" does not fit.*\/city/),
        },
        metadata: { error: { status: 'INVALID_ARGUMENT' } },
      },
    ]);
    expect(messages[3]?.content).toEqual([
      { toolResponse: { name: 'weather', ref: 'r2', output: 'Sunny in Oslo' } },
    ]);
  });

  test('that are always asked wrongly end with the turn limit', async () => {
    const { app, model } = setUp([() => askWeather(1), () => askWeather(2), () => askWeather(3)]);
    const error = await failure(
      app.generate({ prompt: 'Weather?', tools: [weather], maxTurns: 2 }),
    );
    expect(error.status).toBe('RESOURCE_EXHAUSTED');
    expect(error.message).toContain('maxTurns');
    expect(model.requests).toHaveLength(3);
  });

  test('that do not exist are an error that says what exists', async () => {
    const { app } = setUp([{ toolCalls: [{ name: 'wether', ref: 'r' }] }, 'ok']);
    const { messages } = await app.generate({ prompt: 'go', tools: [weather] });
    expect(messages[1]?.content).toEqual([
      expect.objectContaining({
        toolResponse: {
          name: 'wether',
          ref: 'r',
          output: 'There is no tool "wether". Available tools: weather.',
        },
      }),
    ]);
  });

  test('that throw tell the model why, without a stack', async () => {
    const { app } = setUp([{ toolCalls: [{ name: 'broken', ref: 'r' }] }, 'ok']);
    const broken = tool({ name: 'broken', description: 'd' }, () => {
      throw new Error('disk full');
    });
    const { messages, text } = await app.generate({ prompt: 'go', tools: [broken] });
    expect(text).toBe('ok');
    expect(messages[1]?.content).toEqual([
      {
        toolResponse: { name: 'broken', ref: 'r', output: 'disk full' },
        metadata: { error: { status: 'UNKNOWN' } },
      },
    ]);
  });

  test.each([
    ['not JSON', () => new Date()],
    ['not what the schema says', () => ({ wrong: true })],
  ])('whose output is %s are an error', async (_, fn) => {
    const { app } = setUp([{ toolCalls: [{ name: 'odd', ref: 'r' }] }, 'ok']);
    const odd = tool(
      { name: 'odd', description: 'd', output: z.object({ right: z.boolean() }) },
      fn as never,
    );
    const { messages } = await app.generate({ prompt: 'go', tools: [odd] });
    expect(messages[1]?.content).toEqual([
      expect.objectContaining({ metadata: { error: { status: 'INVALID_ARGUMENT' } } }),
    ]);
  });

  test.each([[0], [false], [''], [null]])('may answer with %j', async (value) => {
    const { app } = setUp([{ toolCalls: [{ name: 'small', ref: 'r' }] }, 'ok']);
    const small = tool({ name: 'small', description: 'd' }, () => value);
    const { messages } = await app.generate({ prompt: 'go', tools: [small] });
    expect(messages[1]?.content).toEqual([
      { toolResponse: { name: 'small', ref: 'r', output: value } },
    ]);
  });

  test('that answer nothing have answered null', async () => {
    const { app } = setUp([{ toolCalls: [{ name: 'quiet', ref: 'r' }] }, 'ok']);
    const quiet = tool({ name: 'quiet', description: 'd' }, () => undefined);
    const { messages } = await app.generate({ prompt: 'go', tools: [quiet] });
    expect(messages[1]?.content).toEqual([
      { toolResponse: { name: 'quiet', ref: 'r', output: null } },
    ]);
  });

  test('get a ref of their own when the model gives none, or one twice', async () => {
    const { app } = setUp();
    const seen: string[] = [];
    const note = tool({ name: 'note', description: 'd' }, (_, { ref, idempotencyKey }) => {
      seen.push(ref);
      expect(idempotencyKey).toBe(ref);
    });
    let asked = false;
    app.defineModel({ name: 'sloppy' }, async () => {
      if (asked) return { message: modelMessage('ok'), finishReason: 'stop' };
      asked = true;
      return {
        message: modelMessage([
          { toolRequest: { name: 'note' } },
          { toolRequest: { name: 'note', ref: 'x' } },
          { toolRequest: { name: 'note', ref: 'x' } },
        ]),
        finishReason: 'stop',
      };
    });
    const { messages } = await app.generate({ model: 'sloppy', prompt: 'go', tools: [note] });
    expect(seen).toEqual(['id-1', 'x', 'id-2']);
    expect(openToolRequests(messages.slice(0, 2))).toEqual([]);
  });

  test('see the context, and what the app adds', async () => {
    const seen: unknown[] = [];
    const model = scriptedModel([{ toolCalls: [{ name: 'look', ref: 'r' }] }, 'ok']);
    const app = createGenerator({
      registry: createRegistry<Action>(),
      clock: systemClock,
      newId: () => 'id',
      model,
      toolExtras: ({ name, ref }) => ({ session: 'S', idempotencyKey: `run/${name}/${ref}` }),
    });
    app.defineTool(
      { name: 'look', description: 'd' },
      (_, { session, context, idempotencyKey, resumed }) => {
        seen.push(session, context, idempotencyKey, resumed, generateScope.get()?.context);
      },
    );
    await app.generate({ prompt: 'go', tools: ['look'], context: { user: 'ann' } });
    expect(seen).toEqual(['S', { user: 'ann' }, 'run/look/r', undefined, { user: 'ann' }]);
  });

  test.each([['required' as const], [{ tool: 'weather' }]])(
    'that the model must ask for (%j) must be asked for once',
    async (toolChoice) => {
      const { app, model } = setUp([askWeather(), 'ok']);
      await app.generate({ prompt: 'x', tools: [weather], toolChoice });
      expect(model.requests.map((request) => request.toolChoice)).toEqual([toolChoice, undefined]);
    },
  );

  test('may be left to the caller', async () => {
    const { app } = setUp([askWeather()]);
    const response = await app.generate({
      prompt: 'Weather?',
      tools: [weather],
      returnToolRequests: true,
    });
    expect(response.toolRequests).toEqual([
      { toolRequest: { name: 'weather', ref: 'r1', input: { city: 'Rome' } } },
    ]);
    expect(response.messages).toHaveLength(1);
  });

  test('tools of one answer run a bounded number at a time, all of them, in order', async () => {
    const toolCalls = Array.from({ length: 100 }, (_, at) => ({
      name: 'work',
      ref: `r${at}`,
      input: { at },
    }));
    let active = 0;
    let most = 0;
    const work = tool(
      { name: 'work', description: 'd', input: z.object({ at: z.number() }) },
      async ({ at }) => {
        most = Math.max(most, ++active);
        await new Promise((resolve) => setImmediate(resolve));
        active--;
        return at;
      },
    );
    for (const [limits, expected] of [
      [{}, 16],
      [{ toolConcurrency: 3 }, 3],
    ] as const) {
      const { app, model } = setUp([{ toolCalls }, 'done']);
      most = 0;
      await app.generate({ prompt: 'go', tools: [work], limits });
      expect(most).toBe(expected);
      const results = model.requests[1]?.messages.at(-1)?.content ?? [];
      expect(results.map((part) => 'toolResponse' in part && part.toolResponse.output)).toEqual(
        toolCalls.map((_, at) => at),
      );
    }
  });

  test('tool requests count towards the length of an answer', async () => {
    const input = { text: 'x'.repeat(1000) };
    const { app } = setUp([{ toolCalls: [{ name: 'weather', ref: 'r', input }] }, 'never']);
    const error = await failure(
      app.generate({ prompt: 'go', tools: [weather], limits: { answerLength: 500 } }),
    );
    expect(error.status).toBe('RESOURCE_EXHAUSTED');
    expect(error.message).toContain('answerLength');
  });

  test('that return too much fail with a message that says so', async () => {
    const { app } = setUp([{ toolCalls: [{ name: 'big', ref: 'r' }] }, 'ok']);
    const big = tool({ name: 'big', description: 'd' }, () => 'x'.repeat(101));
    const { messages } = await app.generate({
      prompt: 'go',
      tools: [big],
      limits: { toolResultLength: 100 },
    });
    expect(messages[1]?.content).toEqual([
      expect.objectContaining({ metadata: { error: { status: 'RESOURCE_EXHAUSTED' } } }),
    ]);
  });
});

describe('bad input', () => {
  test.each<[string, GenerateOptions, string, RegExp]>([
    ['an unknown model', { prompt: 'x', model: 'gtp' }, 'NOT_FOUND', /model "gtp".* gpt/],
    ['an unknown tool', { prompt: 'x', tools: ['wether'] }, 'NOT_FOUND', /wether.* weather/],
    ['nothing to say', {}, 'INVALID_ARGUMENT', /prompt/],
    [
      'two tools of one name',
      { prompt: 'x', tools: [weather, tool({ name: 'weather', description: 'd' }, () => 1)] },
      'INVALID_ARGUMENT',
      /weather/,
    ],
    [
      'an unknown format',
      { prompt: 'x', output: { format: 'xml' as never } },
      'INVALID_ARGUMENT',
      /jsonl/,
    ],
    ['resume and prompt', { prompt: 'x', resume: {} }, 'INVALID_ARGUMENT', /not both/],
    [
      'an open tool request',
      { messages: [userMessage('x'), modelMessage({ toolRequest: { name: 'pay', ref: '1' } })] },
      'FAILED_PRECONDITION',
      /"pay".*resume/,
    ],
  ])('%s is refused', async (_, options, status, message) => {
    const { app } = setUp();
    app.defineModel({ name: 'gpt' }, async () => expect.unreachable());
    app.defineTool({ name: 'weather', description: 'd' }, () => 1);
    const error = await failure(app.generate(options));
    expect(error.status).toBe(status);
    expect(error.message).toMatch(message);
  });

  test('no model at all is refused', async () => {
    const app = createGenerator({
      registry: createRegistry<Action>(),
      clock: systemClock,
      newId: () => 'id',
    });
    expect((await failure(app.generate('x'))).message).toMatch(/There is no model/);
  });

  test.each([
    [
      'a tool name that providers refuse',
      (app: Generator) => app.defineTool({ name: 'a/b', description: '' }, () => 1),
    ],
    [
      'a schema that is not JSON',
      (app: Generator) =>
        app.defineTool({ name: 'a', description: '', input: z.object({ at: z.date() }) }, () => 1),
    ],
    [
      'an output schema that is not JSON',
      (app: Generator) => app.definePrompt({ name: 'p', output: { schema: z.date() } }),
    ],
    ['a named schema that is not JSON', (app: Generator) => app.defineSchema('S', z.bigint())],
  ])('%s is refused at definition', (_, define) => {
    expect(() => define(setUp().app)).toThrow(
      expect.objectContaining({ status: 'INVALID_ARGUMENT' }),
    );
  });
});

describe('a model that misbehaves', () => {
  test.each([
    [
      'streams no chunk',
      async (_: unknown, { stream }: { stream: (chunk: never) => void }) =>
        stream({ text: 'x' } as never),
      /not a chunk/,
    ],
    ['returns nothing', async () => undefined, /must return/],
    [
      'returns a message that is none',
      async () => ({ message: { role: 'model', content: [{ txt: 'x' }] }, finishReason: 'stop' }),
      /must return.*Expected a part/,
    ],
    [
      'returns a user message',
      async () => ({ message: userMessage('x'), finishReason: 'stop' }),
      /must return/,
    ],
  ])('and %s is INTERNAL', async (_, run, message) => {
    const { app } = setUp();
    app.defineModel({ name: 'bad' }, run as never);
    const error = await failure(app.generate({ model: 'bad', prompt: 'x' }));
    expect(error.status).toBe('INTERNAL');
    expect(error.message).toMatch(message);
  });

  test('and throws whatever says nothing of it to a client, and keeps the cause', async () => {
    const { app } = setUp([{ error: new Error('password is hunter2') }]);
    const error = await failure(app.generate('x'));
    expect(error.status).toBe('INTERNAL');
    expect(JSON.stringify(error)).not.toContain('hunter2');
    expect(error.message).toBe('Model "scripted" failed: password is hunter2');
    expect(error.cause).toMatchObject({ message: 'password is hunter2' });
  });

  test('and falls silent is DEADLINE_EXCEEDED', async () => {
    const { app, clock, model } = setUp([{ chunks: ['a', 'b', 'c'], chunkDelay: 900, hang: true }]);
    const outcome = failure(app.generate({ prompt: 'x', limits: { idleTimeout: 1000 } }));
    await clock.advance(2500);
    await clock.advance(2000);
    const error = await outcome;
    expect(error.status).toBe('DEADLINE_EXCEEDED');
    expect(error.message).toContain('idleTimeout');
    expect(model.stops).toBe(1);
  });

  test('and waits for a slow reader is not silent', async () => {
    const { app, clock } = setUp([{ chunks: ['a', 'b'] }]);
    const response = app.generate({
      prompt: 'x',
      limits: { idleTimeout: 1000 },
      onChunk: () => clock.sleep(5000),
    });
    await clock.advance(10_000);
    expect((await response).text).toBe('ab');
  });

  test('and never ends is RESOURCE_EXHAUSTED', async () => {
    const { app } = setUp();
    let stopped = false;
    app.defineModel({ name: 'endless' }, async (_, { stream, signal }) => {
      while (!signal.aborted) {
        try {
          await stream({ content: [{ text: 'more ' }] });
        } catch {
          // continues regardless
        }
      }
      stopped = true;
      return { message: modelMessage('x'), finishReason: 'stop' };
    });
    const error = await failure(
      app.generate({ model: 'endless', prompt: 'x', limits: { answerLength: 1000 } }),
    );
    expect(error.status).toBe('RESOURCE_EXHAUSTED');
    await vi.waitFor(() => expect(stopped).toBe(true));
  });

  test('and ignores the signal does not hold up the abort', async () => {
    const { app } = setUp();
    app.defineModel({ name: 'deaf' }, () => new Promise(() => {}));
    const controller = new AbortController();
    const outcome = failure(
      app.generate({ model: 'deaf', prompt: 'x', signal: controller.signal }),
    );
    controller.abort();
    expect((await outcome).status).toBe('CANCELLED');
  });
});

describe('limits', () => {
  test('of time end the call, and the model gets the error', async () => {
    const { app, clock, model } = setUp([{ delay: 5000, text: 'late' }]);
    const outcome = failure(app.generate({ prompt: 'x', limits: { timeout: 1000 } }));
    await clock.advance(1000);
    expect((await outcome).status).toBe('DEADLINE_EXCEEDED');
    expect(model.stops).toBe(1);
  });

  test('of tokens end the call before tools run', async () => {
    const ran = vi.fn();
    const { app } = setUp([{ toolCalls: [{ name: 'spy' }], usage: { totalTokens: 100 } }]);
    const spy = tool({ name: 'spy', description: 'd' }, ran);
    const error = await failure(
      app.generate({ prompt: 'x', tools: [spy], limits: { tokens: 100 } }),
    );
    expect(error.status).toBe('RESOURCE_EXHAUSTED');
    expect(ran).not.toHaveBeenCalled();
  });

  test('of tokens let an answer through that is complete', async () => {
    const { app } = setUp([{ text: 'done', usage: { totalTokens: 100 } }]);
    expect((await app.generate({ prompt: 'x', limits: { tokens: 10 } })).text).toBe('done');
  });

  test('of tool calls count all of them', async () => {
    const { app } = setUp([askWeather(), askWeather('Oslo'), 'x']);
    const error = await failure(
      app.generate({ prompt: 'x', tools: [weather], limits: { toolCalls: 1 } }),
    );
    expect(error.message).toContain('2 tool calls of at most 1');
  });
});

describe('what is left of a call that did not come to its end', () => {
  test('is the part of the answer that was heard', async () => {
    const { app } = setUp([
      { reasoning: 'hm', chunks: ['Hel', 'lo'], toolCalls: [{ name: 'x' }], hang: true },
    ]);
    const controller = new AbortController();
    const run = app.generateStream({ prompt: 'x', signal: controller.signal });
    for await (const chunk of run.stream) if (chunk.toolRequests.length > 0) break;
    controller.abort();
    expect((await failure(run.response)).status).toBe('CANCELLED');
    expect(run.messages).toEqual([modelMessage([{ text: 'Hello' }])]);
  });

  test('has an answer for every tool request, and keeps what tools had finished', async () => {
    const { app } = setUp([
      {
        toolCalls: [
          { name: 'quick', ref: '1' },
          { name: 'slow', ref: '2' },
        ],
      },
    ]);
    const quick = tool({ name: 'quick', description: 'd' }, () => 0);
    let heard = false;
    const slow = tool({ name: 'slow', description: 'd' }, async (_, { signal }) => {
      signal.addEventListener('abort', () => {
        heard = true;
      });
      await new Promise(() => {});
    });
    const controller = new AbortController();
    const run = app.generateStream({
      prompt: 'x',
      tools: [quick, slow],
      signal: controller.signal,
    });
    for await (const chunk of run.stream) if (chunk.role === 'tool') break;
    controller.abort();
    await failure(run.response);
    expect(heard).toBe(true);
    expect(run.messages[1]).toEqual({
      role: 'tool',
      content: [
        { toolResponse: { name: 'quick', ref: '1', output: 0 } },
        {
          toolResponse: { name: 'slow', ref: '2', output: expect.stringContaining('Not finished') },
          metadata: { error: { status: 'ABORTED', reason: 'aborted' } },
        },
      ],
    });
    expect(openToolRequests(run.messages)).toEqual([]);
  });

  test('is there after an error, with the tokens used', async () => {
    const { app } = setUp([
      { ...askWeather(), usage: { totalTokens: 5 } },
      { chunks: ['Well'], error: new Error('x') },
    ]);
    const run = app.generateStream({ prompt: 'x', tools: [weather] });
    await failure(run.response);
    expect(run.messages.map(({ role }) => role)).toEqual(['model', 'tool', 'model']);
    expect(run.messages.at(-1)).toEqual(modelMessage('Well'));
    expect(run.usage).toEqual({ totalTokens: 5 });
  });

  test('does not contain what a stopped model says afterwards', async () => {
    const { app } = setUp();
    const late = Promise.withResolvers<void>();
    const said = Promise.withResolvers<void>();
    app.defineModel({ name: 'late' }, async (_, { stream }) => {
      await stream({ content: [{ text: 'early' }] });
      await late.promise;
      await stream({ content: [{ text: ' late' }] });
      said.resolve();
      return { message: modelMessage('early late'), finishReason: 'stop' };
    });
    const controller = new AbortController();
    const run = app.generateStream({ model: 'late', prompt: 'x', signal: controller.signal });
    for await (const _ of run.stream) break;
    controller.abort();
    await failure(run.response);
    late.resolve();
    await said.promise;
    expect(run.messages).toEqual([modelMessage('early')]);
  });

  test('a stop ends the wait for a history selection and for a reader', async () => {
    for (const options of [
      { history: () => new Promise<never>(() => {}) },
      { onChunk: () => new Promise<void>(() => {}) },
    ] satisfies GenerateOptions[]) {
      const { app } = setUp(['x']);
      const controller = new AbortController();
      const outcome = failure(
        app.generate({ messages: [userMessage('x')], ...options, signal: controller.signal }),
      );
      setTimeout(() => controller.abort(), 5);
      expect((await outcome).status).toBe('CANCELLED');
    }
  });

  test('an aborted signal ends a call before it begins', async () => {
    const { app, model } = setUp(['x']);
    expect((await failure(app.generate({ prompt: 'x', signal: AbortSignal.abort() }))).status).toBe(
      'CANCELLED',
    );
    expect(model.requests).toEqual([]);
  });
});

describe('hooks from above', () => {
  test('hear of each tool iteration before the model is called again, and of each model call', async () => {
    const usage = { totalTokens: 2 };
    const { app, model } = setUp([{ ...askWeather(), usage }, 'done']);
    const heard: unknown[] = [];
    await generateScope.run(
      {
        hooks: {
          onToolIteration: ({ messages, usage: used }) => {
            heard.push(['tools', messages.length, used, model.requests.length]);
          },
          onModelCall: ({ model: name, finishReason }) => {
            heard.push(['model', name, finishReason]);
          },
        },
      },
      () => app.generate({ prompt: 'x', tools: [weather] }),
    );
    expect(heard).toEqual([
      ['model', 'scripted', 'stop'],
      ['tools', 2, usage, 1],
      ['model', 'scripted', 'stop'],
    ]);
  });

  test('a generate call inside a tool counts its tokens, but not as an iteration', async () => {
    const { app } = setUp([{ toolCalls: [{ name: 'nested' }] }, 'done']);
    const inner = scriptedModel([askWeather(), 'inner'], { name: 'inner' });
    const nested = tool({ name: 'nested', description: 'd' }, async () => {
      const { text } = await app.generate({ model: inner, prompt: 'x', tools: [weather] });
      return text;
    });
    const iterations = vi.fn();
    const calls: string[] = [];
    await generateScope.run(
      {
        hooks: { onToolIteration: iterations, onModelCall: ({ model }) => void calls.push(model) },
      },
      () => app.generate({ prompt: 'x', tools: [nested] }),
    );
    expect(calls).toEqual(['scripted', 'inner', 'inner', 'scripted']);
    expect(iterations).toHaveBeenCalledTimes(1);
  });

  test('end the call with what they throw', async () => {
    const { app } = setUp([askWeather(), 'never']);
    const error = new WaymarkError('RESOURCE_EXHAUSTED', 'session limit');
    const run = generateScope.run({ hooks: { onToolIteration: () => Promise.reject(error) } }, () =>
      app.generate({ prompt: 'x', tools: [weather] }),
    );
    expect(await failure(run)).toBe(error);
  });
});

describe('closing open requests', () => {
  const conversation: Message[] = [
    userMessage('pay'),
    modelMessage([
      { text: 'ok' },
      { toolRequest: { name: 'pay', ref: '1' }, metadata: { interrupt: true } },
      { toolRequest: { name: 'log', ref: '2' }, metadata: { pendingOutput: 0 } },
    ]),
  ];

  test('answers them all, and keeps what siblings came to', () => {
    const closing = closeToolRequests(conversation, 'declined');
    expect(closing?.content).toEqual([
      {
        toolResponse: { name: 'pay', ref: '1', output: expect.stringContaining('declined') },
        metadata: { error: { status: 'CANCELLED', reason: 'declined' } },
      },
      { toolResponse: { name: 'log', ref: '2', output: 0 } },
    ]);
    expect(closing && openToolRequests([...conversation, closing])).toEqual([]);
  });

  test('has nothing to do where nothing is open', () => {
    expect(closeToolRequests([], 'aborted')).toBeUndefined();
    expect(closeToolRequests([userMessage('x'), modelMessage('y')], 'aborted')).toBeUndefined();
    expect(closeToolRequests([...conversation, userMessage('next')], 'aborted')).toBeUndefined();
  });
});
