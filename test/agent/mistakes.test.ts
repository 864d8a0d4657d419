/**
 * The mistakes of a new user, and what they print. Each message says what is wrong and what to do; a change of one is a change of
 * the product. `waymark worker` without a queue is in test/cli/serve.test.ts.
 */
import { createAnthropic } from '@ai-sdk/anthropic';
import { createGoogle } from '@ai-sdk/google';
import { createOpenAI } from '@ai-sdk/openai';
import { tool as aiTool } from 'ai';
import { afterEach, describe, expect, test, vi } from 'vitest';
import {
  type AppOptions,
  agentTool,
  fallback,
  isTurnError,
  memoryStore,
  on,
  retry,
  type ToolSource,
  tool,
  toolApproval,
  waymark,
} from 'waymark';
import { createClient } from 'waymark/client';
import { fileStore } from 'waymark/file';
import { pgBossEngine } from 'waymark/pg-boss';
import { postgresStore } from 'waymark/postgres';
import { handler, serve } from 'waymark/server';
import { sqliteStore } from 'waymark/sqlite';
import { scriptedModel } from 'waymark/testing';
import { z } from 'zod';

const closers: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close();
  vi.restoreAllMocks();
  vi.unstubAllEnvs();
  vi.doUnmock('dotprompt');
});

function open(options: AppOptions = {}) {
  const printed: string[] = [];
  vi.spyOn(console, 'error').mockImplementation((text) => void printed.push(String(text)));
  const model = scriptedModel({ patterns: [], otherwise: 'Hello.' });
  const app = waymark({ model, store: memoryStore(), ...options });
  closers.push(() => app.close());
  return { app, printed };
}

/** A wrong option, as JavaScript would pass it. */
const wrong = (options: object): never => options as never;

async function messageOf(call: () => unknown): Promise<string> {
  try {
    await call();
  } catch (error) {
    return String((error as Error).message);
  }
  throw new Error('It did not fail.');
}

describe('a throw in your code rejects the call, and prints one line and the stack', () => {
  const boom = (): never => {
    throw new TypeError('Cannot read properties of undefined');
  };
  test.each([
    [
      'a custom agent',
      '✗ Agent "a" failed',
      (app: ReturnType<typeof open>['app']) =>
        app.defineCustomAgent({ name: 'a' }, (session) => session.run(async () => boom())),
    ],
    [
      'a model function',
      '✗ Agent "a": model "own" failed',
      (app: ReturnType<typeof open>['app']) =>
        app.defineAgent({ name: 'a', model: { name: 'own', run: async () => boom() } }),
    ],
    [
      'a template',
      '✗ Agent "a": the prompt could not be rendered',
      (app: ReturnType<typeof open>['app']) => app.defineAgent({ name: 'a', system: () => boom() }),
    ],
    [
      'a policy',
      '✗ Agent "a": the snapshot policy failed',
      (app: ReturnType<typeof open>['app']) =>
        app.defineAgent({ name: 'a', snapshot: () => boom() }),
    ],
  ])('in %s', async (_, headline, define) => {
    const { app, printed } = open();
    const error = await define(app)
      .run('hi')
      .catch((caught: unknown) => caught);
    expect(isTurnError(error)).toBe(true);
    expect(error).toMatchObject({
      message: expect.stringContaining('Cannot read properties of undefined'),
    });
    expect(printed).toHaveLength(1);
    expect(printed[0]).toContain(headline);
    expect(printed[0]).toContain('TypeError: Cannot read properties of undefined');
    expect(printed[0]).toContain('mistakes.test.ts');
  });

  test('in a tool the model reads it, and the owner sees it', async () => {
    const model = scriptedModel([{ toolCalls: [{ name: 'broken' }] }, 'Sorry.']);
    const { app, printed } = open({ model });
    const broken = app.defineTool({ name: 'broken', description: 'Breaks.' }, boom);
    const agent = app.defineAgent({ name: 'a', tools: [broken] });
    expect((await agent.run('hi')).text).toBe('Sorry.');
    expect(printed[0]).toContain('✗ Agent "a": tool "broken" failed');
    expect(printed[0]).toContain('mistakes.test.ts');
  });

  test('in a detached run', async () => {
    const { app, printed } = open();
    const agent = app.defineCustomAgent({ name: 'a' }, (session) =>
      session.run(async () => boom()),
    );
    const run = await agent.start('hi');
    // It is read from the store, where errors are redacted.
    expect(await messageOf(() => run.wait())).toBe('An unexpected error occurred.');
    expect(printed[0]).toContain('✗ Agent "a" failed');
    expect(printed[0]).toContain(run.id);
  });
});

describe('before a turn is accepted', () => {
  test('no model', async () => {
    const app = waymark();
    closers.push(() => app.close());
    const agent = app.defineAgent({ name: 'chat' });
    const message =
      'Agent "chat" cannot run: There is no model. Pass `model` to waymark() as the default of all calls, or to the agent or call that needs it.';
    expect(await messageOf(() => agent.run('hi'))).toBe(message);
    expect(await messageOf(() => app.ready())).toBe(message);
    expect(await messageOf(() => app.generate('hi'))).toContain('There is no model.');
  });

  test('an unknown model, tool and prompt', async () => {
    const { app } = open();
    app.defineTool({ name: 'weather', description: 'The weather.' }, () => 'sunny');
    app.defineModel({ name: 'large' }, scriptedModel([]).run);
    const a = app.defineAgent({ name: 'a', model: 'lagre' });
    expect(await messageOf(() => a.run('hi'))).toBe(
      'Agent "a" cannot run: No model "lagre" is defined. Did you mean "large"? Defined: large.',
    );
    const similar = app.defineAgent({ name: 'similar', model: 'x/large' });
    expect(await messageOf(() => similar.run('hi'))).toMatch(
      /Did you mean "large"\? Defined: large\.$/,
    );
    const b = app.defineAgent({ name: 'b', tools: ['wether'] });
    expect(await messageOf(() => b.run('hi'))).toBe(
      'Agent "b" cannot run: No tool "wether" is defined. Did you mean "weather"? Defined: weather.',
    );
    const c = app.defineAgent({ name: 'c', prompt: 'reviewer' });
    expect(await messageOf(() => c.run('hi'))).toContain(
      'Agent "c" cannot run: No prompt "reviewer" is defined.',
    );
    expect(await messageOf(() => c.run('hi'))).toContain('`await app.ready()`');
    expect(await messageOf(() => app.agent('d'))).toContain(
      'No agent "d" is defined. Defined: a, b, c, similar.',
    );
  });

  test.each([
    ['anthropic:claude-sonnet-4-5', "'anthropic/claude-sonnet-4-5'. Or pass the model: anthropic("],
    ['gpt-5', "'openai/gpt-5'. Or pass the model: openai('gpt-5') from the package @ai-sdk/openai"],
    ['o3', "'openai/o3'. Or pass the model: openai('o3')"],
    ['acme/fast', "such as openai('gpt-5') from the package @ai-sdk/openai"],
  ])("the name of a provider's model in another form, %s", async (model, example) => {
    const { app } = open();
    const agent = app.defineAgent({ name: 'a', model });
    const message = await messageOf(() => agent.run('hi'));
    expect(message).toContain(
      `Agent "a" cannot run: No model "${model}" is defined. There are none.`,
    );
    expect(message).toContain("To use a provider's model, ");
    expect(message).toContain(example);
    const other = app.defineAgent({ name: 'b', model: 'quick' });
    expect(await messageOf(() => other.run('hi'))).toMatch(/There are none\.$/);
  });

  test('a session, a background run or a request id without a store', async () => {
    const app = waymark({ model: scriptedModel([]) });
    closers.push(() => app.close());
    const agent = app.defineAgent({ name: 'a' });
    expect(await messageOf(() => agent.run('hi', { sessionId: 's' }))).toBe(
      'Agent "a" has no store, so it keeps no sessions. Pass `store` to waymark(), or start from { state }, the state of an earlier output.',
    );
    const store = 'Pass `store` to waymark() or to the agent';
    expect(await messageOf(() => agent.start('hi'))).toContain(store);
    expect(await messageOf(() => agent.run('hi', { requestId: 'r' }))).toContain(store);
    expect(await messageOf(() => agent.restore('s'))).toContain(store.replace('Pass', 'pass'));
  });

  test('something that is not a model', async () => {
    const { app } = open();
    expect(
      await messageOf(() => app.defineAgent({ name: 'a', model: wrong({ id: 'gpt' }) })),
    ).toContain(
      'This is not a model: pass a name, a model of `defineModel`, or an AI SDK language model',
    );
  });

  test('a text where the name of a prompt is expected', async () => {
    const { app } = open();
    expect(
      await messageOf(() => app.defineAgent({ name: 'a', prompt: 'You are a helpful assistant.' })),
    ).toBe(
      'The `prompt` of agent "a" must be the name of a prompt, and "You are a helpful assistant." is a text. Pass instructions as `system`.',
    );
  });

  test('an empty input, and a list of them', async () => {
    const { app } = open();
    const agent = app.defineAgent({ name: 'a' });
    expect(await messageOf(() => agent.run(''))).toBe(
      "The input is empty. Pass the user's text, a message, or an input such as { message } or { resume }.",
    );
    expect(await messageOf(() => agent.run(wrong(['a', 'b'])))).toContain('The input is an array.');
    expect(await messageOf(() => agent.run({}))).toBe(
      'The input has neither `message` nor `resume`. Pass one of them.',
    );
  });

  test('a duplicate agent name', async () => {
    const { app } = open();
    app.defineAgent({ name: 'chat' });
    const message = `There is already an agent "chat". Choose another name, or use app.agent('chat').`;
    expect(await messageOf(() => app.defineAgent({ name: 'chat' }))).toBe(message);
    expect(await messageOf(() => app.defineCustomAgent({ name: 'chat' }, () => {}))).toBe(message);
    app.defineTool({ name: 'note', description: 'Notes.' }, () => 1);
    expect(
      await messageOf(() => app.defineTool({ name: 'note', description: 'Notes.' }, () => 1)),
    ).toBe('There is already a tool "note". Choose another name.');
  });

  test('an interrupt that is answered without its ref', async () => {
    const model = scriptedModel([{ toolCalls: [{ name: 'ask', ref: 'r1' }] }, 'Thanks.']);
    const { app } = open({ model });
    const ask = app.defineInterrupt({ name: 'ask', description: 'Asks.' });
    const agent = app.defineAgent({ name: 'a', tools: [ask] });
    const { sessionId } = await agent.run('hi');
    const respond = [{ toolResponse: { name: 'ask', output: 'yes' } }];
    expect(await messageOf(() => agent.run({ resume: { respond } }, { sessionId }))).toContain(
      'The answer to tool "ask" has no `ref`. Copy it from the request ("r1"), or answer with the methods of `output.interrupts`.',
    );
  });
});

describe('packages and keys', () => {
  test('no dotprompt', async () => {
    vi.doMock('dotprompt', () => {
      throw new Error('Cannot find package');
    });
    const { app } = open();
    const agent = app.defineAgent({ name: 'a', system: 'Hello {{@state.name}}' });
    const message =
      'Prompt files and texts with {{placeholders}} need the package "dotprompt". Install it (npm install dotprompt), or use a function as template.';
    expect(await messageOf(() => app.ready())).toBe(message);
    expect(await messageOf(() => agent.run('hi'))).toBe(message);
  });

  test('no pg, and no connection string', async () => {
    vi.doMock('pg', () => {
      throw new Error('Cannot find package');
    });
    const store = postgresStore({ connectionString: 'postgres://127.0.0.1:1/nothing' });
    closers.push(async () => vi.doUnmock('pg'));
    expect(await messageOf(() => store.open?.())).toBe(
      'The Postgres store needs the package "pg". Install it: npm install pg',
    );
    const { DATABASE_URL } = { DATABASE_URL: undefined };
    expect(
      await messageOf(() => postgresStore(wrong({ connectionString: DATABASE_URL }))),
    ).toContain('The Postgres store needs a `connectionString` or a `pool`.');
  });

  test.each([
    ['OPENAI_API_KEY', () => createOpenAI()('gpt-5')],
    ['ANTHROPIC_API_KEY', () => createAnthropic()('claude-sonnet-4-5')],
    ['GOOGLE_GENERATIVE_AI_API_KEY', () => createGoogle()('gemini-2.5-pro')],
  ])(
    'S248 no %s: before the turn is accepted, not when the app gets ready',
    async (name, create) => {
      vi.stubEnv(name, undefined);
      const { app } = open({ model: create() });
      const agent = app.defineAgent({ name: 'a' });
      await app.ready();
      const error = await agent.run('hi').catch((caught: unknown) => caught);
      expect(error).toMatchObject({
        status: 'FAILED_PRECONDITION',
        message: expect.stringMatching(
          new RegExp(
            `^Agent "a" cannot run: .*API key is missing.* the ${name} environment variable`,
          ),
        ),
        cause: { status: 'UNAUTHENTICATED' },
      });
      expect((await agent.listSessions()).items).toEqual([]);
      expect((await agent.run('hi', { model: scriptedModel(['Hello.']) })).text).toBe('Hello.');
    },
  );
});

describe('options and arguments', () => {
  const model = scriptedModel([]);
  const app = waymark({ model });
  const agent = app.defineAgent({ name: 'options' });
  const echo = tool({ name: 'echo', description: 'Echoes.' }, () => 1);
  test.each<[string, () => unknown, string]>([
    [
      'waymark',
      () => waymark(wrong({ modle: model })),
      'Unknown option "modle" of waymark(). Did you mean "model"?',
    ],
    [
      'an agent',
      () => app.defineAgent(wrong({ name: 'x', tool: [echo] })),
      'Unknown option "tool" of agent "x". Did you mean "tools"?',
    ],
    [
      'an agent of the AI SDK',
      () => app.defineAgent(wrong({ name: 'x', instructions: 'Help.' })),
      'Unknown option "instructions" of agent "x". It is called "system".',
    ],
    [
      'a limit of steps of the AI SDK',
      () => app.defineAgent(wrong({ name: 'x', stopWhen: [] })),
      'Unknown option "stopWhen" of agent "x". It is called "maxTurns".',
    ],
    [
      'tools as an object',
      () => app.defineAgent(wrong({ name: 'x', tools: { echo } })),
      'The `tools` of agent "x" must be a list, such as [weather].',
    ],
    [
      'a tool of the AI SDK in tools',
      () => app.defineAgent(wrong({ name: 'x', tools: [aiTool({ inputSchema: z.object({}) })] })),
      '`tools[0]` of agent "x" is a tool of another library, such as the AI SDK. Define it here, with its schema as `input`',
    ],
    [
      'a tool of the AI SDK in a call',
      () =>
        app.generate(wrong({ prompt: 'x', tools: [echo, aiTool({ inputSchema: z.object({}) })] })),
      '`tools[1]` of a call is a tool of another library',
    ],
    [
      'a tool of the AI SDK in a prompt',
      () => app.definePrompt(wrong({ name: 'p', tools: [{ execute: () => 1 }] })),
      '`tools[0]` of prompt "p" is a tool of another library',
    ],
    [
      'an agent in tools',
      () => app.defineAgent(wrong({ name: 'x', tools: [agent] })),
      '`tools[0]` of agent "x" is an agent. Make it a tool: agentTool(agent).',
    ],
    [
      'a function in tools',
      () => app.defineAgent(wrong({ name: 'x', tools: [() => 1] })),
      '`tools[0]` of agent "x" is a function. Make it a tool: defineTool(',
    ],
    [
      'nothing in tools',
      () => app.defineAgent(wrong({ name: 'x', tools: [undefined] })),
      '`tools[0]` of agent "x" is undefined, and must be a tool.',
    ],
    [
      'an object of Zod fields',
      () => tool(wrong({ name: 't', description: '', input: { city: z.string() } }), () => 1),
      'This is an object of schemas ("city"), and not a schema. Wrap it in z.object({ … }).',
    ],
    [
      'an object of Zod fields as state',
      () => app.defineAgent(wrong({ name: 'x', state: { city: z.string() } })),
      'Wrap it in z.object({ … }).',
    ],
    [
      'an object of Zod fields as output',
      () => app.defineAgent(wrong({ name: 'x', output: { schema: { city: z.string() } } })),
      'Wrap it in z.object({ … }).',
    ],
    [
      'an object of Zod fields as output, in its short form',
      () => app.defineAgent(wrong({ name: 'x', output: { city: z.string() } })),
      'Unknown option "city" of `output`.',
    ],
    [
      'an output that is a text',
      () => app.defineAgent(wrong({ name: 'x', output: 'json' })),
      '`output` must be a schema or { schema, format }, and is the text "json".',
    ],
    [
      'an output of a call',
      () => app.generate(wrong({ prompt: 'x', output: { shema: {} } })),
      'Unknown option "shema" of `output`. Did you mean "schema"?',
    ],
    [
      'a generate call',
      () => app.generate(wrong({ promt: 'x' })),
      'Unknown option "promt" of generate(). Did you mean "prompt"?',
    ],
    [
      'a signal of the AI SDK',
      () => app.generateStream(wrong({ prompt: 'x', abortSignal: undefined, maxSteps: 3 })),
      'Unknown option "maxSteps" of generate(). It is called "maxTurns".',
    ],
    [
      'an agent without a name',
      () => app.defineAgent(wrong({})),
      '"undefined" cannot be the name of an agent',
    ],
    [
      'middleware that is no list',
      () => app.defineAgent(wrong({ name: 'x', use: retry() })),
      '`use` of agent "x" must be a list, and is an object.',
    ],
    [
      'a provider that is no model',
      () => app.defineAgent(wrong({ name: 'x', model: createOpenAI() })),
      '`model` of agent "x" must be a text or an object, and is a function.',
    ],
    [
      'a default model that is none',
      () => waymark(wrong({ model: { id: 'gpt' } })),
      'This is not a model: pass a name, a model of `defineModel`',
    ],
    [
      'a number of messages as history',
      () => app.defineAgent(wrong({ name: 'x', history: 10 })),
      '`history` of agent "x" must be a function, and is a number.',
    ],
    [
      'a concurrency',
      () => app.defineAgent(wrong({ name: 'x', concurrency: 'queue' })),
      'The `concurrency` cannot be "queue". Expected "reject" or "wait" or "fork".',
    ],
    [
      'a snapshot policy',
      () => app.defineAgent(wrong({ name: 'x', snapshot: 'sometimes' })),
      'The `snapshot` cannot be "sometimes". Expected "always" or "never".',
    ],
    [
      'a transform',
      () => app.defineAgent(wrong({ name: 'x', transform: { states: () => undefined } })),
      'Unknown option "states" of `transform` of agent "x". Did you mean "state"?',
    ],
    [
      'a custom agent without its handler',
      () => app.defineCustomAgent({ name: 'x' }, wrong({})),
      'Agent "x" has no handler. Pass it as the second argument',
    ],
    [
      'a tool without a description',
      () => tool(wrong({ name: 't' }), () => 1),
      'Tool "t" needs a `description`',
    ],
    [
      'an approval as text',
      () => tool(wrong({ name: 't', description: '', needsApproval: 'yes' }), () => 1),
      '`needsApproval` of tool "t" must be true or false or a function, and is the text "yes".',
    ],
    [
      'an error listener',
      () => waymark(wrong({ onError: 'print' })),
      '`onError` of waymark() must be a function, and is the text "print".',
    ],
    [
      'an auth that is no function',
      () => handler(app, wrong({ auth: 'secret' })),
      '`auth` of handler() must be a function, and is the text "secret".',
    ],
    [
      'a number of chunks',
      () => scriptedModel(wrong([{ chunks: 40 }])),
      '`chunks` of a scripted answer must be a list, and is a number.',
    ],
    [
      'chunks that are no texts',
      () => scriptedModel(wrong([{ chunks: [1] }])),
      '`chunks` of a scripted answer must be a list of texts.',
    ],
    [
      'a scripted tool call of the AI SDK',
      () => scriptedModel(wrong([{ toolCalls: [{ toolName: 'echo' }] }])),
      'Unknown option "toolName" of a scripted tool call. It is called "name".',
    ],
    [
      'a script that is a text',
      () => scriptedModel(wrong('Hello.' as never)),
      'scriptedModel() takes a list of replies, such as ["Hello."], or { patterns, otherwise }.',
    ],
    [
      'a scripted reply',
      () => scriptedModel([]).add(wrong(1 as never)),
      'A scripted reply must be a text, an answer or a function, and is a number.',
    ],
    [
      'a store by its path',
      () => waymark(wrong({ store: 'waymark.db' })),
      'The `store` of waymark() must be a store, such as sqliteStore("waymark.db")',
    ],
    [
      'tools by name in a call',
      () => app.generate(wrong({ prompt: 'x', tools: { echo } })),
      'The `tools` of a call must be a list, such as [weather].',
    ],
    [
      'a time as text',
      () => app.defineAgent(wrong({ name: 'x', limits: { turn: { timeout: '3s' } } })),
      '`timeout` of `limits.turn` of agent "x" must be a number, and is "3s".',
    ],
    [
      'a count as text',
      () => app.defineAgent(wrong({ name: 'x', maxTurns: '5' })),
      '`maxTurns` of agent "x" must be a number, and is "5".',
    ],
    [
      'a limit of a session as text',
      () => app.defineAgent(wrong({ name: 'x', limits: { session: { tokens: 'many' } } })),
      '`tokens` of `limits.session` of agent "x" must be a number, and is "many".',
    ],
    [
      'a number that is none',
      () => waymark(wrong({ claimTtl: Number.NaN })),
      '`claimTtl` of waymark() must be a number, and is NaN.',
    ],
    [
      'an input of the AI SDK',
      () => agent.run(wrong({ prompt: 'hi' })),
      'The input has "prompt", but neither `message` nor `resume`. Pass the user\'s text',
    ],
    ['no input', () => agent.run(wrong(undefined as never)), 'The input is empty. Pass the user'],
    [
      'middleware outside of use',
      () => app.defineAgent(wrong({ name: 'x', toolApproval: ['echo'] })),
      'Unknown option "toolApproval" of agent "x". Middleware goes into `use`',
    ],
    [
      'a turn',
      () => agent.run('hi', wrong({ sesionId: 's' })),
      'Unknown option "sesionId" of a turn. Did you mean "sessionId"?',
    ],
    [
      'a tool',
      () => app.defineTool(wrong({ name: 't', description: '', inputs: {} }), () => 1),
      'Unknown option "inputs" of tool "t". Did you mean "input"?',
    ],
    [
      'a tool of the AI SDK',
      () => tool(wrong({ name: 't', description: '', inputSchema: {} }), () => 1),
      'Unknown option "inputSchema" of tool "t". It is called "input".',
    ],
    [
      'a tool without its function',
      () => tool({ name: 't', description: '' }, wrong({})),
      'Tool "t" has no function. Pass it as the second argument',
    ],
    [
      'a prompt',
      () => app.definePrompt(wrong({ name: 'p', sytem: 'x' })),
      'Unknown option "sytem" of prompt "p". Did you mean "system"?',
    ],
    [
      'sqliteStore',
      () => sqliteStore(':memory:', wrong({ durabilty: 'full' })),
      'Unknown option "durabilty" of sqliteStore(). Did you mean "durability"?',
    ],
    [
      'a durability',
      () => sqliteStore(':memory:', wrong({ durability: 'high' })),
      'The durability of sqliteStore() cannot be "high". Expected "normal" or "full".',
    ],
    [
      'fileStore of 0.1',
      () => fileStore('x', wrong({ durable: false })),
      'Unknown option "durable" of fileStore(). It is called "durability".',
    ],
    [
      'postgresStore',
      () => postgresStore(wrong({ connection: 'x' })),
      'Unknown option "connection" of postgresStore().',
    ],
    [
      'memoryStore',
      () => memoryStore(wrong({ ttl: 1 })),
      'Unknown option "ttl" of memoryStore(). The options are: clock, eventsTtl, newId.',
    ],
    [
      'pgBossEngine',
      () => pgBossEngine(wrong({ connectionString: 'x', heartbeatSeconds: 10 })),
      'Unknown option "heartbeatSeconds" of pgBossEngine(). It is called "heartbeat".',
    ],
    [
      'createClient',
      () => createClient(wrong({ url: '/', header: {} })),
      'Unknown option "header" of createClient(). Did you mean "headers"?',
    ],
    [
      'a client without a server',
      () => createClient(wrong({})),
      'createClient() needs the `url` of the server',
    ],
    [
      'reconnect',
      () => createClient(wrong({ url: '/', reconnect: { silence: 1 } })),
      'Unknown option "silence" of `reconnect` of createClient(). It is called "idleTimeout".',
    ],
    [
      'serve',
      () => serve(app, wrong({ prot: 1 })),
      'Unknown option "prot" of serve(). Did you mean "port"?',
    ],
    [
      'handler',
      () => handler(app, wrong({ basepath: '/x' })),
      'Unknown option "basepath" of handler(). Did you mean "basePath"?',
    ],
    [
      'limits of a server',
      () => handler(app, { limits: wrong({ bodyByte: 1 }) }),
      'Unknown option "bodyByte" of `limits`. Did you mean "bodyBytes"?',
    ],
    [
      'limits of an agent',
      () => app.defineAgent({ name: 'x', limits: { turn: wrong({ timeMs: 1 }) } }),
      'Unknown option "timeMs" of `limits.turn` of agent "x". It is called "timeout".',
    ],
    [
      'close',
      () => app.close(wrong({ deadlineMs: 1 })),
      'Unknown option "deadlineMs" of close(). It is called "grace".',
    ],
    [
      'retry',
      () => retry(wrong({ baseMs: 1 })),
      'Unknown option "baseMs" of retry(). It is called "delay".',
    ],
    [
      'agentTool',
      () => agentTool(agent, wrong({ descripton: 'x' })),
      'Unknown option "descripton" of agentTool(). Did you mean "description"?',
    ],
    [
      'an array of events',
      () => on(wrong(['turnEnd'])),
      'on() takes its values one by one, and got an array. Write on(...values).',
    ],
  ])('%s', async (_, call, message) => {
    expect(await messageOf(call)).toContain(message);
  });

  test('an array of messages', async () => {
    const { app: own } = open();
    const custom = own.defineCustomAgent({ name: 'a' }, (session) =>
      session.run(async () => session.addMessages(wrong([{ role: 'model', content: [] }]))),
    );
    expect(await messageOf(() => custom.run('hi'))).toContain(
      'addMessages() takes its values one by one, and got an array. Write addMessages(...values).',
    );
  });
});

test('a port in use', async () => {
  const { app } = open();
  const log = (): void => {};
  const first = await serve(app, { port: 0, log });
  closers.push(() => first.close());
  expect(await messageOf(() => serve(app, { port: first.port, log }))).toBe(
    `Could not listen on 127.0.0.1:${first.port}: the port is in use (EADDRINUSE). Stop the other process, or choose another port; 0 takes a free one.`,
  );
});

describe('a name that middleware takes', () => {
  const refund = tool({ name: 'refund', description: 'Refunds.' }, () => 'refunded');
  const meant =
    'The tool approval of agent "desk" names the tool "refnud", which agent "desk" does not have. Did you mean "refund"?';

  test('S580 an approval of an unknown tool is refused when the agent is defined', async () => {
    const { app } = open();
    const use = [toolApproval(['refnud'])];
    const define = (): unknown => app.defineAgent({ name: 'desk', tools: [refund], use });
    expect(await messageOf(define)).toContain(meant);
    expect(await messageOf(() => app.generate({ prompt: 'x', tools: [refund], use }))).toContain(
      'The tool approval of this call names the tool "refnud"',
    );
    app.defineAgent({ name: 'desk', tools: [refund], use: [toolApproval(['refund'])] });
    await app.ready();
  });

  test('S580 with a prompt by its name: at ready() and before a turn is accepted', async () => {
    const { app } = open();
    const use = [toolApproval(['refnud'])];
    const agent = app.defineAgent({ name: 'desk', prompt: 'rules', use });
    app.definePrompt({ name: 'rules', system: 'Help.', tools: [refund] });
    expect(await messageOf(() => app.ready())).toContain(meant);
    expect(await messageOf(() => agent.run('hi'))).toContain(meant);
    expect((await agent.listSessions()).items).toEqual([]);
  });

  const source = (tools: () => readonly (typeof refund)[], isShared?: boolean): ToolSource => ({
    name: 'shop',
    list: async () => tools() as never,
    ...(isShared !== undefined && { isShared }),
  });

  test('S580 with a tool source: at ready() and before the model is called, unless the tool was there once', async () => {
    let offered = [refund];
    const model = scriptedModel({ patterns: [], otherwise: 'Hello.' });
    const { app } = open({ model });
    const tools = [source(() => offered, true)];
    const wrongly = app.defineAgent({ name: 'desk', tools, use: [toolApproval(['refnud'])] });
    expect(await messageOf(() => app.ready())).toContain(meant);
    expect(await messageOf(() => wrongly.run('hi'))).toContain('names the tool "refnud"');
    expect(model.requests).toEqual([]);

    const rightly = app.defineAgent({ name: 'shop', tools, use: [toolApproval(['refund'])] });
    expect((await rightly.run('hi')).text).toBe('Hello.');
    offered = [];
    expect((await rightly.run('hi')).text).toBe('Hello.');
  });

  test('S580 with a tool source of each user: reported once', async () => {
    const errors: string[] = [];
    const { app } = open({ onError: (error) => errors.push((error as Error).message) });
    const tools = [source(() => [refund])];
    const agent = app.defineAgent({ name: 'desk', tools, use: [toolApproval(['refnud'])] });
    await app.ready();
    expect(errors).toEqual([]);
    await agent.run('hi');
    await agent.run('hi');
    expect(errors).toEqual([expect.stringContaining('names the tool "refnud"')]);
  });

  test('S580 with middleware that agents share: a tool of one agent, or a report, is none of the other', async () => {
    const refnd = tool({ name: 'refnd', description: 'Refunds.' }, () => 'refunded');
    const use = [toolApproval(['refund'])];
    const { app } = open();
    const mail = source(() => [], true);
    const tools = [source(() => [refund], true), mail];
    const one = app.defineAgent({ name: 'one', tools, use });
    await app.ready();
    await one.run('hi');
    const two = app.defineAgent({ name: 'two', tools: [source(() => [refnd], true), mail], use });
    const unknown = 'names the tool "refund", which agent "two" does not have';
    expect(await messageOf(() => app.ready())).toContain(unknown);
    expect(await messageOf(() => two.run('hi'))).toContain('Did you mean "refnd"?');

    const errors: string[] = [];
    const { app: other } = open({ onError: (error) => errors.push((error as Error).message) });
    const shared = [toolApproval(['refund'])];
    const own = other.defineAgent({ name: 'own', tools: [source(() => [refnd])], use: shared });
    await own.run('hi');
    expect(errors).toEqual([expect.stringContaining('names the tool "refund"')]);
    other.defineAgent({ name: 'two', tools: [source(() => [refnd], true)], use: shared });
    expect(await messageOf(() => other.ready())).toContain(unknown);
  });

  test('S581 a rule or an option of toolApproval that would never apply', async () => {
    expect(await messageOf(() => toolApproval(['refund'], wrong({ expireIn: 3 })))).toBe(
      'Unknown option "expireIn" of toolApproval(). Did you mean "expiresIn"?',
    );
    for (const rule of ['refund', { refund: true }, [refund], undefined]) {
      expect(await messageOf(() => toolApproval(rule as never))).toContain(
        'toolApproval() takes names of tools',
      );
    }
  });

  test('S248 a fallback to an unknown model', async () => {
    const { app } = open();
    const agent = app.defineAgent({ name: 'chat', use: [fallback(['smal'])] });
    app.defineModel({ name: 'small' }, scriptedModel([]).run);
    const message = 'Agent "chat" cannot run: No model "smal" is defined. Did you mean "small"?';
    expect(await messageOf(() => app.ready())).toContain(message);
    expect(await messageOf(() => agent.run('hi'))).toContain(message);
  });
});

describe('a schema alone as `output`', () => {
  const model = (): ReturnType<typeof scriptedModel> => scriptedModel(['{ "n": 1 }', '{ "n": 2 }']);
  test.each([
    ['zod', z.object({ n: z.number() })],
    ['JSON Schema', { type: 'object', properties: { n: { type: 'number' } } }],
  ])('is its short form: %s', async (_, schema) => {
    const { app } = open({ model: model() });
    const agent = app.defineAgent({ name: 'a', output: schema });
    expect((await agent.run('x')).output).toEqual({ n: 1 });
    expect((await app.generate({ prompt: 'x', output: schema })).output).toEqual({ n: 2 });
    expect(agent.metadata).toBeDefined();
  });

  test('a format alone is none', async () => {
    const { app } = open({ model: scriptedModel(['{ "n": 1 }']) });
    expect((await app.generate({ prompt: 'x', output: { format: 'json' } })).output).toEqual({
      n: 1,
    });
  });
});

describe('a change of the frozen state names updateCustom', () => {
  const advice = 'to change the custom state, use session.updateCustom((draft) => …).';
  const state = z.object({ items: z.array(z.string()) });
  const initialState = { items: ['a'] };
  const changes: [string, (items: string[], custom: { items?: string[] }) => unknown][] = [
    ['push', (items) => items.push('b')],
    [
      'an assignment',
      (items) => {
        items[0] = 'b';
      },
    ],
    ['a deletion', (_, custom) => delete custom.items],
  ];
  test.each(changes)('S712 in a handler and in a tool: %s', async (_, change) => {
    const model = scriptedModel([{ toolCalls: [{ name: 'add' }] }, 'Done.']);
    const { app, printed } = open({ model });
    const run = (custom: unknown): unknown => {
      const { items } = custom as { items: string[] };
      return change(items, custom as { items?: string[] });
    };
    const custom = app.defineCustomAgent({ name: 'custom', state, initialState }, (session) =>
      session.run(async () => void run(session.custom)),
    );
    expect(await messageOf(() => custom.run('x'))).toContain(advice);
    expect(printed[0]).toContain(advice);
    expect(printed[0]).toContain('mistakes.test.ts');
    const add = app.defineTool(
      { name: 'add', description: 'Adds.', state },
      (_input, { session }) => void run(session.custom),
    );
    await app.defineAgent({ name: 'tools', tools: [add], state, initialState }).run('x');
    expect(printed[1]).toContain(advice);
  });

  test('a TypeError of another kind stays as it is', async () => {
    const { app } = open();
    const agent = app.defineCustomAgent({ name: 'a' }, (session) =>
      session.run(async () => {
        throw new TypeError('x is not a function');
      }),
    );
    expect(await messageOf(() => agent.run('x'))).not.toContain(advice);
  });
});

test('two turns at once: the error names the option', async () => {
  const gate = Promise.withResolvers<void>();
  const { app } = open();
  const agent = app.defineCustomAgent({ name: 'a' }, (session) =>
    session.run(async () => await gate.promise),
  );
  const first = agent.stream('x', { sessionId: 's' });
  for await (const chunk of first.stream) if (chunk.turnStart) break;
  expect(await messageOf(() => agent.run('y', { sessionId: 's' }))).toContain(
    "define the agent with `concurrency: 'wait'`",
  );
  gate.resolve();
  await first.output;
});
