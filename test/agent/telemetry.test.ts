import { context, metrics, trace } from '@opentelemetry/api';
import { AsyncLocalStorageContextManager } from '@opentelemetry/context-async-hooks';
import {
  AggregationTemporality,
  type HistogramMetricData,
  InMemoryMetricExporter,
  MeterProvider,
  PeriodicExportingMetricReader,
} from '@opentelemetry/sdk-metrics';
import {
  BasicTracerProvider,
  InMemorySpanExporter,
  type ReadableSpan,
  SimpleSpanProcessor,
} from '@opentelemetry/sdk-trace-base';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { agentTool } from '../../src/agent/define/agent-tool.ts';
import { model } from '../../src/generate/model.ts';
import { type ScriptStep, scriptedModel } from '../../src/testing/scripted-model.ts';
import { eventually } from '../support/eventually.ts';
import { createGate } from './support/gate.ts';
import { must, openApp, type TestApp } from './support/kit.ts';

const spans = new InMemorySpanExporter();
const exported = new InMemoryMetricExporter(AggregationTemporality.CUMULATIVE);
const reader = new PeriodicExportingMetricReader({ exporter: exported, exportIntervalMillis: 1e9 });

beforeAll(() => {
  context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable());
  trace.setGlobalTracerProvider(
    new BasicTracerProvider({ spanProcessors: [new SimpleSpanProcessor(spans)] }),
  );
  metrics.setGlobalMeterProvider(new MeterProvider({ readers: [reader] }));
});
beforeEach(() => {
  spans.reset();
  exported.reset();
});
afterAll(() => {
  trace.disable();
  context.disable();
  metrics.disable();
});

/** A model as an AI SDK provider would name it. */
function gpt(script: readonly ScriptStep[]) {
  const { run } = scriptedModel(script);
  const named = { name: 'openai.responses/gpt-5', provider: 'openai.responses', modelId: 'gpt-5' };
  return model(named, run);
}

const usage = {
  inputTokens: 10,
  outputTokens: 4,
  totalTokens: 14,
  cachedInputTokens: 3,
  cacheWriteTokens: 2,
  reasoningTokens: 1,
};

const named = (name: string): ReadableSpan =>
  must(spans.getFinishedSpans().find((span) => span.name === name));

/** A turn with a tool, a sub-agent and settings; one that fails; one that is stopped. */
async function live(app: TestApp): Promise<{ sessionId: string; failedId: string | undefined }> {
  const look = app.defineTool({ name: 'look', description: 'Looks.' }, () => 'the secret');
  const helper = app.defineAgent({ name: 'helper', model: gpt([{ text: 'helped', usage }]) });
  const chat = app.defineAgent({
    name: 'chat',
    description: 'Chats.',
    version: 'v7',
    model: gpt([
      { toolCalls: [{ name: 'look', ref: 'r1' }], usage },
      { toolCalls: [{ name: 'helper', input: { message: 'go' } }], usage },
      { chunks: ['do', 'ne'], usage },
    ]),
    tools: [look, agentTool(helper)],
    config: { temperature: 0.5, topP: 0.9, maxOutputTokens: 100 },
  });
  const { sessionId } = await chat.run('the question', { owner: 'ann' });
  const failing = app.defineAgent({
    name: 'failing',
    model: gpt([{ error: new Error('broken') }]),
  });
  const failed = await failing.run('x', { throwOnError: false });
  const gate = createGate();
  const slow = app.defineAgent({ name: 'slow', model: gpt([gate.giving('late')]) });
  const caller = new AbortController();
  const stopped = slow.run('x', { signal: caller.signal });
  await gate.reached;
  caller.abort();
  await stopped;
  const { items } = await failing.listSnapshots(failed.sessionId);
  return { sessionId, failedId: items[0]?.snapshotId };
}

test('S385 S386 spans have the attributes of the GenAI conventions, field by field', async () => {
  await using app = openApp({ telemetry: { userId: true } });
  const { sessionId, failedId } = await live(app);
  expect(named('invoke_agent chat').attributes).toMatchObject({
    'gen_ai.operation.name': 'invoke_agent',
    'gen_ai.agent.name': 'chat',
    'gen_ai.agent.description': 'Chats.',
    'gen_ai.agent.version': 'v7',
    'gen_ai.provider.name': 'openai',
    'gen_ai.request.model': 'gpt-5',
    'gen_ai.conversation.id': sessionId,
    'session.id': sessionId,
    'user.id': 'ann',
    'gen_ai.response.finish_reasons': ['stop'],
    // Three calls of its own, and one of its sub-agent.
    'gen_ai.usage.input_tokens': 40,
    'gen_ai.usage.output_tokens': 16,
    'gen_ai.usage.cache_read.input_tokens': 12,
    'gen_ai.usage.cache_write.input_tokens': 8,
    'gen_ai.usage.cache_creation.input_tokens': 8,
    'gen_ai.usage.reasoning.output_tokens': 4,
  });
  const last = must(
    spans.getFinishedSpans().findLast(({ attributes, name }) => {
      const reasons = attributes['gen_ai.response.finish_reasons'];
      return name === 'chat gpt-5' && reasons !== undefined;
    }),
  );
  expect(last.kind).toBe(2);
  const { 'gen_ai.response.time_to_first_chunk': first, ...fixed } = last.attributes;
  expect(first).toEqual(expect.any(Number));
  expect(fixed).toEqual({
    'gen_ai.operation.name': 'chat',
    'gen_ai.provider.name': 'openai',
    'gen_ai.request.model': 'gpt-5',
    'gen_ai.request.temperature': 0.5,
    'gen_ai.request.top_p': 0.9,
    'gen_ai.request.max_tokens': 100,
    'gen_ai.response.finish_reasons': ['stop'],
    'gen_ai.usage.input_tokens': 10,
    'gen_ai.usage.output_tokens': 4,
    'gen_ai.usage.cache_read.input_tokens': 3,
    'gen_ai.usage.cache_write.input_tokens': 2,
    'gen_ai.usage.cache_creation.input_tokens': 2,
    'gen_ai.usage.reasoning.output_tokens': 1,
    'waymark.usage.expected_cached_tokens': 0,
  });
  expect(named('execute_tool look').attributes).toEqual({
    'gen_ai.operation.name': 'execute_tool',
    'gen_ai.tool.name': 'look',
    'gen_ai.tool.call.id': 'r1',
    'gen_ai.tool.type': 'function',
    'gen_ai.tool.description': 'Looks.',
  });
  const failed = named('invoke_agent failing');
  expect(failed.status).toMatchObject({ code: 2 });
  expect(failed.attributes).toMatchObject({
    'error.type': expect.any(String),
    'waymark.snapshot.id': failedId,
  });
  expect(named('invoke_agent slow').status.code).not.toBe(2);
  expect(named('invoke_agent slow').attributes).toMatchObject({
    'gen_ai.response.finish_reasons': ['aborted'],
  });
  // Content is off by default.
  expect(JSON.stringify(spans.getFinishedSpans().map(({ attributes }) => attributes))).not.toMatch(
    /the secret|the question|helped/,
  );
});

test('S387 metrics have the names, units, labels and buckets of the conventions', async () => {
  await using app = openApp();
  await live(app);
  // Its first event is written while the model works.
  const gate = createGate();
  const late = app.defineAgent({ name: 'late', model: gpt([gate.giving('late')]) });
  const { id } = await late.start('x');
  await eventually(async () => {
    await reader.forceFlush();
    expect(JSON.stringify(exported.getMetrics())).toContain('waymark.event_lag');
  });
  gate.open();
  await late.wait(id);
  // The invocation ends a moment after its run.
  const sums = (name: string): readonly unknown[] =>
    exported
      .getMetrics()
      .at(-1)
      ?.scopeMetrics.flatMap((each) => each.metrics)
      .find(({ descriptor }) => descriptor.name === name)
      ?.dataPoints.map(({ value }) => value) ?? [];
  await eventually(async () => {
    exported.reset();
    await reader.forceFlush();
    expect(new Set(sums('waymark.active_runs'))).toEqual(new Set([0]));
  });
  const found = exported
    .getMetrics()
    .flatMap(({ scopeMetrics }) => scopeMetrics)
    .flatMap((each) => each.metrics);
  const metric = (name: string): HistogramMetricData =>
    must(found.find(({ descriptor }) => descriptor.name === name)) as HistogramMetricData;
  const seconds = [
    0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92,
  ];
  const table = {
    'gen_ai.client.operation.duration': ['s', seconds],
    'gen_ai.client.token.usage': ['{token}', Array.from({ length: 14 }, (_, at) => 4 ** at)],
    'gen_ai.client.operation.time_to_first_chunk': [
      's',
      [0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10],
    ],
    'gen_ai.invoke_agent.duration': [
      's',
      [0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 6.4, 12.8, 25.6, 51.2, 102.4, 204.8, 409.6],
    ],
    'gen_ai.execute_tool.duration': ['s', seconds],
  } as const;
  for (const [name, [unit, buckets]] of Object.entries(table)) {
    const { descriptor, dataPoints } = metric(name);
    expect(descriptor.unit).toBe(unit);
    expect(dataPoints[0]?.value.buckets.boundaries).toEqual(buckets);
  }
  const model = {
    'gen_ai.operation.name': 'chat',
    'gen_ai.provider.name': 'openai',
    'gen_ai.request.model': 'gpt-5',
  };
  const labels = (name: string): unknown[] =>
    metric(name).dataPoints.map((each) => each.attributes);
  expect(labels('gen_ai.client.token.usage')).toEqual(
    expect.arrayContaining([
      { ...model, 'gen_ai.token.type': 'input' },
      { ...model, 'gen_ai.token.type': 'output' },
    ]),
  );
  expect(labels('gen_ai.client.operation.duration')).toEqual(
    expect.arrayContaining([model, { ...model, 'error.type': expect.any(String) }]),
  );
  expect(labels('gen_ai.execute_tool.duration')).toContainEqual({
    'gen_ai.tool.name': 'look',
    'gen_ai.tool.type': 'function',
  });
  expect(labels('gen_ai.invoke_agent.duration')).toContainEqual({
    'gen_ai.operation.name': 'invoke_agent',
    'gen_ai.agent.name': 'chat',
    'gen_ai.request.model': 'gpt-5',
  });
  expect(labels('waymark.turns')).toEqual(
    expect.arrayContaining([
      { 'waymark.agent': 'chat', 'waymark.finish_reason': 'stop' },
      { 'waymark.agent': 'failing', 'waymark.finish_reason': 'failed' },
      { 'waymark.agent': 'slow', 'waymark.finish_reason': 'aborted' },
    ]),
  );
  expect(labels('waymark.event_lag')).toEqual([{ 'waymark.agent': 'late' }]);
  expect(labels('waymark.failures')).toContainEqual(
    expect.objectContaining({ 'waymark.agent': 'failing' }),
  );
});

test('S763 each undo has a span, and is counted once it is done', async () => {
  await using app = openApp();
  let fault: Error | undefined = new Error('closed');
  const book = app.defineTool(
    {
      name: 'book',
      description: 'Books.',
      undo: () => {
        if (fault !== undefined) throw fault;
      },
    },
    () => 'booked',
  );
  const calls = { toolCalls: [{ name: 'book', ref: 'r1' }], usage };
  const desk = app.defineAgent({
    name: 'desk',
    model: gpt(['Hello.', calls, 'Done.']),
    tools: [book],
  });
  const first = await desk.run('Hi');
  await desk.run('Book', { sessionId: first.sessionId });
  await expect(desk.restore(first, { undo: true })).rejects.toMatchObject({ status: 'UNKNOWN' });
  expect(named('undo_tool book').status.code).toBe(2);
  spans.reset();
  fault = undefined;
  await desk.restore(first, { undo: true });
  expect(named('undo_tool book').attributes).toMatchObject({
    'gen_ai.operation.name': 'undo_tool',
    'gen_ai.tool.name': 'book',
    'gen_ai.conversation.id': first.sessionId,
    'session.id': first.sessionId,
    'waymark.agent': 'desk',
  });
  expect(JSON.stringify(named('undo_tool book').attributes)).not.toContain('booked');
  await reader.forceFlush();
  const counted = exported
    .getMetrics()
    .flatMap(({ scopeMetrics }) => scopeMetrics)
    .flatMap(({ metrics: found }) => found)
    .find(({ descriptor }) => descriptor.name === 'waymark.undone_effects');
  expect(counted?.dataPoints).toMatchObject([
    { value: 1, attributes: { 'waymark.agent': 'desk', 'gen_ai.tool.name': 'book' } },
  ]);
});

test('S388 content is opt-in and goes through the transform', async () => {
  await using app = openApp({ telemetry: { content: true } });
  const look = app.defineTool({ name: 'look', description: 'Looks.' }, () => 'the secret');
  const chat = app.defineAgent({
    name: 'chat',
    model: gpt([{ toolCalls: [{ name: 'look', ref: 'r1' }] }, 'the answer']),
    tools: [look],
    transform: {
      state: (state) => JSON.parse(JSON.stringify(state).replaceAll('secret', '***')),
    },
  });
  await chat.run('the question');
  expect(named('execute_tool look').attributes['gen_ai.tool.call.result']).toBe('"the ***"');
  const last = must(spans.getFinishedSpans().findLast(({ name }) => name === 'chat gpt-5'));
  expect(JSON.parse(String(last.attributes['gen_ai.input.messages']))).toEqual([
    { role: 'user', parts: [{ type: 'text', content: 'the question' }] },
    {
      role: 'assistant',
      parts: [{ type: 'tool_call', id: 'r1', name: 'look', arguments: expect.anything() }],
    },
    { role: 'tool', parts: [{ type: 'tool_call_response', id: 'r1', response: 'the ***' }] },
  ]);
  expect(JSON.parse(String(last.attributes['gen_ai.output.messages']))).toEqual([
    { role: 'assistant', parts: [{ type: 'text', content: 'the answer' }], finish_reason: 'stop' },
  ]);
  expect(
    JSON.stringify(spans.getFinishedSpans().map(({ attributes }) => attributes)),
  ).not.toContain('the secret');
});

test('S389 a logger gets one line per turn and one per failure', async () => {
  const lines: { level: string; fields: Record<string, unknown>; message: string }[] = [];
  const log = (level: string) => (fields: object, message: string) =>
    void lines.push({ level, fields: { ...fields }, message });
  const broken = (): never => {
    throw new Error('on purpose');
  };
  await using silent = openApp({ logger: { info: broken, error: broken, debug: broken } });
  await live(silent);
  await using app = openApp({
    logger: { info: log('info'), error: log('error'), debug: log('debug') },
    price: () => ({ USD: 5 }),
  });
  const { sessionId } = await live(app);
  const calls = lines.filter(({ level, fields }) => level === 'debug' && fields.agent === 'chat');
  expect(calls).toHaveLength(3);
  expect(calls[0]).toEqual({
    level: 'debug',
    message: 'model openai.responses/gpt-5: stop',
    fields: {
      agent: 'chat',
      sessionId,
      model: 'openai.responses/gpt-5',
      finishReason: 'stop',
      inputTokens: 10,
      outputTokens: 4,
      cost: { USD: 5 },
    },
  });
  const turns = lines.filter(({ level }) => level !== 'debug');
  expect(turns.find(({ fields }) => fields.agent === 'chat')).toEqual({
    level: 'info',
    message: 'turn 0 of chat: stop',
    fields: {
      agent: 'chat',
      sessionId,
      owner: 'ann',
      turnIndex: 0,
      snapshotId: expect.any(String),
      finishReason: 'stop',
      durationMs: expect.any(Number),
      inputTokens: 40,
      outputTokens: 16,
      cost: { USD: 20 },
    },
  });
  const failed = turns.filter(({ fields }) => fields.agent === 'failing');
  expect(failed.map(({ level }) => level).toSorted()).toEqual(['error', 'info']);
  expect(failed.find(({ level }) => level === 'error')?.fields.err).toBeInstanceOf(Error);
});
