import { createGoogle } from '@ai-sdk/google';
import { expect, test } from 'vitest';
import type { Action } from '../../src/core/action.ts';
import { createRegistry } from '../../src/core/registry.ts';
import { systemClock } from '../../src/core/time.ts';
import { createGenerator } from '../../src/generate/generator.ts';
import { type ProviderWire, providerContract } from './contract.ts';
import { sse, startWireServer } from './wire-server.ts';

const usageMetadata = { promptTokenCount: 11, candidatesTokenCount: 7, totalTokenCount: 18 };

const chunk = (parts: readonly object[], rest: object = {}): object => ({
  candidates: [{ content: { role: 'model', parts }, index: 0, ...rest }],
});
const last = (parts: readonly object[] = []): object => ({
  ...chunk(parts, { finishReason: 'STOP' }),
  usageMetadata,
});

// biome-ignore lint/suspicious/noExplicitAny: the shape of a provider's request is its own.
type Body = any;

const wire: ProviderWire = {
  name: 'google',
  model: (url) => createGoogle({ baseURL: url, apiKey: 'test' })('gemini-2.5-pro'),
  text: (pieces, { cut = false } = {}) =>
    sse([...pieces.map((text) => chunk([{ text }])), ...(cut ? [] : [last()])]),
  toolCalls: (calls) =>
    sse([last(calls.map(({ name, input }) => ({ functionCall: { name, args: input } })))]),
  failing: (pieces) =>
    sse([
      ...pieces.map((text) => chunk([{ text }])),
      { error: { code: 503, message: 'went wrong', status: 'UNAVAILABLE' } },
    ]),
  tooLong: JSON.stringify({
    error: {
      code: 400,
      message:
        'The input token count (1189900) exceeds the maximum number of tokens allowed (1048575).',
      status: 'INVALID_ARGUMENT',
    },
  }),
  error: (code, message) => JSON.stringify({ error: { code, message, status: 'SOME_STATUS' } }),
  toolNames: (request: Body) =>
    request.tools.flatMap(({ functionDeclarations }: Body) =>
      functionDeclarations.map(({ name }: Body) => name),
    ),
  toolResults: (request: Body) =>
    request.contents.flatMap(({ parts }: Body) =>
      parts
        .filter((part: Body) => part.functionResponse)
        .map(
          (part: Body) => part.functionResponse.response.content ?? part.functionResponse.response,
        ),
    ),
  outputSchema: (request: Body) =>
    request.generationConfig.responseJsonSchema ?? request.generationConfig.responseSchema,
};

providerContract(wire);

test('google gets its thought signatures back', async () => {
  await using server = await startWireServer([
    {
      body: sse([
        chunk([{ text: 'Hm…', thought: true, thoughtSignature: 's0' }]),
        last([{ functionCall: { name: 'now', args: {} }, thoughtSignature: 's1' }]),
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
  const response = await app.generate({ model: wire.model(server.url), prompt: 'x', tools: [now] });
  expect(response.messages[0]?.content[0]).toMatchObject({ reasoning: 'Hm…' });
  expect(server.requests[1].contents[1].parts).toMatchObject([
    { text: 'Hm…', thought: true, thoughtSignature: 's0' },
    { functionCall: { name: 'now' }, thoughtSignature: 's1' },
  ]);
});
