import { createOpenAI } from '@ai-sdk/openai';
import { generateText, jsonSchema, streamText, tool } from 'ai';
import OpenAI from 'openai';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { memoryStore } from '../../src/index.ts';
import type { OpenAiServerOptions } from '../../src/server/index.ts';
import { sqliteStore } from '../../src/store/sqlite/index.ts';
import { startServer } from '../server/kit.ts';
import { createGate, createOpenAiApp, type DeskModel } from '../server/openai-app.ts';

const stores = {
  memory: () => memoryStore(),
  SQLite: () => sqliteStore(':memory:'),
};

type ChatMessage = OpenAI.Chat.ChatCompletionMessageParam;

const weather = {
  type: 'function' as const,
  function: {
    name: 'weather',
    description: 'The weather of a city',
    parameters: {
      type: 'object',
      properties: { city: { type: 'string' } },
      required: ['city'],
      additionalProperties: false,
    },
    strict: true,
  },
};

describe.each(Object.entries(stores))('on %s', (_, openStore) => {
  let server: Awaited<ReturnType<typeof startServer>>;
  let client: OpenAI;
  let model: DeskModel;

  const start = async (openai: OpenAiServerOptions | true = true): Promise<void> => {
    const made = createOpenAiApp({ store: openStore(), gate: createGate() });
    model = made.model;
    server = await startServer({
      app: made.app,
      openai,
      auth: (request) => {
        const [, user] = /^Bearer (\w+)$/.exec(request.headers.get('authorization') ?? '') ?? [];
        return user === undefined ? undefined : { principal: user };
      },
    });
    client = clientOf('ann');
  };
  const clientOf = (user: string): OpenAI =>
    new OpenAI({ baseURL: `${server.url}/openai/v1`, apiKey: user, maxRetries: 0 });

  beforeEach(() => start());
  afterEach(() => server.close());

  describe('the OpenAI SDK', () => {
    test('creates a chat completion', async () => {
      const completion = await client.chat.completions.create({
        model: 'desk',
        messages: [{ role: 'user', content: 'say hello there' }],
      });
      expect(completion.choices[0]?.message.content).toBe('hello there');
      expect(completion.choices[0]?.finish_reason).toBe('stop');
      expect(completion.usage).toMatchObject({ prompt_tokens: 14, completion_tokens: 6 });
    });

    test('streams one, with its usage, and builds the same completion from the chunks', async () => {
      const stream = client.chat.completions.stream({
        model: 'desk',
        messages: [{ role: 'user', content: 'say one two three' }],
        stream_options: { include_usage: true },
      });
      const deltas: string[] = [];
      stream.on('content', (delta) => deltas.push(delta));
      const completion = await stream.finalChatCompletion();
      expect(deltas.filter((delta) => delta !== '')).toEqual(['one ', 'two ', 'three']);
      expect(completion.choices[0]).toMatchObject({
        finish_reason: 'stop',
        message: { role: 'assistant', content: 'one two three' },
      });
      expect(await stream.totalUsage()).toMatchObject({ prompt_tokens: 15, total_tokens: 22 });
    });

    test('continues a session with the whole conversation, and branches from it', async () => {
      const messages: ChatMessage[] = [];
      const send = async (text: string): Promise<string | null | undefined> => {
        messages.push({ role: 'user', content: text });
        const completion = await client.chat.completions.create({
          model: 'desk',
          messages,
          metadata: { session_id: 'trip' },
        });
        const message = completion.choices[0]?.message;
        if (message) messages.push(message);
        return message?.content;
      };
      await send('say one');
      expect(await send('two')).toBe('You said 2 things.');
      messages.splice(2);
      expect(await send('another two')).toBe('You said 2 things.');
      expect(await send('three')).toBe('You said 3 things.');
    });

    test('runs functions of the caller with its tool runner, in a stream as well', async () => {
      for (const stream of [false, true] as const) {
        const runner = client.chat.completions.runTools({
          model: 'desk',
          stream,
          messages: [{ role: 'user', content: 'call weather {"city":"Oslo"}' }],
          metadata: { session_id: `tools-${stream}` },
          tools: [
            {
              ...weather,
              function: {
                ...weather.function,
                parse: JSON.parse,
                function: ({ city }: { city: string }) => `Sunny in ${city}.`,
              },
            },
          ],
          // biome-ignore lint/suspicious/noExplicitAny: the two forms have types of their own
        } as any);
        expect(await runner.finalContent()).toBe('Sunny in Oslo.');
      }
    });

    test('approves a tool of the agent', async () => {
      const session = { model: 'desk', metadata: { session_id: 'money' } };
      const asked = await client.chat.completions.create({
        ...session,
        messages: [{ role: 'user', content: 'call transfer {"sum":7}' }],
      });
      const [call] = asked.choices[0]?.message.tool_calls ?? [];
      expect(call).toMatchObject({ function: { name: 'transfer', arguments: '{"sum":7}' } });
      const done = await client.chat.completions.create({
        ...session,
        messages: [{ role: 'tool', tool_call_id: call?.id ?? '', content: '{"approved":true}' }],
      });
      expect(done.choices[0]?.message.content).toBe('{"moved":7}');
    });

    test('parses structured output, in a stream as well', async () => {
      const schema = {
        type: 'object',
        properties: { city: { type: 'string' } },
        required: ['city'],
        additionalProperties: false,
      };
      const response_format = {
        type: 'json_schema' as const,
        json_schema: { name: 'place', schema, strict: true },
      };
      const messages: ChatMessage[] = [{ role: 'user', content: 'say {"city":"Oslo"}' }];
      const parsed = await client.chat.completions.parse({
        model: 'desk',
        messages,
        response_format,
      });
      expect(parsed.choices[0]?.message.parsed).toEqual({ city: 'Oslo' });
      const stream = client.chat.completions.stream({ model: 'desk', messages, response_format });
      const final = await stream.finalChatCompletion();
      expect(final.choices[0]?.message.parsed).toEqual({ city: 'Oslo' });
      expect(model.requests.at(-1)?.output?.schema).toMatchObject({ required: ['city'] });
    });

    test('sends images', async () => {
      const url = 'data:image/png;base64,aGk=';
      await client.chat.completions.create({
        model: 'desk',
        messages: [{ role: 'user', content: [{ type: 'image_url', image_url: { url } }] }],
      });
      expect(model.requests.at(-1)?.messages.at(-1)?.content).toMatchObject([
        { media: { url, contentType: 'image/png' } },
      ]);
    });

    test('throws its own classes of errors', async () => {
      const messages: ChatMessage[] = [{ role: 'user', content: 'fail' }];
      const create = (body: object, by = client): Promise<unknown> =>
        by.chat.completions.create({ model: 'desk', messages, ...body });
      await expect(create({ model: 'nobody' })).rejects.toThrow(OpenAI.NotFoundError);
      await expect(create({ n: 3 })).rejects.toThrow(OpenAI.BadRequestError);
      await expect(create({}, clientOf('not-a-user'))).rejects.toThrow(OpenAI.AuthenticationError);
      await expect(create({})).rejects.toThrow(OpenAI.InternalServerError);
      const stream = await client.chat.completions.create({
        model: 'desk',
        messages,
        stream: true,
      });
      await expect(all(stream)).rejects.toThrow(OpenAI.APIError);
      // A turn that has failed is not repeated.
      const patient = client.withOptions({ maxRetries: 2 });
      const before = model.requests.length;
      await expect(create({}, patient)).rejects.toThrow(OpenAI.InternalServerError);
      expect(model.requests.length).toBe(before + 1);
    });
  });

  describe('the AI SDK', () => {
    beforeEach(async () => {
      await server.close();
      await start({ allow: ['history', 'instructions', 'sampling'] });
    });

    test('streams, calls functions, and sends the whole conversation', async () => {
      const provider = createOpenAI({ baseURL: `${server.url}/openai/v1`, apiKey: 'ann' });
      const chat = provider.chat('desk');
      const { textStream } = streamText({ model: chat, prompt: 'say one two three' });
      expect((await all(textStream)).join('')).toBe('one two three');
      const { text, steps } = await generateText({
        model: chat,
        prompt: 'call weather {"city":"Oslo"}',
        stopWhen: ({ steps: all }) => all.length === 3,
        tools: {
          weather: tool({
            description: 'The weather of a city',
            inputSchema: jsonSchema<{ city: string }>(weather.function.parameters as object),
            execute: async ({ city }) => `Sunny in ${city}.`,
          }),
        },
      });
      expect(text).toBe('Sunny in Oslo.');
      expect(steps).toHaveLength(2);
    });
  });
});

async function all<T>(items: AsyncIterable<T>): Promise<T[]> {
  const result: T[] = [];
  for await (const item of items) result.push(item);
  return result;
}
