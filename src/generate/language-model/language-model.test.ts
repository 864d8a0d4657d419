import { describe, expect, test, vi } from 'vitest';
import { z } from 'zod';
import type { Action } from '../../core/action.ts';
import { WaymarkError } from '../../core/error.ts';
import { createRegistry } from '../../core/registry.ts';
import { systemClock } from '../../core/time.ts';
import type { Message } from '../../protocol/message.ts';
import { createGenerator } from '../generator.ts';
import { modelMessage, systemMessage, toolMessage, userMessage } from '../template.ts';
import { providerTool, tool } from '../tool/tool.ts';
import { fromProviderError } from './errors.ts';
import { toPrompt } from './prompt.ts';
import type { CallOptions, LanguageModel, SpecificationVersion } from './types.ts';

type Part = { readonly type: string; readonly [field: string]: unknown };

/** A model that answers each call with the next stream, and remembers what it was asked. */
function fakeModel(streams: readonly (readonly Part[])[], version: SpecificationVersion = 'v4') {
  const calls: CallOptions[] = [];
  const languageModel = {
    specificationVersion: version,
    provider: 'fake',
    modelId: 'one',
    async doStream(options: CallOptions) {
      const parts = streams[calls.push(options) - 1] ?? [];
      return { stream: streamOf(parts) };
    },
  };
  return { languageModel, calls };
}

function streamOf(parts: readonly Part[]): ReadableStream<Part> {
  return new ReadableStream({
    start(controller) {
      for (const part of parts) controller.enqueue(part);
      controller.close();
    },
  });
}

const app = createGenerator({
  registry: createRegistry<Action>(),
  clock: systemClock,
  newId: () => 'id',
});

const text = (delta: string): Part[] => [
  { type: 'text-start', id: 't' },
  { type: 'text-delta', id: 't', delta },
  { type: 'text-end', id: 't' },
];
const finish = (unified = 'stop'): Part => ({
  type: 'finish',
  finishReason: { unified, raw: unified },
  usage: {
    inputTokens: { total: 10, cacheRead: 4 },
    outputTokens: { total: 5, reasoning: 2 },
  },
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

describe('an answer', () => {
  test('is put together from text, reasoning, files, sources and what the provider wants back', async () => {
    const { languageModel } = fakeModel([
      [
        { type: 'stream-start', warnings: [{ type: 'unsupported', feature: 'topK' }] },
        { type: 'response-metadata', id: 'resp-1', modelId: 'one-2026', timestamp: new Date() },
        { type: 'reasoning-start', id: '0', providerMetadata: { fake: { item: 'rs' } } },
        { type: 'reasoning-delta', id: '0', delta: 'Let me ' },
        { type: 'reasoning-delta', id: '0', delta: 'think' },
        {
          type: 'reasoning-delta',
          id: '0',
          delta: '',
          providerMetadata: { fake: { signature: 's' } },
        },
        { type: 'reasoning-end', id: '0' },
        { type: 'ping' },
        { type: 'text-start', id: '0' },
        { type: 'text-delta', id: '0', delta: 'He' },
        { type: 'something-new', id: '0' },
        { type: 'text-delta', id: '0', delta: 'llo' },
        { type: 'text-end', id: '0', citations: [{ citedText: 'x' }] },
        { type: 'source', sourceType: 'url', id: 's1', url: 'https://a.test', title: undefined },
        {
          type: 'file',
          mediaType: 'image/png',
          data: { type: 'data', data: new Uint8Array([1, 2, 255]) },
        },
        finish(),
      ],
    ]);
    const response = await app.generate({ model: languageModel, prompt: 'x' });
    expect(response.message.content).toEqual([
      {
        reasoning: 'Let me think',
        metadata: { providerMetadata: { fake: { item: 'rs', signature: 's' } } },
      },
      { text: 'Hello', metadata: { citations: [{ citedText: 'x' }] } },
      { custom: { source: { sourceType: 'url', id: 's1', url: 'https://a.test' } } },
      { media: { url: 'data:image/png;base64,AQL/', contentType: 'image/png' } },
    ]);
    expect(response).toMatchObject({
      finishReason: 'stop',
      usage: {
        inputTokens: 10,
        outputTokens: 5,
        totalTokens: 15,
        reasoningTokens: 2,
        cachedInputTokens: 4,
      },
      warnings: [{ type: 'unsupported', feature: 'topK' }],
      metadata: { responseId: 'resp-1', responseModel: 'one-2026' },
      model: 'fake/one',
    });
  });

  test('streams text and reasoning in pieces', async () => {
    const { languageModel } = fakeModel([
      [{ type: 'reasoning-delta', id: '1', delta: 'hm' }, ...text('Hi'), finish()],
    ]);
    const chunks: unknown[] = [];
    await app.generate({
      model: languageModel,
      prompt: 'x',
      onChunk: ({ content }) => void chunks.push(content[0]),
    });
    expect(chunks).toEqual([{ reasoning: 'hm' }, { text: 'Hi' }]);
  });

  test.each([
    ['stop', 'stop'],
    ['tool-calls', 'stop'],
    ['length', 'length'],
    ['content-filter', 'blocked'],
    ['other', 'other'],
    ['what-is-this', 'unknown'],
  ])('that ends with %s has finish reason %s', async (unified, expected) => {
    const { languageModel } = fakeModel([[...text('x'), finish(unified)]]);
    const { finishReason } = await app.generate({ model: languageModel, prompt: 'x' });
    expect(finishReason).toBe(expected);
  });

  test.each([
    ['anthropic', { cacheCreationInputTokens: 30 }],
    ['bedrock', { usage: { cacheWriteInputTokens: 30 } }],
  ])('of version 2 has the tokens written to the cache of %s', async (provider, metadata) => {
    const usage = { inputTokens: 10, outputTokens: 5, totalTokens: 15, cachedInputTokens: 200 };
    const providerMetadata = { [provider]: metadata };
    const last = { type: 'finish', finishReason: 'stop', usage, providerMetadata };
    const { languageModel } = fakeModel([[...text('x'), last]], 'v2');
    const response = await app.generate({ model: languageModel, prompt: 'x' });
    expect(response.usage).toMatchObject({
      inputTokens: 240,
      outputTokens: 5,
      totalTokens: 245,
      cachedInputTokens: 200,
      cacheWriteTokens: 30,
    });
  });

  test('of a v2 model has plain counts, a plain finish reason and plain files', async () => {
    const { languageModel } = fakeModel(
      [
        [
          ...text('x'),
          { type: 'file', mediaType: 'image/png', data: 'AQ==' },
          {
            type: 'finish',
            finishReason: 'length',
            usage: {
              inputTokens: 1,
              outputTokens: 2,
              totalTokens: 3,
              cachedInputTokens: undefined,
            },
          },
        ],
      ],
      'v2',
    );
    const response = await app.generate({ model: languageModel, prompt: 'x' });
    expect(response).toMatchObject({
      finishReason: 'length',
      usage: { inputTokens: 1, outputTokens: 2, totalTokens: 3 },
    });
    expect(response.message.content[1]).toMatchObject({
      media: { url: 'data:image/png;base64,AQ==' },
    });
  });

  test('with tool calls runs them, not those the provider ran itself', async () => {
    const { languageModel, calls } = fakeModel([
      [
        { type: 'tool-input-start', id: 'w', toolName: 'web' },
        {
          type: 'tool-call',
          toolCallId: 'w',
          toolName: 'web',
          input: '{"q":"x"}',
          providerExecuted: true,
        },
        {
          type: 'tool-result',
          toolCallId: 'w',
          toolName: 'web',
          result: { half: 1 },
          preliminary: true,
        },
        { type: 'tool-result', toolCallId: 'w', toolName: 'web', result: { hits: 1 } },
        {
          type: 'tool-call',
          toolCallId: 'c',
          toolName: 'now',
          input: '',
          providerMetadata: { fake: { sig: 1 } },
        },
        finish('tool-calls'),
      ],
      [...text('done'), finish()],
    ]);
    const now = tool({ name: 'now', description: 'd' }, () => 12);
    const response = await app.generate({ model: languageModel, prompt: 'x', tools: [now] });
    expect(response.text).toBe('done');
    expect(response.messages[1]).toEqual(
      toolMessage({ toolResponse: { name: 'now', ref: 'c', output: 12 } }),
    );
    expect(calls[1]?.prompt).toEqual([
      { role: 'user', content: [{ type: 'text', text: 'x' }] },
      {
        role: 'assistant',
        content: [
          {
            type: 'tool-call',
            toolCallId: 'w',
            toolName: 'web',
            input: { q: 'x' },
            providerExecuted: true,
          },
          {
            type: 'tool-result',
            toolCallId: 'w',
            toolName: 'web',
            output: { type: 'json', value: { hits: 1 } },
          },
          {
            type: 'tool-call',
            toolCallId: 'c',
            toolName: 'now',
            input: {},
            providerOptions: { fake: { sig: 1 } },
          },
        ],
      },
      {
        role: 'tool',
        content: [
          {
            type: 'tool-result',
            toolCallId: 'c',
            toolName: 'now',
            output: { type: 'json', value: 12 },
          },
        ],
      },
    ]);
  });
});

describe('a call', () => {
  test('passes on settings, tools, tool choice and output, and nothing else', async () => {
    const { languageModel, calls } = fakeModel([[...text('{"a":{"b":1}}'), finish()]]);
    await app.generate({
      model: languageModel,
      prompt: 'x',
      config: {
        temperature: 0.5,
        maxOutputTokens: 9,
        reasoning: 'low',
        providerOptions: { fake: { user: 'u' } },
        prompt: 'must not get through',
      },
      tools: [
        tool({ name: 'now', description: 'Tells the time' }, () => 1),
        providerTool({ name: 'web', id: 'fake.web', args: { depth: 2 } }),
      ],
      toolChoice: { tool: 'now' },
      output: { schema: z.object({ a: z.object({ b: z.number() }) }) },
    });
    const { abortSignal, prompt, ...rest } = calls[0] ?? ({} as CallOptions);
    expect(abortSignal).toBeInstanceOf(AbortSignal);
    expect(prompt).toEqual([{ role: 'user', content: [{ type: 'text', text: 'x' }] }]);
    expect(rest).toMatchObject({
      temperature: 0.5,
      maxOutputTokens: 9,
      reasoning: 'low',
      providerOptions: { fake: { user: 'u' } },
      toolChoice: { type: 'tool', toolName: 'now' },
      tools: [
        {
          type: 'function',
          name: 'now',
          description: 'Tells the time',
          inputSchema: { type: 'object' },
        },
        { type: 'provider', id: 'fake.web', name: 'web', args: { depth: 2 } },
      ],
      responseFormat: {
        type: 'json',
        schema: {
          additionalProperties: false,
          properties: { a: { additionalProperties: false, properties: { b: { type: 'number' } } } },
        },
      },
    });
  });

  test('can be given a name to be found by', async () => {
    const { languageModel } = fakeModel([[...text('named'), finish()]]);
    app.defineModel({ name: 'fast' }, languageModel);
    expect(await app.generate({ model: 'fast', prompt: 'x' })).toMatchObject({
      text: 'named',
      model: 'fast',
    });
  });
});

describe('a conversation going out', () => {
  const media = { media: { url: 'data:image/png;base64,AQ==' } };
  const link = { media: { url: 'https://a.test/b.pdf' } };

  test.each([
    ['v4', { type: 'data', data: 'AQ==' }, { type: 'url', url: new URL('https://a.test/b.pdf') }],
    ['v3', 'AQ==', new URL('https://a.test/b.pdf')],
    ['v2', 'AQ==', new URL('https://a.test/b.pdf')],
  ] as const)('has files as %s takes them', (version, data, url) => {
    expect(toPrompt([userMessage([media, link])], version)[0]?.content).toEqual([
      { type: 'file', data, mediaType: 'image/png' },
      { type: 'file', data: url, mediaType: 'application/pdf' },
    ]);
  });

  test.each([
    ['v4', { type: 'file', data: { type: 'data', data: 'AQ==' }, mediaType: 'image/png' }],
    ['v3', { type: 'file-data', data: 'AQ==', mediaType: 'image/png' }],
    ['v2', { type: 'media', data: 'AQ==', mediaType: 'image/png' }],
  ] as const)('has the content of tool results as %s takes it', (version, file) => {
    const content = [{ text: 'see' }, { media: { url: media.media.url } }];
    const message = toolMessage({
      toolResponse: { name: 't', ref: 'r', output: { n: 1 }, content },
    });
    expect(toPrompt([message], version)[0]?.content).toEqual([
      {
        type: 'tool-result',
        toolCallId: 'r',
        toolName: 't',
        output: {
          type: 'content',
          value: [{ type: 'text', text: '{"n":1}' }, { type: 'text', text: 'see' }, file],
        },
      },
    ]);
  });

  test('tells results from errors, and texts from data', () => {
    const results = ['text', { a: 1 }, null].flatMap((output) => [
      { toolResponse: { name: 't', ref: 'r', output } },
      { toolResponse: { name: 't', ref: 'r', output }, metadata: { error: { status: 'UNKNOWN' } } },
    ]);
    const [message] = toPrompt([toolMessage(results)], 'v4');
    expect(message?.content).toMatchObject(
      [
        { type: 'text', value: 'text' },
        { type: 'error-text', value: 'text' },
        { type: 'json', value: { a: 1 } },
        { type: 'error-json', value: { a: 1 } },
        { type: 'json', value: null },
        { type: 'error-json', value: null },
      ].map((output) => ({ output })),
    );
  });

  test('has no message that says nothing, and results that came apart are together', () => {
    const response = (ref: string) => ({ toolResponse: { name: 't', ref, output: 1 } });
    const again = { toolRequest: { name: 't', ref: '2' }, metadata: { interrupt: true } };
    const messages: Message[] = [
      systemMessage('S'),
      userMessage([{ text: 'x' }, { data: { a: 1 } }]),
      modelMessage([{ text: '' }, { custom: { source: {} } }]),
      modelMessage([
        { toolRequest: { name: 't', ref: '1' } },
        { toolRequest: { name: 't', ref: '2' } },
      ]),
      toolMessage([response('1'), again]),
      toolMessage(response('2')),
    ];
    const prompt = toPrompt(messages, 'v4');
    expect(prompt.map(({ role }) => role)).toEqual(['system', 'user', 'assistant', 'tool']);
    expect(prompt[1]?.content).toEqual([
      { type: 'text', text: 'x' },
      { type: 'text', text: '{"a":1}' },
    ]);
    expect(prompt[3]?.content).toMatchObject([{ toolCallId: '1' }, { toolCallId: '2' }]);
  });

  test('gives reasoning back with its signature, and an empty text if one rides on it', () => {
    const metadata = { providerMetadata: { fake: { signature: 's' } } };
    const providerOptions = metadata.providerMetadata;
    const message = modelMessage([
      { reasoning: 'hm', metadata },
      { text: '', metadata },
    ]);
    expect(toPrompt([message], 'v4')[0]?.content).toEqual([
      { type: 'reasoning', text: 'hm', providerOptions },
      { type: 'text', text: '', providerOptions },
    ]);
  });

  test('says what a provider should know of a message, a part or the system text', () => {
    const metadata = { providerMetadata: { fake: { cache: true } } };
    const providerOptions = metadata.providerMetadata;
    const messages = [
      systemMessage({ text: 'S', metadata }),
      { ...userMessage('a'), metadata },
      userMessage({ text: 'b', metadata }),
    ];
    expect(toPrompt(messages, 'v4')).toEqual([
      { role: 'system', content: 'S', providerOptions },
      { role: 'user', content: [{ type: 'text', text: 'a' }], providerOptions },
      { role: 'user', content: [{ type: 'text', text: 'b', providerOptions }] },
    ]);
  });

  test.each([
    ['an unread resource', { resource: { uri: 'x://y' } }],
    ['a URL that is none', { media: { url: 'not a url' } }],
    ['a data URL without data', { media: { url: 'data:image/png' } }],
  ])('with %s is refused', (_, part) => {
    expect(() => toPrompt([userMessage(part)], 'v4')).toThrow(WaymarkError);
  });

  test('understands data URLs that are not base64', () => {
    const [message] = toPrompt([userMessage({ media: { url: 'data:,h%C3%A9' } })], 'v3');
    expect(message?.content).toEqual([{ type: 'file', data: 'aMOp', mediaType: 'text/plain' }]);
  });
});

describe('failures', () => {
  const broken = (parts: readonly Part[]): LanguageModel => fakeModel([parts]).languageModel;

  test.each([
    ['breaks off', text('Hel'), 'UNAVAILABLE', /broke its answer off/],
    [
      'says that it was cut off',
      [...text('Hel'), finish('interrupted')],
      'UNAVAILABLE',
      /broke its answer off/,
    ],
    ['ends with an error', [...text('Hel'), finish('error')], 'UNAVAILABLE', /ended with an error/],
    ['is empty', [], 'UNAVAILABLE', /broke its answer off/],
    [
      'has arguments that are not JSON',
      [{ type: 'tool-call', toolCallId: 'c', toolName: 'now', input: '{"a":' }, finish()],
      'INTERNAL',
      /tool "now" that are not JSON/,
    ],
    [
      'has an error in it',
      [{ type: 'error', error: { type: 'overloaded_error', message: 'busy' } }],
      'UNAVAILABLE',
      /busy/,
    ],
    ['has an error that is a text', [{ type: 'error', error: 'boom' }], 'UNAVAILABLE', /boom/],
  ])('a stream that %s is a clear error that may be retried', async (_, parts, status, message) => {
    const error = await failure(app.generate({ model: broken(parts as Part[]), prompt: 'x' }));
    expect(error.status).toBe(status);
    expect(error.message).toMatch(message);
    expect(error.details).toMatchObject({ retryable: true, model: 'fake/one' });
  });

  test('keeps the received part of a stream that broke off', async () => {
    const run = app.generateStream({ model: broken(text('Hel')), prompt: 'x' });
    await failure(run.response);
    expect(run.messages).toEqual([modelMessage('Hel')]);
  });

  test.each([
    [401, 'UNAUTHENTICATED', false],
    [403, 'PERMISSION_DENIED', false],
    [404, 'NOT_FOUND', false],
    [400, 'INVALID_ARGUMENT', false],
    [408, 'UNAVAILABLE', true],
    [429, 'RESOURCE_EXHAUSTED', true],
    [500, 'UNAVAILABLE', true],
    [529, 'UNAVAILABLE', true],
    [200, 'INTERNAL', false],
  ])('HTTP %i is %s', (statusCode, status, retryable) => {
    const thrown = Object.assign(new Error('said so'), {
      name: 'AI_APICallError',
      statusCode,
      responseHeaders: { 'retry-after': '2' },
    });
    const error = fromProviderError(thrown, 'm');
    expect(error).toMatchObject({
      status,
      cause: thrown,
      details: { retryable, httpStatus: statusCode, retryAfterMs: 2000 },
    });
  });

  test.each([
    [{ type: 'error', error: { type: 'rate_limit_error', message: 'm' } }, 'RESOURCE_EXHAUSTED'],
    [{ error: { code: 503, status: 'UNAVAILABLE', message: 'm' } }, 'UNAVAILABLE'],
    [{ type: 'invalid_request_error', message: 'm' }, 'INVALID_ARGUMENT'],
    [{ code: 'context_length_exceeded', message: 'm' }, 'INVALID_ARGUMENT'],
    [
      Object.assign(new TypeError('fetch failed'), { cause: { code: 'ECONNREFUSED' } }),
      'UNAVAILABLE',
    ],
    [new TypeError('terminated'), 'UNAVAILABLE'],
    [Object.assign(new Error('no key'), { name: 'AI_LoadAPIKeyError' }), 'UNAUTHENTICATED'],
    [{ lastError: { statusCode: 429, message: 'm' } }, 'RESOURCE_EXHAUSTED'],
    [new TypeError('x is not a function'), 'INTERNAL'],
    [undefined, 'UNAVAILABLE'],
  ])('%j is %s', (thrown, status) => {
    expect(fromProviderError(thrown, 'm').status).toBe(status);
  });

  test('does not tell the caller about credentials', () => {
    const error = fromProviderError({ statusCode: 401, message: 'Incorrect API key sk-123' }, 'm');
    expect(JSON.stringify(error)).toContain('refused the credentials');
    expect(JSON.stringify(error)).not.toContain('sk-123');
  });

  test('an abort reaches the model, its stream and the waiting caller at once', async () => {
    const cancelled = vi.fn();
    let given: AbortSignal | undefined;
    const languageModel = {
      specificationVersion: 'v4' as const,
      provider: 'fake',
      modelId: 'slow',
      async doStream({ abortSignal }: CallOptions) {
        given = abortSignal;
        const stream = new ReadableStream<Part>({
          start: (controller) => controller.enqueue({ type: 'text-delta', id: '1', delta: 'Hel' }),
          cancel: cancelled,
        });
        return { stream };
      },
    };
    const controller = new AbortController();
    const run = app.generateStream({
      model: languageModel,
      prompt: 'x',
      signal: controller.signal,
    });
    for await (const _ of run.stream) break;
    controller.abort();
    expect((await failure(run.response)).status).toBe('CANCELLED');
    expect(given?.aborted).toBe(true);
    expect(cancelled).toHaveBeenCalledTimes(1);
    expect(run.messages).toEqual([modelMessage('Hel')]);
  });

  test('a stop ends the wait for a model that does not even begin', async () => {
    const languageModel = {
      specificationVersion: 'v3' as const,
      provider: 'fake',
      modelId: 'deaf',
      doStream: () => new Promise<never>(() => {}),
    };
    const controller = new AbortController();
    const response = app.generate({ model: languageModel, prompt: 'x', signal: controller.signal });
    controller.abort();
    expect((await failure(response)).status).toBe('CANCELLED');
  });

  test('an object of another specification is no model', async () => {
    const old = {
      specificationVersion: 'v1',
      provider: 'x',
      modelId: 'y',
      doStream: async () => ({}),
    };
    const error = await failure(app.generate({ model: old as never, prompt: 'x' }));
    expect(error.status).toBe('INVALID_ARGUMENT');
    expect(error.message).toMatch(/v2, v3 or v4/);
  });
});
