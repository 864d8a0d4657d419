import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { memoryStore, waymark } from '../../src/index.ts';
import { handler } from '../../src/server/index.ts';
import { sqliteStore } from '../../src/store/sqlite/index.ts';
import { scriptedModel } from '../../src/testing/scripted-model.ts';
import { eventually } from '../support/eventually.ts';
import { allEvents, get, post, startServer, userInput } from './kit.ts';
import { createGate, createOpenAiApp, type DeskModel, type Gate } from './openai-app.ts';

// biome-ignore lint/suspicious/noExplicitAny: tests look into whatever came
type Any = any;

let server: Awaited<ReturnType<typeof startServer>>;
let url: string;
let gate: Gate;
let model: DeskModel;

beforeAll(async () => {
  gate = createGate();
  const made = createOpenAiApp({ gate });
  ({ model } = made);
  server = await startServer({ app: made.app, openai: true });
  url = `${server.url}/openai/v1`;
});
afterAll(() => server.close());

const create = async (body: object, headers: Record<string, string> = {}): Promise<Any> => {
  const response = await post(`${url}/responses`, { model: 'desk', ...body }, headers);
  return { status: response.status, body: await response.json() };
};
const made = async (body: object): Promise<Any> => {
  const { status, body: response } = await create(body);
  expect(status, JSON.stringify(response)).toBe(200);
  return response;
};
const textOf = ({ output }: Any): string =>
  output
    .filter(({ type }: Any) => type === 'message')
    .flatMap(({ content }: Any) => content)
    .map(({ text }: Any) => text)
    .join('');
const callOf = ({ output }: Any): Any => output.find(({ type }: Any) => type === 'function_call');
const refused = (status: number, code: string): object => ({ status, body: { error: { code } } });
const user = (content: string): object => ({ role: 'user', content });

describe('responses', () => {
  test('are snapshots of the session that the native API shows (S350)', async () => {
    const response = await made({ input: 'say hello there' });
    expect(response.id).toMatch(/^resp_[0-9a-f-]{36}$/);
    const snapshotId = response.id.slice('resp_'.length);
    const snapshot = await get(`${server.url}/agents/desk/snapshots/${snapshotId}`);
    expect(snapshot).toMatchObject({ snapshotId, status: 'succeeded' });
    // A session of the native API is a conversation, and its snapshots are responses.
    const { sessionId } = snapshot;
    const native = await (
      await post(`${server.url}/agents/desk/turns`, {
        init: { sessionId },
        input: userInput('say more'),
      })
    ).json();
    const read = await get(`${url}/responses/${native.snapshotId}`);
    expect(read).toMatchObject({
      id: `resp_${native.snapshotId}`,
      previous_response_id: response.id,
    });
    expect(textOf(read)).toBe('more');
    const items = await get(`${url}/conversations/${sessionId}/items?order=asc`);
    expect(items.data.map(({ role }: Any) => role)).toEqual([
      'user',
      'assistant',
      'user',
      'assistant',
    ]);
    expect((await made({ conversation: sessionId, input: 'third' })).conversation).toEqual({
      id: sessionId,
    });
  });

  test('show neither the calls nor the results of tools that ran on the server (S350)', async () => {
    const response = await made({ input: 'call lookup {}' });
    expect(response.output.map(({ type }: Any) => type)).toEqual(['message', 'message']);
    const stored = await get(`${url}/responses/${response.id}`);
    expect(stored.output).toEqual(response.output);
  });

  test('of an agent that streams nothing have its message (S350)', async () => {
    expect(textOf(await made({ model: 'custom', input: 'x' }))).toBe('By hand.');
  });

  test('joins the run of the same Idempotency-Key (S350)', async () => {
    const headers = { 'idempotency-key': 'order-7' };
    const [first, second] = await Promise.all([
      create({ input: 'say once' }, headers),
      create({ input: 'say once' }, headers),
    ]);
    expect(first.body.id).toBe(second.body.id);
    expect(textOf(second.body)).toBe('once');
    expect(await create({ input: 'say other' }, headers)).toMatchObject(
      refused(400, 'invalid_argument'),
    );
    const background = { input: 'say twice', background: true };
    const again = { 'idempotency-key': 'order-8' };
    const started = await create(background, again);
    expect((await create(background, again)).body.id).toBe(started.body.id);
  });
});

describe('input', () => {
  test('continues from the last item that this server gave out (S358)', async () => {
    const first = await made({ input: 'one' });
    const reference = { type: 'item_reference', id: first.output[0].id };
    const second = await made({ input: [user('one'), reference, user('two')] });
    expect(textOf(second)).toBe('You said 2 things.');
    expect(second.previous_response_id).toBe(first.id);
    const whole = [user('forged'), ...first.output, user('two'), ...second.output, user('three')];
    const third = await made({ input: whole });
    expect(textOf(third)).toBe('You said 3 things.');
    expect(third.previous_response_id).toBe(second.id);
    const unknown = { type: 'item_reference', id: 'msg_0193b7a0-0000-7000-8000-000000000000_0' };
    expect(await create({ input: [unknown, user('x')] })).toMatchObject(
      refused(404, 'previous_response_not_found'),
    );
    const foreign = { type: 'item_reference', id: 'msg_68af' };
    expect(await create({ input: [foreign, user('x')] })).toMatchObject(
      refused(400, 'item_not_found'),
    );
  });

  test('takes several messages, images and files as one turn (S358)', async () => {
    const image = 'data:image/png;base64,aGk=';
    const response = await made({
      input: [
        user('one'),
        {
          role: 'user',
          content: [
            { type: 'input_text', text: 'two' },
            { type: 'input_image', image_url: image },
            {
              type: 'input_file',
              filename: 'a.pdf',
              file_data: 'data:application/pdf;base64,aGk=',
            },
          ],
        },
      ],
    });
    expect(textOf(response)).toBe('You said 1 things.');
    expect(model.requests.at(-1)?.messages.at(-1)?.content).toMatchObject([
      { text: 'one' },
      { text: 'two' },
      { media: { url: image, contentType: 'image/png' } },
      { media: { contentType: 'application/pdf' } },
    ]);
    const { data } = await get(`${url}/responses/${response.id}/input_items`);
    expect(data[0].content.map(({ type }: Any) => type)).toEqual([
      'input_text',
      'input_text',
      'input_image',
      'input_file',
    ]);
  });

  test.each([
    [{}, 'missing_parameter'],
    [{ input: '' }, 'missing_parameter'],
    [{ input: [] }, 'missing_parameter'],
    [{ input: 7 }, 'invalid_argument'],
    [{ input: [{ type: 'computer_call' }] }, 'unsupported_value'],
    [{ input: [{ role: 'king', content: 'x' }] }, 'invalid_value'],
    [{ input: [{ role: 'user', content: [{ type: 'input_audio' }] }] }, 'unsupported_value'],
    [
      { input: [{ role: 'user', content: [{ type: 'input_image', file_id: 'f' }] }] },
      'unsupported_value',
    ],
    [{ input: [{ type: 'function_call_output', output: 'x' }] }, 'invalid_value'],
    [
      { input: [{ type: 'function_call_output', call_id: 'c', output: 'x' }] },
      'no_tool_call_found',
    ],
    [{ input: [{ type: 'reasoning', encrypted_content: 'x' }, user('x')] }, 'invalid_value'],
    [
      { input: [{ type: 'reasoning', encrypted_content: 'x' }, user('x')], store: false },
      'invalid_encrypted_content',
    ],
    [{ input: 'x', model: null }, 'missing_parameter'],
    [{ input: 'x', tools: [{ type: 'web_search' }] }, 'unsupported_value'],
    [
      { input: 'x', tools: [{ type: 'function', name: 'no way', parameters: {} }] },
      'invalid_argument',
    ],
    [{ input: 'x', text: { format: { type: 'grammar' } } }, 'unsupported_value'],
    [{ input: 'x', text: { format: { type: 'json_schema', name: 'x' } } }, 'missing_parameter'],
    [{ input: 'x', metadata: { a: 7 } }, 'invalid_argument'],
    [
      {
        input: 'x',
        metadata: Object.fromEntries(Array.from({ length: 17 }, (_, at) => [at, 'x'])),
      },
      'invalid_argument',
    ],
    [{ input: 'x', store: false, background: true }, 'unsupported_parameter'],
    [{ input: 'x', store: false, previous_response_id: 'resp_1' }, 'unsupported_parameter'],
    [{ input: 'x', conversation: 'c', previous_response_id: 'r' }, 'invalid_value'],
    [
      { input: 'x', model: 'custom', text: { format: { type: 'json_object' } } },
      'unsupported_parameter',
    ],
    [
      {
        input: 'x',
        model: 'geo',
        text: { format: { type: 'json_schema', name: 'x', schema: { type: 'object' } } },
      },
      'unsupported_value',
    ],
  ])('%j is refused with %s', async (body, code) => {
    expect(await create(body)).toMatchObject(refused(400, code));
  });

  test('that is too large, too deep or not JSON is refused', async () => {
    const large = await post(`${url}/responses`, { model: 'desk', input: 'x'.repeat(9_000_000) });
    expect(large.status).toBe(413);
    expect(await large.json()).toMatchObject({
      error: { type: 'invalid_request_error', code: 'request_too_large' },
    });
    for (const body of ['{', '[]', 'null', '7', `${'['.repeat(200)}${']'.repeat(200)}`]) {
      const response = await post(`${url}/responses`, body);
      expect(response.status, body).toBe(400);
      expect(await response.json()).toMatchObject({ error: { type: 'invalid_request_error' } });
    }
    const properties = Object.fromEntries(
      Array.from({ length: 5000 }, (_, at) => [`p${at}`, { type: 'string' }]),
    );
    const format = { type: 'json_schema', name: 'x', schema: { type: 'object', properties } };
    expect(await create({ input: 'x', text: { format } })).toMatchObject(
      refused(400, 'schema_too_large'),
    );
    const deep = `{"messages":${'['.repeat(300)}${']'.repeat(300)}}`;
    const state = Buffer.from(deep).toString('base64url');
    const input = [{ type: 'reasoning', encrypted_content: state }, user('x')];
    expect(await create({ input, store: false })).toMatchObject(
      refused(400, 'invalid_encrypted_content'),
    );
  });

  test('takes no message together with the output of a call, and no call twice', async () => {
    const asked = await made({ input: 'call transfer {"sum":7}' });
    const output = {
      type: 'function_call_output',
      call_id: callOf(asked).call_id,
      output: '{"approved":true}',
    };
    expect(await create({ input: [output, user('and?')] })).toMatchObject(
      refused(400, 'unsupported_value'),
    );
    expect(await create({ input: [output, output] })).toMatchObject(
      refused(400, 'invalid_argument'),
    );
    const other = { ...output, call_id: `${output.call_id}-other` };
    expect(await create({ input: [other] })).toMatchObject(refused(400, 'no_tool_call_found'));
    expect(textOf(await made({ input: [output] }))).toBe('{"moved":7}');
  });
});

describe('a conversation as input', () => {
  test('is compacted to the messages of the user and one item that stands for it (S746)', async () => {
    const first = await made({ input: 'one' });
    const second = await made({ input: 'two', previous_response_id: first.id });
    const body = { model: 'desk', previous_response_id: second.id };
    const response = await post(`${url}/responses/compact`, body);
    const compacted = await response.json();
    expect(compacted).toMatchObject({
      object: 'response.compaction',
      output: [
        { type: 'message', role: 'user', content: [{ text: 'one' }] },
        { type: 'message', role: 'user', content: [{ text: 'two' }] },
        { type: 'compaction', encrypted_content: second.id },
      ],
    });
    const third = await made({ input: [...compacted.output, user('three')] });
    expect(third.previous_response_id).toBe(second.id);
    expect(textOf(third)).toBe('You said 3 things.');
    const items = [...third.output, user('four')];
    const again = await (
      await post(`${url}/responses/compact`, { ...body, previous_response_id: null, input: items })
    ).json();
    expect(again.output.slice(-2)).toMatchObject([{ type: 'compaction' }, user('four')]);
    expect(textOf(await made({ input: again.output }))).toBe('You said 4 things.');
  });

  test('that the client holds is compacted as well, and stays signed (S746)', async () => {
    const held = { store: false };
    const first = await made({ input: 'one', ...held });
    const compact = async (input: unknown): Promise<Any> =>
      (await post(`${url}/responses/compact`, { model: 'desk', input })).json();
    const { output } = await compact([user('one'), ...first.output]);
    expect(output).toMatchObject([{ role: 'user' }, { type: 'compaction' }]);
    const second = await made({ input: [...output, user('two')], ...held });
    expect(textOf(second)).toBe('You said 2 things.');
    const state = JSON.parse(Buffer.from(output[1].encrypted_content, 'base64url').toString());
    const forged = Buffer.from(JSON.stringify({ ...state, messages: [] })).toString('base64url');
    const input = [{ ...output[1], encrypted_content: forged }, user('x')];
    expect(await create({ input, ...held })).toMatchObject(refused(403, 'permission_denied'));
    expect(await compact('nothing yet')).toMatchObject({ error: { code: 'missing_parameter' } });
  });

  test('is counted by an estimate that grows with it (S746)', async () => {
    const count = async (body: object): Promise<number> => {
      const response = await post(`${url}/responses/input_tokens`, { model: 'desk', ...body });
      const counted = await response.json();
      expect(counted, JSON.stringify(counted)).toMatchObject({ object: 'response.input_tokens' });
      return counted.input_tokens;
    };
    const short = await count({ input: 'one' });
    expect(await count({ input: 'one'.repeat(400) })).toBeGreaterThan(short + 290);
    const first = await made({ input: 'say '.repeat(100) });
    expect(await count({ input: 'one', previous_response_id: first.id })).toBeGreaterThan(
      short + 100,
    );
    const tools = [{ type: 'function', name: 'f', parameters: { type: 'object' } }];
    expect(await count({ input: 'one', tools })).toBeGreaterThan(short);
    const unknown = `resp_${crypto.randomUUID()}`;
    const response = await post(`${url}/responses/input_tokens`, {
      model: 'desk',
      previous_response_id: unknown,
    });
    expect(response.status).toBe(404);
    const items = [user('say '.repeat(100))];
    const { id } = await (await post(`${url}/conversations`, { items })).json();
    expect(await count({ input: 'one', conversation: id })).toBeGreaterThan(short + 90);
  });

  test.each(['compact', 'input_tokens'])(
    'is read by /responses/%s only as one of its model',
    async (path) => {
      const { id } = await (await post(`${url}/conversations`, {})).json();
      const first = await made({ conversation: id, input: 'one' });
      const ask = async (body: object): Promise<Any> => {
        const response = await post(`${url}/responses/${path}`, { conversation: id, ...body });
        return { status: response.status, body: await response.json() };
      };
      expect(await ask({ model: 'desk' })).toMatchObject({ status: 200 });
      // Who may read "gated" may not be allowed to read "desk".
      expect(await ask({ model: 'gated' })).toMatchObject(
        refused(400, 'conversation_of_another_model'),
      );
      expect(await ask({ model: 'desk', previous_response_id: first.id })).toMatchObject(
        refused(400, 'invalid_value'),
      );
    },
  );
});

describe('interrupts', () => {
  test('are function calls that are answered once, also at once (S353)', async () => {
    const asked = await made({ input: 'call transfer {"sum":7}' });
    expect(callOf(asked)).toMatchObject({ name: 'transfer', arguments: '{"sum":7}' });
    expect((await get(`${url}/responses/${asked.id}`)).output).toEqual(asked.output);
    const answer = {
      previous_response_id: asked.id,
      input: [
        {
          type: 'function_call_output',
          call_id: callOf(asked).call_id,
          output: '{"approved":true}',
        },
      ],
    };
    const answers = await Promise.all([create(answer), create(answer), create(answer)]);
    const accepted = answers.filter(({ status }) => status === 200);
    expect(accepted).toHaveLength(1);
    expect(textOf(accepted[0].body)).toBe('{"moved":7}');
    expect(await create(answer)).toMatchObject(refused(400, 'failed_precondition'));
    const items = await get(`${url}/responses/${accepted[0].body.id}/input_items`);
    expect(items.data).toMatchObject([
      { type: 'function_call_output', call_id: callOf(asked).call_id, output: '{"moved":7}' },
    ]);
  });

  test('that ask for data get it as JSON, and stay open when it does not fit (S353)', async () => {
    const asked = await made({ input: 'call ask {}' });
    const answer = (output: string): object => ({
      input: [{ type: 'function_call_output', call_id: callOf(asked).call_id, output }],
    });
    expect(await create(answer('{"color":"blue"}'))).toMatchObject(
      refused(400, 'invalid_argument'),
    );
    expect(textOf(await made(answer('{"colour":"blue"}')))).toBe('{"colour":"blue"}');
  });

  test('are declined by a message of the user (S353)', async () => {
    const asked = await made({ input: 'call transfer {"sum":7}' });
    const next = await made({ input: 'say never mind', previous_response_id: asked.id });
    expect(textOf(next)).toBe('never mind');
    const answer = {
      input: [
        {
          type: 'function_call_output',
          call_id: callOf(asked).call_id,
          output: '{"approved":true}',
        },
      ],
    };
    expect(await create(answer)).toMatchObject(refused(400, 'failed_precondition'));
  });

  test('a function with the name of a tool of the agent does not replace it', async () => {
    const tools = [{ type: 'function', name: 'transfer', parameters: { type: 'object' } }];
    const asked = await made({ input: 'call transfer {"sum":7}', tools });
    const input = [
      { type: 'function_call_output', call_id: callOf(asked).call_id, output: '{"approved":true}' },
    ];
    expect(textOf(await made({ input, tools }))).toBe('{"moved":7}');
  });

  test('in a conversation show the call and its output', async () => {
    const { id } = await (await post(`${url}/conversations`, {})).json();
    const asked = await made({ conversation: id, input: 'call transfer {"sum":7}' });
    const add = await post(`${url}/conversations/${id}/items`, { items: [user('x')] });
    expect(await add.json()).toMatchObject({ error: { code: 'function_call_output_expected' } });
    const call_id = callOf(asked).call_id;
    await made({
      conversation: id,
      input: [{ type: 'function_call_output', call_id, output: '{"approved":true}' }],
    });
    const { data } = await get(`${url}/conversations/${id}/items?order=asc`);
    expect(data).toMatchObject([
      { type: 'message', role: 'user' },
      { type: 'message', role: 'assistant' },
      { type: 'function_call', call_id },
      { type: 'function_call_output', call_id, output: '{"moved":7}' },
      { type: 'message', role: 'assistant' },
    ]);
    expect(new Set(data.map((item: Any) => item.id)).size).toBe(data.length);
  });
});

describe('streams', () => {
  test('give the same events live and later, from any number on (S352)', async () => {
    const response = await post(`${url}/responses`, {
      model: 'desk',
      input: 'say one two three',
      stream: true,
    });
    const live = await allEvents(response);
    expect(live.map(({ event, data }) => [event, data.sequence_number])).toEqual(
      live.map(({ data }, at) => [data.type, at]),
    );
    const id = live[0]?.data.response.id;
    for (let after = -1; after < live.length; after++) {
      const query = after === -1 ? '' : `&starting_after=${after}`;
      const read = await allEvents(await fetch(`${url}/responses/${id}?stream=true${query}`));
      expect(read.map(({ data }) => data)).toEqual(live.slice(after + 1).map(({ data }) => data));
    }
    for (const after of ['x', '-1', '1.5', '9999999999']) {
      const wrong = await fetch(`${url}/responses/${id}?stream=true&starting_after=${after}`);
      expect(wrong.status).toBe(400);
    }
  });

  test('of which the events are no longer stored give the whole response (S352)', async () => {
    const { app } = createOpenAiApp({ store: memoryStore({ eventsTtl: 1 }) });
    const brief = await startServer({ app, openai: true });
    const at = `${brief.url}/openai/v1/responses`;
    for (const input of ['say one two three', 'think of rain', 'call transfer {"sum":7}']) {
      const response = await (await post(at, { model: 'desk', input })).json();
      const read = async (query: string): Promise<Any[]> =>
        (await allEvents(await fetch(`${at}/${response.id}?stream=true${query}`))).map(
          ({ data }) => data,
        );
      const last = { type: 'response.completed', sequence_number: 6, response };
      await eventually(async () => expect(await read('&starting_after=5')).toEqual([last]));
      const whole = await read('');
      expect(whole.map(({ sequence_number }) => sequence_number)).toEqual(whole.map((_, n) => n));
      expect(whole.at(-1).response).toEqual(response);
      const done = whole.filter(({ type }) => type === 'response.output_item.done');
      expect(done.map(({ item }) => item)).toEqual(response.output);
    }
    await brief.close();
  });

  test('name a budget that is used up, so that a client can tell it from a crash', async () => {
    const app = waymark({ store: memoryStore(), price: () => ({ USD: 9_000 }), onError: () => {} });
    const look = app.defineTool({ name: 'look', description: 'Looks.' }, () => 'seen');
    const usage = { inputTokens: 10, totalTokens: 10 };
    app.defineAgent({
      name: 'desk',
      model: scriptedModel([{ toolCalls: [{ name: 'look', input: {} }], usage }, 'never']),
      tools: [look],
      limits: { turn: { cost: { USD: 8_000 } } },
    });
    const limited = await startServer({ app, openai: true });
    try {
      const response = await post(`${limited.url}/openai/v1/responses`, {
        model: 'desk',
        input: 'x',
      });
      expect(await response.json()).toMatchObject({
        status: 'failed',
        error: { code: 'rate_limit_exceeded' },
      });
    } finally {
      await limited.close();
    }
  });

  test('count the tokens that were read from and written to the cache (S350)', async () => {
    const app = waymark({ store: memoryStore() });
    const usage = { inputTokens: 10, cachedInputTokens: 3, cacheWriteTokens: 2 };
    app.defineAgent({ name: 'desk', model: scriptedModel([{ text: 'ok', usage }]) });
    const server = await startServer({ app, openai: true });
    try {
      const response = await post(`${server.url}/openai/v1/responses`, {
        model: 'desk',
        input: 'x',
      });
      expect(await response.json()).toMatchObject({
        usage: { input_tokens_details: { cached_tokens: 3, cache_write_tokens: 2 } },
      });
    } finally {
      await server.close();
    }
  });

  test('say what failed, without its cause', async () => {
    const events = await allEvents(
      await post(`${url}/responses`, { model: 'desk', input: 'fail', stream: true }),
    );
    expect(events.at(-1)?.data).toMatchObject({
      type: 'response.failed',
      response: { status: 'failed', output: [{ status: 'incomplete' }] },
    });
    expect(JSON.stringify(events)).not.toContain('secret of the model');
    const id = events[0]?.data.response.id;
    expect(await get(`${url}/responses/${id}`)).toMatchObject({ status: 'failed' });
    expect(await create({ input: 'x', previous_response_id: id })).toMatchObject(
      refused(400, 'failed_precondition'),
    );
  });

  test('of a run that another process took over repeat what is no longer valid as new items', async () => {
    const { ResponseEncoder } = await import('../../src/server/openai/encode.ts');
    const encoder = new ResponseEncoder({
      model: 'desk',
      echo: {},
      isStored: true,
      newId: () => '',
    });
    const snapshotId = '0193b7a0-0000-7000-8000-000000000000';
    const text = (part: string): object => ({ modelChunk: { content: [{ text: part }] } });
    const events = [
      encoder.chunk({ turnStart: { sessionId: 's', snapshotId, turnIndex: 0 } }),
      encoder.chunk(text('before') as Any),
      encoder.chunk({
        modelChunk: { role: 'tool', content: [{ toolResponse: { name: 'x', output: 1 } }] },
      }),
      encoder.chunk(text('ab') as Any),
      encoder.reset({ attempt: 2 }),
      encoder.chunk(text('abcdef') as Any),
      encoder.end({
        output: { sessionId: 's', snapshotId, finishReason: 'stop' },
        interrupts: [],
      }),
    ].flat() as Any[];
    const numbers = events.map(({ sequence_number }) => sequence_number);
    expect(numbers).toEqual([...new Set(numbers)].sort((a, b) => a - b));
    expect(numbers.findIndex((number) => number >= 1_000_000)).toBeGreaterThan(8);
    const done = events.filter(({ type }) => type === 'response.output_item.done');
    expect(done.map(({ item }) => [item.content[0].text, item.status])).toEqual([
      ['before', 'completed'],
      ['ab', 'incomplete'],
      ['abcdef', 'completed'],
    ]);
    expect(new Set(done.map(({ item }) => item.id)).size).toBe(3);
    expect(textOf(encoder.response)).toBe('beforeabcdef');
  });
});

describe('background', () => {
  test('runs can be polled, not continued while they run, and cancelled (S350)', async () => {
    const started = await made({ model: 'gated', input: 'go', background: true });
    expect(started).toMatchObject({ status: 'queued', background: true });
    expect(await get(`${url}/responses/${started.id}`)).toMatchObject({ status: 'in_progress' });
    expect(
      await create({ model: 'gated', input: 'x', previous_response_id: started.id }),
    ).toMatchObject(refused(400, 'failed_precondition'));
    const gone = await fetch(`${url}/responses/${started.id}`, { method: 'DELETE' });
    expect(gone.status).toBe(409);
    const cancelled = await post(`${url}/responses/${started.id}/cancel`, {});
    expect(await cancelled.json()).toMatchObject({ id: started.id, status: 'cancelled' });
  });

  test('a completed response that is cancelled stays as it is', async () => {
    const done = await made({ input: 'say done' });
    const cancelled = await post(`${url}/responses/${done.id}/cancel`, {});
    expect(await cancelled.json()).toMatchObject({ status: 'completed', output: done.output });
  });
});

describe('a message that is added to a running turn', () => {
  test('separates two items of the output, live and stored (S350)', async () => {
    const hold = createGate();
    const steered = await startServer({ app: createOpenAiApp({ gate: hold }).app, openai: true });
    const at = `${steered.url}/openai/v1`;
    const { id } = await (await post(`${at}/conversations`, {})).json();
    const body = { model: 'gated', input: 'go', background: true, conversation: id };
    const started = await (await post(`${at}/responses`, { ...body, metadata: { a: 'b' } })).json();
    const snapshotId = started.id.slice('resp_'.length);
    const added = await post(`${steered.url}/agents/gated/snapshots/${snapshotId}/steer`, {
      input: userInput('and again'),
    });
    expect(await added.json()).toMatchObject({ status: 'queued' });
    hold.open();
    const events = await allEvents(await fetch(`${at}/responses/${started.id}?stream=true`));
    const { output } = events.at(-1)?.data.response ?? {};
    expect(output.map((item: Any) => item.content[0].text)).toEqual(['abcdef', 'abcdef']);
    expect(await get(`${at}/responses/${started.id}`)).toMatchObject({
      output,
      metadata: { a: 'b' },
    });
    const { data } = await get(`${at}/conversations/${id}/items?order=asc`);
    expect(data.map(({ role, content }: Any) => [role, content[0].text])).toEqual([
      ['user', 'go'],
      ['assistant', 'abcdef'],
      ['user', 'and again'],
      ['assistant', 'abcdef'],
    ]);
    await steered.close();
  });
});

describe('several processes', () => {
  test('stream and cancel the runs of each other (S352)', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'waymark-openai-'));
    const hold = createGate();
    const open = (): Promise<typeof server> =>
      startServer({
        app: createOpenAiApp({ store: sqliteStore(join(folder, 'w.db')), gate: hold }).app,
        openai: true,
      });
    const [one, two] = await Promise.all([open(), open()]);
    const start = async (): Promise<string> => {
      const body = { model: 'gated', input: 'go', background: true };
      return (await (await post(`${one.url}/openai/v1/responses`, body)).json()).id;
    };
    const id = await start();
    const reading = allEvents(await fetch(`${two.url}/openai/v1/responses/${id}?stream=true`));
    const other = await start();
    await post(`${two.url}/openai/v1/responses/${other}/cancel`, {});
    expect(await get(`${one.url}/openai/v1/responses/${other}`)).toMatchObject({
      status: 'cancelled',
    });
    hold.open();
    const there = (await reading).map(({ data }) => data);
    expect(there.at(-1)).toMatchObject({ type: 'response.completed', sequence_number: 12 });
    const here = await allEvents(await fetch(`${one.url}/openai/v1/responses/${id}?stream=true`));
    expect(here.map(({ data }) => data)).toEqual(there);
    await Promise.all([one.close(), two.close()]);
    await rm(folder, { recursive: true });
  });
});

describe('branches', () => {
  test('of one response run at once (S351)', async () => {
    const root = await made({ input: 'one' });
    const texts = ['a', 'b', 'c', 'd', 'e'];
    const all = await Promise.all(
      texts.map((text) => made({ input: `say ${text}`, previous_response_id: root.id })),
    );
    expect(all.map(textOf)).toEqual(texts);
    for (const { id } of all) {
      const next = await made({ input: 'and?', previous_response_id: id });
      expect(textOf(next)).toBe('You said 3 things.');
    }
  });

  test('of a response do not see each other (S351)', async () => {
    const root = await made({ input: 'one' });
    const left = await made({ input: 'two', previous_response_id: root.id });
    await made({ input: 'three', previous_response_id: left.id });
    const right = await made({ input: 'two', previous_response_id: root.id });
    expect(textOf(right)).toBe('You said 2 things.');
  });
});

describe('state that the client holds', () => {
  test('is signed, and the last item of the output (S354)', async () => {
    const first = await made({ input: 'one', store: false });
    const state = first.output.at(-1);
    expect(state).toMatchObject({ type: 'reasoning', summary: [] });
    const input = [...first.output, user('two')];
    expect(textOf(await made({ input, store: false }))).toBe('You said 2 things.');
    expect((await fetch(`${url}/responses/${first.id}`)).status).toBe(404);
    const other = await made({ input: 'one', store: false, model: 'held' });
    const swapped = [...other.output, user('two')];
    expect(await create({ input: swapped, store: false })).toMatchObject(
      refused(403, 'permission_denied'),
    );
    expect(await create({ input: [first.output[0], user('x')], store: false })).toMatchObject(
      refused(400, 'missing_encrypted_content'),
    );
    expect(await create({ input })).toMatchObject(refused(400, 'invalid_value'));
  });

  test('is accepted by another process with the same secret (S354)', async () => {
    const secret = 'a secret of thirty-two characters';
    const open = (given: string | readonly string[]): Promise<typeof server> =>
      startServer({ app: createOpenAiApp().app, openai: { secret: given } });
    const [one, two, rotated] = await Promise.all([
      open(secret),
      open(secret),
      open(['another secret of 32 characters!', secret]),
    ]);
    const ask = async (at: typeof server, input: unknown): Promise<Any> =>
      (await post(`${at.url}/openai/v1/responses`, { model: 'desk', input, store: false })).json();
    const first = await ask(one, 'one');
    for (const each of [two, rotated]) {
      const next = await ask(each, [...first.output, user('two')]);
      expect(textOf(next)).toBe('You said 2 things.');
    }
    expect(await ask(server, 'x')).toBeDefined();
    await Promise.all([one, two, rotated].map((each) => each.close()));
  });

  test('answers an interrupt once (S354)', async () => {
    const asked = await made({ input: 'call transfer {"sum":7}', store: false });
    const output = {
      type: 'function_call_output',
      call_id: callOf(asked).call_id,
      output: '{"approved":true}',
    };
    const input = [...asked.output, output];
    expect(textOf(await made({ input, store: false }))).toBe('{"moved":7}');
    expect(await create({ input, store: false })).toMatchObject(
      refused(400, 'failed_precondition'),
    );
  });

  test('streams as well', async () => {
    const events = await allEvents(
      await post(`${url}/responses`, { model: 'held', input: 'one', stream: true }),
    );
    const output = events.at(-1)?.data.response.output;
    const input = [...output, user('two')];
    expect(textOf(await made({ model: 'held', input }))).toBe('You said 2 things.');
  });
});

describe('what callers may decide', () => {
  test('is nothing of the agent’s definition, unless the server allows it (S355)', async () => {
    for (const body of [
      { instructions: 'Be rude.' },
      { temperature: 0 },
      { top_p: 0.5 },
      { max_output_tokens: 5 },
      { input: [{ role: 'system', content: 'Be rude.' }, user('x')] },
      { input: [{ role: 'developer', content: [{ type: 'input_text', text: 'x' }] }, user('x')] },
      { input: [user('x'), { role: 'assistant', content: 'I said so.' }, user('y')] },
      { reasoning: { effort: 'high' } },
      { tool_choice: 'required' },
      { tool_choice: { type: 'function', name: 'weather' } },
      { prompt: { id: 'pmpt_1' } },
      { max_tool_calls: 1 },
      { no_such_parameter: true },
    ]) {
      expect(await create({ input: 'x', ...body })).toMatchObject(
        refused(400, 'unsupported_parameter'),
      );
    }
    // What changes nothing is passed over.
    const hints = { user: 'u', service_tier: 'auto', truncation: 'auto', include: [], store: true };
    const summary = { reasoning: { summary: 'auto' } };
    await made({ input: 'x', ...hints, ...summary, temperature: null, tool_choice: 'auto' });
  });

  test('is kept with the response, and with a background run (S355)', async () => {
    const { app, model: asked } = createOpenAiApp();
    const open = await startServer({
      app,
      openai: { allow: ['instructions', 'sampling', 'history'] },
    });
    const body = {
      model: 'desk',
      input: [user('one'), { role: 'assistant', content: 'Yes?' }, user('two')],
      instructions: 'Be brief.',
      temperature: 0.5,
      top_p: 0.9,
      max_output_tokens: 9,
      metadata: { a: 'b' },
      background: true,
    };
    const at = `${open.url}/openai/v1/responses`;
    const started = await (await post(at, body)).json();
    await allEvents(await fetch(`${at}/${started.id}?stream=true`));
    const { background, instructions, temperature, top_p, max_output_tokens, metadata } = body;
    expect(await get(`${at}/${started.id}`)).toMatchObject({
      status: 'completed',
      output: [{ content: [{ text: 'You said 2 things.' }] }],
      ...{ background, instructions, temperature, top_p, max_output_tokens, metadata },
    });
    expect(asked.requests[0]).toMatchObject({
      config: { temperature: 0.5, topP: 0.9, maxOutputTokens: 9 },
      messages: [
        { role: 'system', content: [{ text: 'You are a desk.' }, { text: 'Be brief.' }] },
        {},
        {},
        {},
      ],
    });
    await open.close();
  });

  test('includes tools and effort, if the server allows it (S520)', async () => {
    const { app, model: asked } = createOpenAiApp();
    const open = await startServer({ app, openai: { allow: ['tools', 'sampling'] } });
    const say = async (body: object): Promise<Any> =>
      await (
        await post(`${open.url}/openai/v1/responses`, { model: 'desk', input: 'hello', ...body })
      ).json();
    const mine = { type: 'function', name: 'mine', parameters: { type: 'object' } };
    const named = { tool_choice: { type: 'function', name: 'mine' }, tools: [mine] };
    expect(await say(named)).toMatchObject(named);
    expect(asked.requests.at(-1)?.toolChoice).toEqual({ tool: 'mine' });
    await say({ tool_choice: 'required' });
    expect(asked.requests.at(-1)?.toolChoice).toBe('required');
    await say({ tool_choice: 'none', tools: [mine] });
    const last = asked.requests.at(-1);
    expect(last?.toolChoice).toBe('none');
    expect(last?.tools.map(({ name }) => name)).not.toContain('mine');
    const effort = { reasoning: { effort: 'high' } };
    expect(await say(effort)).toMatchObject(effort);
    expect(asked.requests.at(-1)?.config).toMatchObject({ reasoning: 'high' });
    for (const wrong of [
      { tool_choice: { type: 'function', name: 'theirs' } },
      { tool_choice: 'all' },
      { tool_choice: { type: 'web_search' } },
      { reasoning: { effort: 'endless' } },
    ]) {
      expect(await say(wrong)).toMatchObject({ error: { type: 'invalid_request_error' } });
    }
    await open.close();
  });

  test('is not taken from inputs of the native API (S357)', async () => {
    const input = {
      ...userInput('hello'),
      settings: { instructions: 'Be rude.', config: { seed: 1 } },
    };
    const before = model.requests.length;
    const refused = await post(`${server.url}/agents/desk/turns`, { input });
    expect(await refused.json()).toMatchObject({
      message: expect.stringContaining('Unknown field "settings" of `input`.'),
    });
    expect(model.requests).toHaveLength(before);
    // Code of the server can set it.
    const desk = server.app.agents().find(({ name }) => name === 'desk');
    await desk?.run(input);
    expect(model.requests.at(-1)).toMatchObject({
      config: { seed: 1 },
      messages: [{ content: [{}, { text: 'Be rude.' }] }, {}],
    });
  });

  test('includes the form of the answer (S357)', async () => {
    const schema = { type: 'object', properties: { n: { type: 'number' } }, required: ['n'] };
    const text = { format: { type: 'json_schema', name: 'n', schema } };
    const response = await made({ input: 'say {"n":1}', text });
    expect(response).toMatchObject({ status: 'completed', text });
    expect(model.requests.at(-1)?.output).toMatchObject({ schema });
    await made({ input: 'say {"n":1}', text: { format: { type: 'json_object' } } });
    expect(model.requests.at(-1)?.output).toMatchObject({ format: 'json' });
    await made({ model: 'geo', input: 'say {"city":"Oslo"}' });
  });
});

describe('conversations', () => {
  test('belong to the model that answered first', async () => {
    const { id } = await (await post(`${url}/conversations`, { metadata: { a: 'b' } })).json();
    expect(id).toMatch(/^conv_/);
    await made({ conversation: { id }, input: 'one' });
    expect(await create({ model: 'gated', conversation: id, input: 'x' })).toMatchObject(
      refused(400, 'conversation_of_another_model'),
    );
    expect(await get(`${url}/conversations/${id}`)).toMatchObject({
      object: 'conversation',
      metadata: { a: 'b' },
    });
  });

  test('are changed by nobody else, and deleted with their responses (S359)', async () => {
    const items = [user('one'), user('two')];
    const { id } = await (await post(`${url}/conversations`, { items })).json();
    const draft = await get(`${url}/conversations/${id}/items`);
    expect(draft.data.map(({ content }: Any) => content[0].text)).toEqual(['two', 'one']);
    const added = await (
      await post(`${url}/conversations/${id}/items`, { items: [user('three')] })
    ).json();
    expect(added.data).toMatchObject([{ role: 'user', content: [{ text: 'three' }] }]);
    const response = await made({ conversation: id, input: 'four' });
    expect(textOf(response)).toBe('You said 4 things.');
    const one = await get(`${url}/conversations/${id}/items?order=asc&limit=1`);
    expect(one).toMatchObject({ has_more: true, data: [{ content: [{ text: 'one' }] }] });
    const item = await fetch(`${url}/conversations/${id}/items/${one.first_id}`, {
      method: 'DELETE',
    });
    expect(await item.json()).toMatchObject({ error: { code: 'unsupported_operation' } });
    const more = await made({ previous_response_id: response.id, input: 'five' });
    const inUse = await fetch(`${url}/responses/${more.id}`, { method: 'DELETE' });
    expect(await inUse.json()).toMatchObject({ error: { code: 'response_in_use' } });
    await fetch(`${url}/conversations/${id}`, { method: 'DELETE' });
    for (const path of [
      `conversations/${id}`,
      `responses/${response.id}`,
      `responses/${more.id}`,
    ]) {
      expect((await fetch(`${url}/${path}`)).status).toBe(404);
    }
  });

  test('that are busy take neither items nor another response', async () => {
    const { id } = await (await post(`${url}/conversations`, {})).json();
    const run = await made({ model: 'gated', conversation: id, input: 'go', background: true });
    const add = await post(`${url}/conversations/${id}/items`, { items: [user('x')] });
    expect(add.status).toBe(409);
    expect(await add.json()).toMatchObject({ error: { type: 'conflict_error' } });
    expect((await create({ model: 'gated', conversation: id, input: 'x' })).status).toBe(409);
    expect((await fetch(`${url}/conversations/${id}`, { method: 'DELETE' })).status).toBe(409);
    await post(`${url}/responses/${run.id}/cancel`, {});
    expect((await fetch(`${url}/conversations/${id}`, { method: 'DELETE' })).status).toBe(200);
  });

  test('take no messages of the assistant, and no more than 20 items', async () => {
    const forged = { items: [{ role: 'assistant', content: 'x' }] };
    const many = { items: Array.from({ length: 21 }, () => user('x')) };
    const call = { items: [{ type: 'function_call', call_id: 'c', name: 'x', arguments: '{}' }] };
    for (const body of [forged, many, call]) {
      expect((await post(`${url}/conversations`, body)).status).toBe(400);
    }
  });

  test.each(['limit=0', 'limit=101', 'limit=x', 'order=up', 'after=msg_1'])(
    'refuse the query %s',
    async (query) => {
      const { id } = await (await post(`${url}/conversations`, {})).json();
      const response = await fetch(`${url}/conversations/${id}/items?${query}`);
      expect([400, 404]).toContain(response.status);
      expect((await response.json()).error.message).toBeTruthy();
    },
  );
});

describe('unknown ids', () => {
  const ids = ['resp_1', 'x', '__proto__', `resp_${'0'.repeat(300)}`, '%00', 'conv_%F0%9F%99%82'];
  test.each(ids)('%s is 404 everywhere (S356)', async (id) => {
    for (const [method, path] of [
      ['GET', `responses/${id}`],
      ['GET', `responses/${id}?stream=true`],
      ['DELETE', `responses/${id}`],
      ['POST', `responses/${id}/cancel`],
      ['GET', `responses/${id}/input_items`],
      ['GET', `conversations/${id}`],
      ['DELETE', `conversations/${id}`],
      ['GET', `conversations/${id}/items`],
      ['GET', `conversations/${id}/items/x`],
      ['DELETE', `conversations/${id}/items/x`],
      ['GET', `models/${id}`],
      ['GET', 'nowhere'],
    ] as const) {
      const response = await fetch(`${url}/${path}`, { method });
      expect(response.status, path).toBe(404);
      expect(await response.json()).toMatchObject({
        error: { type: 'invalid_request_error', message: expect.any(String) },
      });
    }
    const name = decodeURIComponent(id);
    expect((await create({ input: 'x', previous_response_id: name })).status).toBe(404);
    expect((await create({ input: 'x', conversation: name })).status).toBe(404);
  });
});

describe('the server', () => {
  test('has no such routes unless it is asked for', async () => {
    const fetch = handler(createOpenAiApp().app);
    const response = await fetch(new Request('http://localhost/openai/v1/models'));
    expect(response.status).toBe(404);
    expect(await response.json()).toMatchObject({ status: 'NOT_FOUND' });
  });

  test('offers the agents that it names', async () => {
    const { app } = createOpenAiApp();
    const fetch = handler(app, { openai: { agents: ['desk'] } });
    const ask = async (path: string): Promise<Any> =>
      (await fetch(new Request(`http://localhost/openai/v1/${path}`))).json();
    expect((await ask('models')).data).toMatchObject([{ id: 'desk', object: 'model' }]);
    expect(await ask('models/geo')).toMatchObject({ error: { code: 'model_not_found' } });
  });

  test.each([
    [{ agents: ['nobody'] }, /no such agent/],
    [{ secret: 'short' }, /32 bytes/],
    [{ secret: [] }, /32 bytes/],
    [{ allow: ['all'] }, /openai.allow/],
    [{ agent: 'desk' }, /agent/],
  ])('refuses the options %j when it starts', (openai, message) => {
    const { app } = createOpenAiApp();
    expect(() => handler(app, { openai: openai as never })).toThrow(message);
  });

  test('says so where no agent has a store', async () => {
    const app = waymark({ model: scriptedModel({ patterns: [], otherwise: 'Hm.' }) });
    app.defineAgent({ name: 'held', store: false });
    const fetch = handler(app, { openai: true });
    const request = new Request('http://localhost/openai/v1/conversations', { method: 'POST' });
    const response = await fetch(request);
    expect(response.status).toBe(400);
    expect(await response.json()).toMatchObject({ error: { code: 'unsupported_operation' } });
  });

  test('says where the routes are described', async () => {
    const response = await post(`${url}/embeddings`, { model: 'desk', input: 'x' });
    expect(response.status).toBe(404);
    expect(await response.text()).toContain(
      'https://platform.openai.com/docs/api-reference/responses, and POST /chat/completions.',
    );
  });

  test('works on another store as well', async () => {
    const { app } = createOpenAiApp({ store: memoryStore() });
    const fetch = handler(app, { openai: true, basePath: '/api' });
    const request = new Request('http://localhost/api/openai/v1/responses', {
      method: 'POST',
      body: JSON.stringify({ model: 'desk', input: 'say hi' }),
    });
    expect(textOf(await (await fetch(request)).json())).toBe('hi');
  });
});
