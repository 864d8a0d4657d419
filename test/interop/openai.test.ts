import { createOpenAI } from '@ai-sdk/openai';
import { generateText, jsonSchema, Output, streamText, tool } from 'ai';
import OpenAI from 'openai';
import { toResponseInputItems } from 'openai/lib/responses/ResponseInputItems';
import type { ResponseStreamEvent } from 'openai/resources/responses/responses';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { memoryStore } from '../../src/index.ts';
import type { OpenAiServerOptions } from '../../src/server/index.ts';
import { sqliteStore } from '../../src/store/sqlite/index.ts';
import { startServer } from '../server/kit.ts';
import { createGate, createOpenAiApp, type DeskModel, type Gate } from '../server/openai-app.ts';

const stores = {
  memory: () => memoryStore(),
  SQLite: () => sqliteStore(':memory:'),
};

/** The functions that a caller brings. */
const weather = {
  type: 'function' as const,
  name: 'weather',
  description: 'The weather of a city',
  parameters: {
    type: 'object',
    properties: { city: { type: 'string' } },
    required: ['city'],
    additionalProperties: false,
  },
  strict: true,
};

describe.each(Object.entries(stores))('on %s', (_, openStore) => {
  let server: Awaited<ReturnType<typeof startServer>>;
  let client: OpenAI;
  let gate: Gate;
  let model: DeskModel;

  const start = async (openai: OpenAiServerOptions | true = true): Promise<void> => {
    gate = createGate();
    const made = createOpenAiApp({ store: openStore(), gate });
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
    test('lists the agents as models', async () => {
      const models = await all(await client.models.list());
      expect(models.map(({ id }) => id)).toEqual(['desk', 'geo', 'gated', 'held', 'custom']);
      expect(await client.models.retrieve('desk')).toMatchObject({ id: 'desk', object: 'model' });
      await expect(client.models.retrieve('nobody')).rejects.toThrow(OpenAI.NotFoundError);
    });

    test('creates a response and retrieves it', async () => {
      const response = await client.responses.create({
        model: 'desk',
        input: 'say hello there',
        metadata: { order: '7' },
      });
      expect(response).toMatchObject({
        object: 'response',
        status: 'completed',
        model: 'desk',
        output_text: 'hello there',
        metadata: { order: '7' },
        error: null,
        usage: {
          input_tokens: 14,
          output_tokens: 6,
          total_tokens: 20,
          input_tokens_details: { cached_tokens: 0 },
          output_tokens_details: { reasoning_tokens: 0 },
        },
      });
      expect(await client.responses.retrieve(response.id)).toEqual(response);
      const items = await all(await client.responses.inputItems.list(response.id));
      expect(items).toMatchObject([
        { role: 'user', content: [{ type: 'input_text', text: 'say hello there' }] },
      ]);
    });

    test('streams events in order, and builds the same response from them', async () => {
      const stream = client.responses.stream({ model: 'desk', input: 'think of rain' });
      const events = await all(stream);
      expect(events.map(({ type }) => type)).toEqual([
        'response.created',
        'response.in_progress',
        'response.output_item.added',
        'response.reasoning_summary_part.added',
        'response.reasoning_summary_text.delta',
        'response.reasoning_summary_text.done',
        'response.reasoning_summary_part.done',
        'response.output_item.done',
        'response.output_item.added',
        'response.content_part.added',
        'response.output_text.delta',
        'response.output_text.done',
        'response.content_part.done',
        'response.output_item.done',
        'response.completed',
      ]);
      const numbers = events.map(({ sequence_number }) => sequence_number);
      expect(numbers).toEqual(numbers.map((__, at) => at));
      const final = await stream.finalResponse();
      expect(final.output_text).toBe('of rain');
      const stored = await client.responses.retrieve(final.id);
      expect(stored.output).toMatchObject(JSON.parse(JSON.stringify(final.output, dropParsed)));
    });

    test('branches twice from one response, one after the other and at once', async () => {
      const root = await client.responses.create({ model: 'desk', input: 'one' });
      await client.responses.create({ model: 'desk', input: 'x', previous_response_id: root.id });
      const say = (text: string): Promise<OpenAI.Responses.Response> =>
        client.responses.create({
          model: 'desk',
          input: `say ${text}`,
          previous_response_id: root.id,
        });
      const left = await say('left');
      const right = await say('right');
      expect([left.output_text, right.output_text]).toEqual(['left', 'right']);
      expect(right.previous_response_id).toBe(root.id);
      const after = await client.responses.create({
        model: 'desk',
        input: 'again',
        previous_response_id: left.id,
      });
      expect(after.output_text).toBe('You said 3 things.');
      const many = await Promise.all(['a', 'b', 'c', 'd'].map(say));
      expect(many.map(({ output_text }) => output_text)).toEqual(['a', 'b', 'c', 'd']);
      for (const each of many) {
        const stored = await client.responses.retrieve(each.id);
        expect(stored.previous_response_id).toBe(root.id);
      }
    });

    test('leaves a background response in mid-stream and resumes without gap or repeat', async () => {
      const first: ResponseStreamEvent[] = [];
      const stream = await client.responses.create({
        model: 'gated',
        input: 'go',
        background: true,
        stream: true,
      });
      for await (const event of stream) {
        first.push(event);
        if (event.type === 'response.output_text.delta' && event.delta === 'b') break;
      }
      const created = first[0];
      if (created?.type !== 'response.created') throw new Error('No response was created.');
      const { id } = created.response;
      expect((await client.responses.retrieve(id)).status).toBe('in_progress');
      gate.open();
      const last = first.at(-1)?.sequence_number ?? 0;
      const rest = await all(
        await client.responses.retrieve(id, { stream: true, starting_after: last }),
      );
      const whole = [...first, ...rest];
      expect(whole.map(({ sequence_number }) => sequence_number)).toEqual(
        whole.map((__, at) => at),
      );
      const text = whole.map((event) =>
        event.type === 'response.output_text.delta' ? event.delta : '',
      );
      expect(text.join('')).toBe('abcdef');
      expect(rest.at(-1)).toMatchObject({
        type: 'response.completed',
        response: { id, output: [{ content: [{ text: 'abcdef' }] }] },
      });
      // What was streamed can be read again.
      const again = await all(await client.responses.retrieve(id, { stream: true }));
      expect(again).toEqual(whole);
    });

    test('polls a background response', async () => {
      const { id, status } = await client.responses.create({
        model: 'gated',
        input: 'go',
        background: true,
      });
      expect(status).toBe('queued');
      gate.open();
      await all(await client.responses.retrieve(id, { stream: true }));
      const done = await client.responses.retrieve(id);
      expect(done).toMatchObject({ status: 'completed', output_text: 'abcdef', background: true });
    });

    test('compacts a conversation, and counts its tokens', async () => {
      const first = await client.responses.create({ model: 'desk', input: 'one' });
      const { output } = await client.responses.compact({
        model: 'desk',
        previous_response_id: first.id,
      });
      const next = await client.responses.create({
        model: 'desk',
        input: [
          ...(output as OpenAI.Responses.ResponseInputItem[]),
          { role: 'user', content: 'two' },
        ],
      });
      expect(next.output_text).toBe('You said 2 things.');
      const counted = await client.responses.inputTokens.count({ model: 'desk', input: 'one' });
      expect(counted.input_tokens).toBeGreaterThan(0);
    });

    test('cancels a response, attached or in the background', async () => {
      for (const background of [true, false]) {
        const stream = await client.responses.create({
          model: 'gated',
          input: 'go',
          stream: true,
          background,
        });
        let id = '';
        let last: ResponseStreamEvent | undefined;
        for await (const event of stream) {
          if (event.type === 'response.created') id = event.response.id;
          if (event.type === 'response.output_text.delta' && event.delta === 'b') {
            const cancelled = await client.responses.cancel(id);
            expect(cancelled).toMatchObject({ id, status: 'cancelled' });
          }
          last = event;
        }
        expect(last).toMatchObject({
          type: 'response.incomplete',
          response: { status: 'cancelled' },
        });
        expect((await client.responses.retrieve(id)).status).toBe('cancelled');
        expect((await client.responses.cancel(id)).status).toBe('cancelled');
      }
    });

    test('executes a function that the agent calls, and answers once', async () => {
      const asked = await client.responses.create({
        model: 'desk',
        input: 'call weather {"city":"Oslo"}',
        tools: [weather],
      });
      expect(asked.output_text).toBe('One moment.');
      const call = asked.output.find((item) => item.type === 'function_call');
      expect(call).toMatchObject({ name: 'weather', arguments: '{"city":"Oslo"}' });
      const answer = {
        model: 'desk',
        previous_response_id: asked.id,
        tools: [weather],
        input: [
          {
            type: 'function_call_output' as const,
            call_id: call?.call_id ?? '',
            output: 'Rain in Oslo',
          },
        ],
      };
      expect((await client.responses.create(answer)).output_text).toBe('Rain in Oslo');
      await expect(client.responses.create(answer)).rejects.toThrow(OpenAI.BadRequestError);
      // Without previous_response_id, as clients do that send the whole conversation.
      const { previous_response_id: __, ...whole } = answer;
      const input = [
        { role: 'user' as const, content: 'x' },
        ...toResponseInputItems(asked.output),
        ...answer.input,
      ];
      await expect(client.responses.create({ ...whole, input })).rejects.toThrow(/already/);
    });

    test('approves a tool that runs on the server', async () => {
      const ask = (): Promise<OpenAI.Responses.Response> =>
        client.responses.create({ model: 'desk', input: 'call transfer {"sum":7}' });
      const decide = (
        asked: OpenAI.Responses.Response,
        output: unknown,
      ): Promise<OpenAI.Responses.Response> => {
        const call = asked.output.find((item) => item.type === 'function_call');
        return client.responses.create({
          model: 'desk',
          input: [
            {
              type: 'function_call_output',
              call_id: call?.call_id ?? '',
              output: typeof output === 'string' ? output : JSON.stringify(output),
            },
          ],
        });
      };
      const asked = await ask();
      await expect(decide(asked, 'sure')).rejects.toThrow(/approved/);
      expect((await decide(asked, { approved: true })).output_text).toBe('{"moved":7}');
      await expect(decide(asked, { approved: true })).rejects.toThrow(OpenAI.BadRequestError);
      const declined = await decide(await ask(), { approved: false, reason: 'Too much.' });
      expect(declined.output_text).toContain('Too much.');
    });

    test('gets structured output', async () => {
      const response = await client.responses.parse({
        model: 'desk',
        input: 'say {"city":"Oslo","population":700000}',
        text: {
          format: {
            type: 'json_schema',
            name: 'city',
            schema: {
              type: 'object',
              properties: { city: { type: 'string' }, population: { type: 'number' } },
              required: ['city', 'population'],
              additionalProperties: false,
            },
          },
        },
      });
      expect(JSON.parse(response.output_text)).toEqual({ city: 'Oslo', population: 700000 });
      expect(model.requests.at(-1)?.output).toMatchObject({
        schema: { required: ['city', 'population'] },
      });
      const unfit = await client.responses.create({
        model: 'desk',
        input: 'say {"city":7}',
        text: {
          format: {
            type: 'json_schema',
            name: 'city',
            schema: { type: 'object', properties: { city: { type: 'string' } } },
          },
        },
      });
      expect(unfit).toMatchObject({ status: 'failed', error: { code: 'server_error' } });
    });

    test('throws errors of its own classes', async () => {
      const create = (
        fields: Partial<OpenAI.Responses.ResponseCreateParamsNonStreaming>,
        by: OpenAI = client,
      ): Promise<unknown> => by.responses.create({ model: 'desk', input: 'hello', ...fields });
      const nobody = new OpenAI({ baseURL: `${server.url}/openai/v1`, apiKey: '-', maxRetries: 0 });
      await expect(create({}, nobody)).rejects.toThrow(OpenAI.AuthenticationError);
      await expect(create({ model: 'nobody' })).rejects.toMatchObject({
        constructor: OpenAI.NotFoundError,
        status: 404,
        code: 'model_not_found',
        param: 'model',
        type: 'invalid_request_error',
      });
      await expect(create({ temperature: 1 })).rejects.toMatchObject({
        constructor: OpenAI.BadRequestError,
        code: 'unsupported_parameter',
        param: 'temperature',
      });
      const unknown = 'resp_0193b7a0-0000-7000-8000-000000000000';
      await expect(create({ previous_response_id: unknown })).rejects.toMatchObject({
        constructor: OpenAI.NotFoundError,
        code: 'previous_response_not_found',
      });
      await expect(client.responses.retrieve(unknown)).rejects.toThrow(OpenAI.NotFoundError);
      const mine = await client.responses.create({ model: 'desk', input: 'hello' });
      const bob = clientOf('bob');
      await expect(bob.responses.retrieve(mine.id)).rejects.toThrow(OpenAI.NotFoundError);
      await expect(create({ previous_response_id: mine.id }, bob)).rejects.toThrow(
        OpenAI.NotFoundError,
      );
      const { id } = await client.conversations.create();
      await client.responses.create({
        model: 'gated',
        input: 'x',
        conversation: id,
        background: true,
      });
      await expect(create({ model: 'gated', conversation: id })).rejects.toThrow(
        OpenAI.ConflictError,
      );
      gate.open();
    });

    test('a failed turn is a failed response, without the text of its cause', async () => {
      const failed = await client.responses.create({ model: 'desk', input: 'fail' });
      expect(failed).toMatchObject({ status: 'failed', error: { code: 'server_error' } });
      expect(JSON.stringify(failed)).not.toContain('secret of the model');
      const events = await all(
        await client.responses.create({ model: 'desk', input: 'fail', stream: true }),
      );
      expect(events.at(-1)).toMatchObject({ type: 'response.failed' });
      const long = await client.responses.create({ model: 'desk', input: 'long' });
      expect(long).toMatchObject({
        status: 'incomplete',
        incomplete_details: { reason: 'max_output_tokens' },
      });
    });

    test('keeps conversations', async () => {
      const { id } = await client.conversations.create({
        metadata: { topic: 'rain' },
        items: [{ role: 'user', content: 'Mind the weather.' }],
      });
      expect(await client.conversations.retrieve(id)).toMatchObject({
        metadata: { topic: 'rain' },
      });
      const response = await client.responses.create({
        model: 'desk',
        conversation: id,
        input: 'hello',
      });
      expect(response).toMatchObject({
        output_text: 'You said 2 things.',
        conversation: { id },
        previous_response_id: null,
      });
      await client.conversations.items.create(id, {
        items: [{ role: 'user', content: 'And the wind.' }],
      });
      const next = await client.responses.create({ model: 'desk', conversation: id, input: 'so?' });
      expect(next.output_text).toBe('You said 4 things.');
      const items = await all(
        await client.conversations.items.list(id, { order: 'asc', limit: 2 }),
      );
      const texts = items.map((item) =>
        item.type === 'message' && 'text' in (item.content[0] ?? {})
          ? `${item.role}: ${(item.content[0] as { text: string }).text}`
          : item.type,
      );
      expect(texts).toEqual([
        'user: Mind the weather.',
        'user: hello',
        'assistant: You said 2 things.',
        'user: And the wind.',
        'user: so?',
        'assistant: You said 4 things.',
      ]);
      const one = await client.conversations.items.retrieve(items[2]?.id ?? '', {
        conversation_id: id,
      });
      expect(one).toEqual(items[2]);
      await expect(
        client.conversations.items.delete(items[2]?.id ?? '', { conversation_id: id }),
      ).rejects.toThrow(OpenAI.BadRequestError);
      await client.conversations.update(id, { metadata: { topic: 'sun' } });
      expect(await client.conversations.retrieve(id)).toMatchObject({ metadata: { topic: 'sun' } });
      expect(await client.conversations.delete(id)).toMatchObject({ deleted: true });
      await expect(client.conversations.retrieve(id)).rejects.toThrow(OpenAI.NotFoundError);
      await expect(client.responses.retrieve(response.id)).rejects.toThrow(OpenAI.NotFoundError);
    });

    test('deletes a response that stands alone', async () => {
      const alone = await client.responses.create({ model: 'desk', input: 'hello' });
      const next = await client.responses.create({
        model: 'desk',
        input: 'more',
        previous_response_id: alone.id,
      });
      await expect(client.responses.delete(alone.id)).rejects.toThrow(/conversations/);
      const other = await client.responses.create({ model: 'desk', input: 'hello' });
      await client.responses.delete(other.id);
      await expect(client.responses.retrieve(other.id)).rejects.toThrow(OpenAI.NotFoundError);
      expect((await client.responses.retrieve(next.id)).output_text).toBe('You said 2 things.');
    });

    test('holds the state itself with store: false', async () => {
      for (const name of ['desk', 'held']) {
        const first = await client.responses.create({ model: name, input: 'one', store: false });
        const input = [
          { role: 'user' as const, content: 'one' },
          ...toResponseInputItems(first.output),
          { role: 'user' as const, content: 'two' },
        ];
        const second = await client.responses.create({ model: name, input, store: false });
        expect(second.output_text).toBe('You said 2 things.');
        await expect(client.responses.retrieve(second.id)).rejects.toThrow(OpenAI.NotFoundError);
        // It is signed, and for one owner.
        const forged = toResponseInputItems(first.output).map((item) =>
          item.type === 'reasoning' ? { ...item, encrypted_content: forge(item) } : item,
        );
        await expect(
          client.responses.create({
            model: name,
            input: [...forged, ...input.slice(-1)],
            store: false,
          }),
        ).rejects.toThrow(OpenAI.PermissionDeniedError);
        await expect(
          clientOf('bob').responses.create({ model: name, input, store: false }),
        ).rejects.toThrow(OpenAI.PermissionDeniedError);
      }
    });

    test('answers a function call once where it holds the state', async () => {
      const asked = await client.responses.create({
        model: 'desk',
        input: 'call transfer {"sum":7}',
        store: false,
      });
      const call = asked.output.find((item) => item.type === 'function_call');
      const output = JSON.stringify({ approved: true });
      const input = [
        ...toResponseInputItems(asked.output),
        { type: 'function_call_output' as const, call_id: call?.call_id ?? '', output },
      ];
      const done = await client.responses.create({ model: 'desk', input, store: false });
      expect(done.output_text).toBe('{"moved":7}');
      await expect(client.responses.create({ model: 'desk', input, store: false })).rejects.toThrow(
        OpenAI.BadRequestError,
      );
    });

    test('sets what the server allows', async () => {
      await server.close();
      await start({ allow: ['instructions', 'sampling', 'history'] });
      const response = await client.responses.create({
        model: 'desk',
        instructions: 'Be brief.',
        temperature: 0.5,
        max_output_tokens: 50,
        input: [
          { role: 'developer', content: 'Be kind.' },
          { role: 'user', content: 'one' },
          { role: 'assistant', content: 'You said 1 things.' },
          { role: 'user', content: 'two' },
        ],
      });
      expect(response).toMatchObject({
        output_text: 'You said 2 things.',
        instructions: 'Be brief.',
        temperature: 0.5,
        max_output_tokens: 50,
      });
      const asked = model.requests.at(-1);
      expect(asked?.config).toEqual({ temperature: 0.5, maxOutputTokens: 50 });
      expect(asked?.messages[0]).toMatchObject({
        role: 'system',
        content: [{ text: 'You are a desk.' }, { text: 'Be brief.\n\nBe kind.' }],
      });
    });
  });

  describe('the AI SDK', () => {
    const provider = () => createOpenAI({ baseURL: `${server.url}/openai/v1`, apiKey: 'ann' });

    test('generates text with the agent as the model, and continues the conversation', async () => {
      const first = await generateText({ model: provider()('desk'), prompt: 'one' });
      expect(first.text).toBe('You said 1 things.');
      const second = await generateText({
        model: provider()('desk'),
        messages: [
          { role: 'user', content: 'one' },
          ...first.response.messages,
          { role: 'user', content: 'two' },
        ],
      });
      expect(second.text).toBe('You said 2 things.');
      // It is the same session: the server has its own history.
      const { id } = second.response;
      expect((await client.responses.retrieve(id ?? '')).previous_response_id).toBe(
        first.response.id,
      );
    });

    test('streams text and reasoning', async () => {
      const { textStream, text, reasoningText, usage } = streamText({
        model: provider()('desk'),
        prompt: 'think of rain',
      });
      expect((await all(textStream)).join('')).toBe('of rain');
      expect(await text).toBe('of rain');
      expect(await reasoningText).toBe('Hm.');
      expect((await usage).totalTokens).toBeGreaterThan(0);
    });

    test('executes its tools in a loop, streamed or not', async () => {
      const cities: string[] = [];
      const tools = {
        weather: tool({
          description: 'The weather of a city',
          inputSchema: jsonSchema<{ city: string }>(weather.parameters as object),
          execute: async ({ city }) => {
            cities.push(city);
            return `Rain in ${city}`;
          },
        }),
      };
      const options = {
        model: provider()('desk'),
        tools,
        prompt: 'call weather {"city":"Oslo"}',
        stopWhen: ({ steps }: { steps: readonly unknown[] }) => steps.length === 3,
      };
      const { text, steps } = await generateText(options);
      expect(text).toBe('Rain in Oslo');
      expect(steps).toHaveLength(2);
      const streamed = streamText(options);
      expect((await all(streamed.textStream)).join('')).toBe('One moment.Rain in Oslo');
      expect(cities).toEqual(['Oslo', 'Oslo']);
    });

    test('holds the state itself with store: false', async () => {
      const providerOptions = { openai: { store: false } };
      const first = await generateText({
        model: provider()('desk'),
        prompt: 'one',
        providerOptions,
      });
      const second = streamText({
        model: provider()('desk'),
        providerOptions,
        messages: [
          { role: 'user', content: 'one' },
          ...first.response.messages,
          { role: 'user', content: 'two' },
        ],
      });
      expect(await second.text).toBe('You said 2 things.');
      const third = await generateText({
        model: provider()('desk'),
        providerOptions,
        messages: [...(await second.response).messages, { role: 'user', content: 'three' }],
      });
      expect(third.text).toBe('You said 3 things.');
    });

    test('continues by the id of a response, and in a conversation', async () => {
      const first = await generateText({ model: provider()('desk'), prompt: 'one' });
      const next = (openai: { previousResponseId: string } | { conversation: string }) =>
        generateText({
          model: provider()('desk'),
          prompt: 'two',
          providerOptions: { openai },
        });
      const { id } = first.response;
      expect((await next({ previousResponseId: id ?? '' })).text).toBe('You said 2 things.');
      const conversation = await client.conversations.create();
      await next({ conversation: conversation.id });
      expect((await next({ conversation: conversation.id })).text).toBe('You said 2 things.');
    });

    test('gets structured output', async () => {
      const schema = jsonSchema<{ city: string }>({
        type: 'object',
        properties: { city: { type: 'string' } },
        required: ['city'],
        additionalProperties: false,
      });
      const { output } = await generateText({
        model: provider()('desk'),
        prompt: 'say {"city":"Oslo"}',
        output: Output.object({ schema }),
      });
      expect(output).toEqual({ city: 'Oslo' });
      const streamed = streamText({
        model: provider()('desk'),
        prompt: 'say {"city":"Oslo"}',
        output: Output.object({ schema }),
      });
      expect(await streamed.output).toEqual({ city: 'Oslo' });
    });

    test('approves a tool of the server with a tool of its own', async () => {
      const tools = {
        transfer: tool({
          inputSchema: jsonSchema<{ sum: number }>({ type: 'object', properties: {} }),
          execute: async ({ sum }) => ({ approved: sum < 10 }),
        }),
      };
      const { text } = await generateText({
        model: provider()('desk'),
        tools,
        prompt: 'call transfer {"sum":7}',
        stopWhen: ({ steps }) => steps.length === 3,
      });
      expect(text).toBe('{"moved":7}');
    });

    test('throws what the server refuses', async () => {
      await expect(
        generateText({ model: provider()('desk'), prompt: 'x', temperature: 1, maxRetries: 0 }),
      ).rejects.toThrow(/may not set temperature/);
      await expect(
        generateText({ model: provider()('desk'), prompt: 'fail', maxRetries: 0 }),
      ).rejects.toThrow();
    });
  });
});

async function all<T>(items: AsyncIterable<T>): Promise<readonly T[]> {
  const found: T[] = [];
  for await (const item of items) found.push(item);
  return found;
}

// The SDK adds what it has parsed.
function dropParsed(key: string, value: unknown): unknown {
  return key === 'parsed' || key === 'parsed_arguments' ? undefined : value;
}

/** A state whose text says something else. */
function forge({ encrypted_content: held }: { encrypted_content?: string | null }): string {
  const state = Buffer.from(held ?? '', 'base64url').toString();
  return Buffer.from(state.replace('things', 'lies')).toString('base64url');
}
