import { createAnthropic } from '@ai-sdk/anthropic';
import { expect, test } from 'vitest';
import type { Action } from '../../src/core/action.ts';
import { createRegistry } from '../../src/core/registry.ts';
import { systemClock } from '../../src/core/time.ts';
import { createGenerator } from '../../src/generate/generator.ts';
import { type ProviderWire, providerContract } from './contract.ts';
import { sse, startWireServer } from './wire-server.ts';

const start = {
  type: 'message_start',
  message: {
    id: 'msg_1',
    type: 'message',
    role: 'assistant',
    model: 'claude-sonnet-4-5',
    content: [],
    stop_reason: null,
    stop_sequence: null,
    usage: { input_tokens: 11, output_tokens: 1 },
  },
};
const end = (stop_reason: string): object[] => [
  {
    type: 'message_delta',
    delta: { stop_reason, stop_sequence: null },
    usage: { output_tokens: 7 },
  },
  { type: 'message_stop' },
];

function block(index: number, content_block: object, deltas: readonly object[]): object[] {
  return [
    { type: 'content_block_start', index, content_block },
    { type: 'ping' },
    ...deltas.map((delta) => ({ type: 'content_block_delta', index, delta })),
    { type: 'content_block_stop', index },
  ];
}

const textBlock = (pieces: readonly string[]): object[] =>
  block(
    0,
    { type: 'text', text: '' },
    pieces.map((text) => ({ type: 'text_delta', text })),
  );

const toolBlock = (index: number, id: string, name: string, args: string): object[] =>
  block(
    index,
    { type: 'tool_use', id, name, input: {} },
    [...(args.match(/.{1,5}/gsu) ?? [])].map((partial_json) => ({
      type: 'input_json_delta',
      partial_json,
    })),
  );

// biome-ignore lint/suspicious/noExplicitAny: the shape of a provider's request is its own.
type Body = any;

const wire: ProviderWire = {
  name: 'anthropic',
  model: (url) => createAnthropic({ baseURL: url, apiKey: 'test' })('claude-sonnet-4-5'),
  text: (pieces, { cut = false } = {}) =>
    sse([
      start,
      ...(cut ? textBlock(pieces).slice(0, -1) : [...textBlock(pieces), ...end('end_turn')]),
    ]),
  toolCalls: (calls) =>
    sse([
      start,
      ...calls.flatMap(({ id, name, input }, at) => toolBlock(at, id, name, JSON.stringify(input))),
      ...end('tool_use'),
    ]),
  failing: (pieces) =>
    sse([
      start,
      ...textBlock(pieces).slice(0, -1),
      { type: 'error', error: { type: 'overloaded_error', message: 'went wrong' } },
    ]),
  tooLong: JSON.stringify({
    type: 'error',
    error: {
      type: 'invalid_request_error',
      message: 'prompt is too long: 213462 tokens > 200000 maximum',
    },
  }),
  error: (_, message) => JSON.stringify({ type: 'error', error: { type: 'some_error', message } }),
  toolNames: (request: Body) => request.tools.map(({ name }: Body) => name),
  toolResults: (request: Body) =>
    request.messages.flatMap(({ content }: Body) =>
      content
        .filter(({ type }: Body) => type === 'tool_result')
        .map((result: Body) => readOutput(result.content)),
    ),
  outputSchema: (request: Body) =>
    request.output_config?.format?.schema ?? request.output_format?.schema,
};

function readOutput(content: string): unknown {
  try {
    return JSON.parse(content);
  } catch {
    return content;
  }
}

providerContract(wire);

test('anthropic gets its thinking back with the signature', async () => {
  const thinking = block(0, { type: 'thinking', thinking: '' }, [
    { type: 'thinking_delta', thinking: 'Hm, ' },
    { type: 'thinking_delta', thinking: 'tja' },
    { type: 'signature_delta', signature: 'sig==' },
  ]);
  const redacted = block(1, { type: 'redacted_thinking', data: 'hidden' }, []);
  await using server = await startWireServer([
    {
      body: sse([
        start,
        ...thinking,
        ...redacted,
        ...toolBlock(2, 'c1', 'now', '{}'),
        ...end('tool_use'),
      ]),
    },
    { body: wire.text(['12']) },
  ]);
  const app = createGenerator({
    registry: createRegistry<Action>(),
    clock: systemClock,
    newId: () => 'x',
  });
  const now = app.defineTool({ name: 'now', description: 'd' }, () => 12);
  const response = await app.generate({
    model: wire.model(server.url),
    prompt: 'x',
    tools: [now],
    config: {
      providerOptions: { anthropic: { thinking: { type: 'enabled', budgetTokens: 1024 } } },
    },
  });
  expect(response.messages[0]?.content[0]).toMatchObject({ reasoning: 'Hm, tja' });
  expect(server.requests[1].messages[1].content).toEqual([
    { type: 'thinking', thinking: 'Hm, tja', signature: 'sig==' },
    { type: 'redacted_thinking', data: 'hidden' },
    expect.objectContaining({ type: 'tool_use', id: 'c1', name: 'now', input: {} }),
  ]);
});

test('a tool call whose JSON is cut off is a clear error', async () => {
  await using server = await startWireServer([
    { body: sse([start, ...toolBlock(0, 'c1', 'now', '{"city":"Z'), ...end('tool_use')]) },
  ]);
  const app = createGenerator({
    registry: createRegistry<Action>(),
    clock: systemClock,
    newId: () => 'x',
  });
  await expect(app.generate({ model: wire.model(server.url), prompt: 'x' })).rejects.toMatchObject({
    status: 'INTERNAL',
    message: expect.stringContaining('tool "now" that are not JSON'),
  });
});
