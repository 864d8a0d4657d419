import { context, trace } from '@opentelemetry/api';
import { AsyncLocalStorageContextManager } from '@opentelemetry/context-async-hooks';
import {
  BasicTracerProvider,
  InMemorySpanExporter,
  SimpleSpanProcessor,
} from '@opentelemetry/sdk-trace-base';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import type { Action } from '../core/action.ts';
import { WaymarkError } from '../core/error.ts';
import { createRegistry } from '../core/registry.ts';
import { systemClock } from '../core/time.ts';
import { type ScriptStep, scriptedModel } from '../testing/scripted-model.ts';
import { createGenerator } from './generator.ts';
import { retry } from './middleware/retry.ts';
import { tool } from './tool/tool.ts';

const exporter = new InMemorySpanExporter();

beforeAll(() => {
  context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable());
  trace.setGlobalTracerProvider(
    new BasicTracerProvider({ spanProcessors: [new SimpleSpanProcessor(exporter)] }),
  );
});
beforeEach(() => exporter.reset());
afterAll(() => {
  trace.disable();
  context.disable();
});

function setUp(script: readonly ScriptStep[]) {
  return createGenerator({
    registry: createRegistry<Action>(),
    clock: systemClock,
    newId: () => 'id',
    model: scriptedModel(script),
  });
}

const spans = () =>
  exporter.getFinishedSpans().map(({ name, attributes, status }) => ({ name, attributes, status }));

test('each model call and each tool call has a span with ids and counts, and no content', async () => {
  const app = setUp([
    {
      toolCalls: [{ name: 'secret', ref: 'r1', input: { word: 'hunter2' } }],
      usage: { inputTokens: 5, outputTokens: 2 },
    },
    'The word is hunter2.',
  ]);
  const secret = tool({ name: 'secret', description: 'd' }, () => 'hunter2');
  await app.generate({ prompt: 'Tell me hunter2', tools: [secret] });
  const found = spans();
  expect(found.map(({ name }) => name)).toEqual([
    'chat scripted',
    'execute_tool secret',
    'chat scripted',
  ]);
  expect(found[0]?.attributes).toEqual({
    'gen_ai.operation.name': 'chat',
    'gen_ai.provider.name': 'scripted',
    'gen_ai.request.model': 'scripted',
    'gen_ai.response.finish_reasons': ['stop'],
    'gen_ai.response.time_to_first_chunk': expect.any(Number),
    'gen_ai.usage.input_tokens': 5,
    'gen_ai.usage.output_tokens': 2,
  });
  expect(found[1]?.attributes).toEqual({
    'gen_ai.operation.name': 'execute_tool',
    'gen_ai.tool.name': 'secret',
    'gen_ai.tool.call.id': 'r1',
    'gen_ai.tool.type': 'function',
    'gen_ai.tool.description': 'd',
  });
  expect(JSON.stringify(found)).not.toContain('hunter2');
});

test('an error is recorded on the span of the call that had it', async () => {
  const busy = new WaymarkError('UNAVAILABLE', 'busy', { details: { retryable: true } });
  const app = setUp([{ error: busy }, { toolCalls: [{ name: 'broken' }] }, 'ok']);
  const broken = tool({ name: 'broken', description: 'd' }, () => {
    throw new WaymarkError('NOT_FOUND', 'gone');
  });
  await app.generate({ prompt: 'x', tools: [broken], use: [retry({ delay: 1 })] });
  expect(spans().map(({ name, attributes }) => [name, attributes['error.type']])).toEqual([
    ['chat scripted', 'UNAVAILABLE'],
    ['chat scripted', undefined],
    ['execute_tool broken', 'NOT_FOUND'],
    ['chat scripted', undefined],
  ]);
});

test('what a tool does is below its span', async () => {
  const app = setUp([{ toolCalls: [{ name: 'nested' }] }, 'ok']);
  const inner = scriptedModel(['inner'], { name: 'inner' });
  const nested = tool({ name: 'nested', description: 'd' }, async () => {
    await app.generate({ model: inner, prompt: 'x' });
  });
  await app.generate({ prompt: 'x', tools: [nested] });
  const all = exporter.getFinishedSpans();
  const called = all.find(({ name }) => name === 'execute_tool nested');
  const below = all.find(({ name }) => name === 'chat inner');
  expect(below?.parentSpanContext?.spanId).toBe(called?.spanContext().spanId);
});
