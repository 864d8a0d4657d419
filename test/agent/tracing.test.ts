import { context, SpanStatusCode, trace } from '@opentelemetry/api';
import { AsyncLocalStorageContextManager } from '@opentelemetry/context-async-hooks';
import {
  BasicTracerProvider,
  InMemorySpanExporter,
  type ReadableSpan,
  SimpleSpanProcessor,
} from '@opentelemetry/sdk-trace-base';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { scriptedModel } from '../../src/testing/scripted-model.ts';
import { must, openApp, say } from './support/kit.ts';

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

interface Tree {
  [name: string]: Tree;
}

/** The spans by their names, each under its parent. */
function treeOf(spans: readonly ReadableSpan[], parentId?: string): Tree {
  const own = spans
    .filter(({ parentSpanContext }) => parentSpanContext?.spanId === parentId)
    .toSorted((a, b) => a.startTime[0] - b.startTime[0] || a.startTime[1] - b.startTime[1]);
  return Object.fromEntries(
    own.map((span, at) => [
      own.findIndex(({ name }) => name === span.name) === at ? span.name : `${span.name} #${at}`,
      treeOf(spans, span.spanContext().spanId),
    ]),
  );
}

test('S129 S130 a span for the invocation, each turn, each model call and each tool, with ids only', async () => {
  await using app = openApp();
  const look = app.defineTool({ name: 'look', description: 'Looks.' }, (_, { session }) => {
    session?.setCustom('a secret of the state');
    return 'a secret of the tool';
  });
  const model = scriptedModel([
    { toolCalls: [{ name: 'look', ref: 'r' }] },
    'done',
    'a secret of the model',
  ]);
  const chat = app.defineAgent({ name: 'chat', description: 'Chats.', model, tools: [look] });
  const connection = chat.streamBidi();
  await connection.sendText('a secret of the user');
  await connection.sendText('b');
  const { sessionId, snapshotIds = [] } = await connection.output();
  const spans = exporter.getFinishedSpans();
  expect(treeOf(spans)).toEqual({
    'invoke_agent chat': {
      'turn 0': { 'chat scripted': {}, 'execute_tool look': {}, 'chat scripted #2': {} },
      'turn 1': { 'chat scripted': {} },
    },
  });
  const named = (name: string): ReadableSpan => must(spans.find((span) => span.name === name));
  expect(named('invoke_agent chat').attributes).toMatchObject({
    'gen_ai.operation.name': 'invoke_agent',
    'gen_ai.agent.name': 'chat',
    'gen_ai.conversation.id': sessionId,
    'waymark.session.id': sessionId,
    'genkit:metadata:agent': 'chat',
  });
  for (const [at, snapshotId] of snapshotIds.entries()) {
    expect(named(`turn ${at}`).attributes).toMatchObject({
      'waymark.session.id': sessionId,
      'waymark.snapshot.id': snapshotId,
      'genkit:metadata:snapshotId': snapshotId,
      'genkit:metadata:agent': 'chat',
      'waymark.turn.index': at,
    });
  }
  const everything = JSON.stringify(
    spans.map(({ name, attributes, events }) => [name, attributes, events]),
  );
  expect(everything).not.toContain('secret');
});

test('S129 S137 S34 nothing is traced before the first input, and of a connection without one nothing at all', async () => {
  await using app = openApp();
  const chat = app.defineAgent({ name: 'chat', model: scriptedModel(['one', 'two']) });
  const before = await chat.runText('x');
  exporter.reset();
  await chat.streamBidi({ snapshotId: must(before.snapshotId) }).output();
  const unknown = '01890000-0000-7000-8000-00000000000a';
  await chat.runText('y', { snapshotId: unknown }).catch(() => {});
  expect(exporter.getFinishedSpans()).toEqual([]);
  const connection = chat.streamBidi();
  await new Promise((resolve) => setTimeout(resolve, 20));
  const sent = Date.now();
  await connection.sendText('z');
  await connection.output();
  const root = must(exporter.getFinishedSpans().find(({ name }) => name === 'invoke_agent chat'));
  const [seconds, nanos] = root.startTime;
  expect(seconds * 1_000 + nanos / 1e6).toBeGreaterThanOrEqual(sent - 5);
});

test('S130 S147 a failed turn and its invocation are marked and record what was thrown', async () => {
  await using app = openApp();
  const agent = app.defineCustomAgent({ name: 'custom' }, (session) =>
    session.run(() => {
      throw new TypeError('my bug is here');
    }),
  );
  const { sessionId } = await agent.runText('x', { throwOnError: false });
  const { items } = await agent.listSnapshots(sessionId, { includeOrphaned: true });
  const [failed] = items;
  for (const name of ['turn 0', 'invoke_agent custom']) {
    const span = must(exporter.getFinishedSpans().find((each) => each.name === name));
    expect(span.status).toEqual({ code: SpanStatusCode.ERROR, message: 'my bug is here' });
    expect(span.events.map((event) => event.name)).toEqual(['exception']);
    expect(span.events[0]?.attributes).toMatchObject({
      'exception.type': 'TypeError',
      'exception.message': 'my bug is here',
      'exception.stacktrace': expect.stringContaining('tracing.test.ts'),
    });
    expect(span.attributes).toMatchObject({
      'error.type': 'INTERNAL',
      'waymark.snapshot.id': must(failed).snapshotId,
      'genkit:metadata:snapshotId': must(failed).snapshotId,
    });
  }
});

test('S147 the exception of a model is recorded with its causes in the spans that it passes', async () => {
  await using app = openApp();
  const model = app.defineModel({ name: 'own' }, () => {
    throw new RangeError('out of range');
  });
  await app.defineAgent({ name: 'chat', model }).runText('x', { throwOnError: false });
  const spans = exporter.getFinishedSpans();
  expect(spans.map(({ name, status }) => [name, status.code])).toEqual([
    ['chat own', SpanStatusCode.ERROR],
    ['turn 0', SpanStatusCode.ERROR],
    ['invoke_agent chat', SpanStatusCode.ERROR],
  ]);
  for (const { events } of spans) {
    expect(events).toHaveLength(1);
    expect(events[0]?.attributes).toMatchObject({
      'exception.type': 'RangeError',
      'exception.message': 'out of range',
      'exception.stacktrace': expect.stringMatching(
        /^WaymarkError INTERNAL: Model "own" failed: out of range\nCaused by: RangeError: out of range\n {4}at /,
      ),
    });
  }
});

test('S147 the span of a turn names every snapshot that was made within it', async () => {
  await using app = openApp();
  const look = app.defineTool({ name: 'look', description: 'Looks.' }, () => 'seen');
  const model = scriptedModel([
    { toolCalls: [{ name: 'look' }] },
    'done',
    { toolCalls: [{ name: 'look' }] },
    { error: new Error('on purpose') },
  ]);
  const chat = app.defineAgent({ name: 'chat', model, tools: [look], snapshot: 'always' });
  const { sessionId } = await chat.runText('x');
  await chat.runText('y', { sessionId, throwOnError: false });
  const { items } = await chat.listSnapshots(sessionId, { includeOrphaned: true });
  expect(items.map(({ event, status }) => [event, status])).toEqual([
    ['toolIterationEnd', 'succeeded'],
    ['turnEnd', 'succeeded'],
    ['toolIterationEnd', 'succeeded'],
    ['turnEnd', 'failed'],
  ]);
  const ids = items.map(({ snapshotId }) => snapshotId);
  const turns = exporter.getFinishedSpans().filter(({ name }) => name.startsWith('turn '));
  expect(turns.map(({ attributes }) => attributes['waymark.snapshot.ids'])).toEqual([
    ids.slice(0, 2),
    ids.slice(2),
  ]);
  expect(turns.map(({ attributes }) => attributes['waymark.snapshot.id'])).toEqual([
    ids[1],
    ids[3],
  ]);
});

test('S129 S147 a detached run and one that was taken over are traced as invocations', async () => {
  await using app = openApp();
  const chat = app.defineAgent({ name: 'chat', model: scriptedModel(['one']) });
  const { snapshotId = '' } = await chat.run({ ...say('x'), detach: true });
  await chat.wait(snapshotId);
  await app.close();
  expect(treeOf(exporter.getFinishedSpans())).toEqual({
    'invoke_agent chat': { 'turn 0': { 'chat scripted': {} } },
  });
  const root = must(exporter.getFinishedSpans().find(({ name }) => name === 'invoke_agent chat'));
  expect(root.attributes).toMatchObject({ 'waymark.snapshot.id': snapshotId });
  const turn = must(exporter.getFinishedSpans().find(({ name }) => name === 'turn 0'));
  expect(turn.attributes).toMatchObject({
    'waymark.snapshot.id': snapshotId,
    'waymark.snapshot.ids': [snapshotId],
  });
});
