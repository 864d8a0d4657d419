import { createOpenAI } from '@ai-sdk/openai';
import { expect, test } from 'vitest';
import type { Action } from '../../src/core/action.ts';
import { createRegistry } from '../../src/core/registry.ts';
import { systemClock } from '../../src/core/time.ts';
import { createGenerator } from '../../src/generate/generator.ts';
import { type ProviderWire, providerContract } from './contract.ts';
import { sse, startWireServer } from './wire-server.ts';

const open = (url: string) => createOpenAI({ baseURL: url, apiKey: 'test' });
const errorBody = (_: number, message: string): string =>
  JSON.stringify({ error: { message, type: 'some_error', param: null, code: null } });

type Item = { readonly [field: string]: unknown };

const created = {
  type: 'response.created',
  response: { id: 'resp_1', created_at: 1, model: 'gpt-5' },
};
const completed = {
  type: 'response.completed',
  response: { usage: { input_tokens: 11, output_tokens: 7 } },
};

function item(
  output_index: number,
  start: Item,
  deltas: readonly Item[],
  end: Item = start,
): Item[] {
  return [
    { type: 'response.output_item.added', output_index, item: start },
    ...deltas.map((delta) => ({ output_index, item_id: start.id, ...delta })),
    { type: 'response.output_item.done', output_index, item: end },
  ];
}

function message(pieces: readonly string[]): Item[] {
  return item(
    0,
    { type: 'message', id: 'msg_1' },
    pieces.map((delta) => ({ type: 'response.output_text.delta', delta })),
  );
}

function functionCall(index: number, id: string, name: string, args: string): Item[] {
  const call = { type: 'function_call', id: `fc_${id}`, call_id: id, name };
  return item(
    index,
    { ...call, arguments: '' },
    [...(args.match(/.{1,5}/gsu) ?? [])].map((delta) => ({
      type: 'response.function_call_arguments.delta',
      delta,
    })),
    { ...call, arguments: args, status: 'completed' },
  );
}

// biome-ignore lint/suspicious/noExplicitAny: the shape of a provider's request is its own.
type Body = any;

const responses: ProviderWire = {
  name: 'openai (responses)',
  model: (url) => open(url)('gpt-5'),
  text: (pieces, { cut = false } = {}) =>
    sse([created, ...(cut ? message(pieces).slice(0, -1) : [...message(pieces), completed])]),
  toolCalls: (calls) =>
    sse([
      created,
      ...calls.flatMap(({ id, name, input }, at) =>
        functionCall(at, id, name, JSON.stringify(input)),
      ),
      completed,
    ]),
  failing: (pieces) =>
    sse([
      created,
      ...message(pieces).slice(0, -1),
      {
        type: 'error',
        sequence_number: 3,
        code: 'server_error',
        message: 'went wrong',
        param: null,
      },
    ]),
  error: errorBody,
  tooLong: JSON.stringify({
    error: {
      message:
        "This model's maximum context length is 128000 tokens. However, your messages resulted in 131042 tokens. Please reduce the length of the messages.",
      type: 'invalid_request_error',
      param: 'messages',
      code: 'context_length_exceeded',
    },
  }),
  toolNames: (request: Body) => request.tools.map(({ name }: Body) => name),
  toolResults: (request: Body) =>
    request.input
      .filter(({ type }: Body) => type === 'function_call_output')
      .map(({ output }: Body) => readOutput(output)),
  outputSchema: (request: Body) => request.text.format.schema,
};

const chunk = (delta: object, rest: object = {}): object => ({
  id: 'c1',
  created: 1,
  model: 'gpt-4o',
  choices: [{ index: 0, delta, finish_reason: null }],
  ...rest,
});
const done = (finish_reason: string): unknown[] => [
  chunk({}, { choices: [{ index: 0, delta: {}, finish_reason }] }),
  chunk({}, { choices: [], usage: { prompt_tokens: 11, completion_tokens: 7, total_tokens: 18 } }),
  '[DONE]',
];

const chat: ProviderWire = {
  name: 'openai (chat)',
  model: (url) => open(url).chat('gpt-4o'),
  text: (pieces, { cut = false } = {}) =>
    sse([
      ...pieces.map((content) => chunk({ role: 'assistant', content })),
      ...(cut ? [] : done('stop')),
    ]),
  toolCalls: (calls) =>
    sse([
      ...calls.flatMap(({ id, name, input }, index) => [
        chunk({ tool_calls: [{ index, id, type: 'function', function: { name, arguments: '' } }] }),
        ...[...(JSON.stringify(input).match(/.{1,5}/gsu) ?? [])].map((args) =>
          chunk({ tool_calls: [{ index, function: { arguments: args } }] }),
        ),
      ]),
      ...done('tool_calls'),
    ]),
  failing: (pieces) =>
    sse([
      ...pieces.map((content) => chunk({ content })),
      { error: { message: 'went wrong', type: 'server_error', param: null, code: null } },
    ]),
  error: errorBody,
  tooLong: JSON.stringify({
    error: {
      message:
        'Your input exceeds the context window of this model. Please adjust your input and try again.',
      type: 'invalid_request_error',
      param: 'input',
      code: 'context_length_exceeded',
    },
  }),
  toolNames: (request: Body) => request.tools.map((tool: Body) => tool.function.name),
  toolResults: (request: Body) =>
    request.messages
      .filter(({ role }: Body) => role === 'tool')
      .map(({ content }: Body) => readOutput(content)),
  outputSchema: (request: Body) => request.response_format.json_schema.schema,
};

function readOutput(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

providerContract(responses);
providerContract(chat);

test('openai gets its reasoning back as it gave it', async () => {
  const reasoning = item(
    0,
    { type: 'reasoning', id: 'rs_1', encrypted_content: null },
    [
      { type: 'response.reasoning_summary_part.added', summary_index: 0 },
      { type: 'response.reasoning_summary_text.delta', summary_index: 0, delta: 'Hm…' },
      { type: 'response.reasoning_summary_part.done', summary_index: 0 },
    ],
    { type: 'reasoning', id: 'rs_1', encrypted_content: 'secret' },
  );
  await using server = await startWireServer([
    { body: sse([created, ...reasoning, ...functionCall(1, 'c1', 'now', '{}'), completed]) },
    { body: responses.text(['12']) },
  ]);
  const app = createGenerator({
    registry: createRegistry<Action>(),
    clock: systemClock,
    newId: () => 'x',
  });
  const now = app.defineTool({ name: 'now', description: 'd' }, () => 12);
  const response = await app.generate({
    model: responses.model(server.url),
    prompt: 'x',
    tools: [now],
    config: {
      providerOptions: { openai: { store: false, include: ['reasoning.encrypted_content'] } },
    },
  });
  expect(response.messages[0]?.content[0]).toMatchObject({ reasoning: 'Hm…' });
  expect(server.requests[1].input).toContainEqual(
    expect.objectContaining({ type: 'reasoning', encrypted_content: 'secret' }),
  );
});
