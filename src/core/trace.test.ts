import { context, propagation, trace } from '@opentelemetry/api';
import { AsyncLocalStorageContextManager } from '@opentelemetry/context-async-hooks';
import {
  BasicTracerProvider,
  InMemorySpanExporter,
  type ReadableSpan,
  SimpleSpanProcessor,
} from '@opentelemetry/sdk-trace-base';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { WaymarkError } from './error.ts';
import { addSpanSink, extractTrace, injectTrace, inSpan, type Span } from './trace.ts';
import { currentTrace } from './trace-context.ts';
import { attributes, genAi, operations } from './trace-names.ts';

const traceparent = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01';

describe('without a tracer', () => {
  test('the work runs, and its span does nothing', async () => {
    const seen: Span[] = [];
    const result = inSpan('chat x', { attributes: { a: 1 } }, (span) => {
      span.setAttributes({ b: 2 });
      span.recordError(new Error('x'));
      seen.push(span);
      return 5;
    });
    expect(result).toBe(5);
    expect(seen[0]?.recording).toBe(false);
    expect(seen[0]?.context()).toBeUndefined();
    expect(currentTrace()).toBeUndefined();
    const headers = {};
    injectTrace(headers);
    expect(headers).toEqual({});
    await expect(inSpan('x', {}, () => Promise.reject(new Error('through')))).rejects.toThrow(
      'through',
    );
  });

  test('the OpenTelemetry API is not loaded', () => {
    const { spawnSync } = process.getBuiltinModule('node:child_process');
    const module = JSON.stringify(new URL('./trace.ts', import.meta.url).href);
    const script = `const { inSpan } = await import(${module}); inSpan('x', {}, () => 1);
      const { createRequire } = process.getBuiltinModule('node:module');
      console.log(Object.keys(createRequire(${module}).cache).some((path) => path.includes('opentelemetry')));`;
    const run = spawnSync(process.execPath, ['--input-type=module', '-e', script], {
      encoding: 'utf8',
    });
    expect(run.stdout).toBe('false\n');
  });
});

describe('with a provider', () => {
  const exporter = new InMemorySpanExporter();
  const spans = (): readonly ReadableSpan[] => exporter.getFinishedSpans();
  const named = (name: string): ReadableSpan => {
    const span = spans().find((candidate) => candidate.name === name);
    if (!span) throw new Error(`No span ${name}.`);
    return span;
  };

  beforeEach(() => {
    exporter.reset();
    context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable());
    trace.setGlobalTracerProvider(
      new BasicTracerProvider({ spanProcessors: [new SimpleSpanProcessor(exporter)] }),
    );
  });

  afterEach(() => {
    trace.disable();
    context.disable();
    propagation.disable();
  });

  test('S482 content reaches listeners in this process, and no exporter', async () => {
    const seen: unknown[] = [];
    const remove = addSpanSink({ started() {}, ended: ({ content }) => seen.push(content) });
    await inSpan('chat x', {}, async (span) => span.setContent({ request: 'private words' }));
    remove();
    expect(seen).toEqual([{ request: 'private words' }]);
    const { attributes: exported, events } = named('chat x');
    expect(JSON.stringify([exported, events])).not.toContain('private');
  });

  test('spans nest through awaits and carry their attributes', async () => {
    await inSpan(
      'invoke_agent helper',
      { attributes: { [genAi.operation]: operations.invokeAgent } },
      async (span) => {
        span.setAttributes({
          [attributes.sessionId]: 's1',
          [genAi.finishReasons]: ['stop'],
          unset: undefined,
        });
        await null;
        await inSpan('chat model', { kind: 'client' }, async () => {});
      },
    );
    const [inner, outer] = [named('chat model'), named('invoke_agent helper')];
    expect(inner.parentSpanContext?.spanId).toBe(outer.spanContext().spanId);
    expect(inner.kind).toBe(2);
    expect(outer.kind).toBe(0);
    expect(outer.attributes).toEqual({
      'gen_ai.operation.name': 'invoke_agent',
      'waymark.session.id': 's1',
      'gen_ai.response.finish_reasons': ['stop'],
    });
    expect(outer.instrumentationScope.name).toBe('waymark');
    expect(outer.status.code).toBe(0);
  });

  test('a span ends with synchronous work and gives its result', () => {
    expect(inSpan('sync', {}, () => 3)).toBe(3);
    expect(named('sync').ended).toBe(true);
  });

  test.each<[string, () => unknown]>([
    [
      'thrown',
      () => {
        throw new WaymarkError('NOT_FOUND', 'No such thing.');
      },
    ],
    ['rejected', () => Promise.reject(new WaymarkError('NOT_FOUND', 'No such thing.'))],
  ])('a %s error is recorded once and comes through', async (_, work) => {
    await expect((async () => inSpan('failing', {}, work))()).rejects.toThrow('No such thing.');
    const span = named('failing');
    expect(span.status).toEqual({ code: 2, message: 'No such thing.' });
    expect(span.attributes).toEqual({ 'error.type': 'NOT_FOUND' });
    expect(span.events).toHaveLength(1);
    expect(span.events[0]?.attributes).toMatchObject({ 'exception.type': 'WaymarkError' });
  });

  test('an error that is a result is recorded without being thrown', () => {
    inSpan('turn', {}, (span) => span.recordError('just text'));
    expect(named('turn').status).toEqual({ code: 2, message: 'just text' });
  });

  test('a trace goes over in headers and back', () => {
    const headers: Record<string, string> = {};
    inSpan('client', {}, (span) => {
      injectTrace(headers);
      expect(headers).toEqual({ ...span.context() });
      expect(currentTrace()).toEqual(span.context());
    });
    const received = new Headers(headers);
    inSpan('server', { kind: 'server', parent: extractTrace(received) }, () => {});
    const [client, server] = [named('client'), named('server')];
    expect(server.spanContext().traceId).toBe(client.spanContext().traceId);
    expect(server.parentSpanContext).toMatchObject({
      spanId: client.spanContext().spanId,
      isRemote: true,
    });
  });

  test('the state of a trace goes along', () => {
    const parent = { traceparent, tracestate: 'vendor=1,other=2' };
    inSpan('server', { parent }, () => {
      const headers = new Headers();
      injectTrace(headers);
      expect(headers.get('tracestate')).toBe('vendor=1,other=2');
      expect(headers.get('traceparent')).toMatch(
        /^00-0af7651916cd43dd8448eb211c80319c-[\da-f]{16}-01$/,
      );
    });
    expect(named('server').parentSpanContext?.spanId).toBe('b7ad6b7169203331');
  });

  test('an unsampled parent keeps its children unrecorded', () => {
    const parent = { traceparent: traceparent.replace(/01$/, '00') };
    inSpan('quiet', { parent }, (span) => expect(span.recording).toBe(false));
    expect(spans()).toHaveLength(0);
  });

  test('a parent that is not one is left out', () => {
    inSpan('root', { parent: { traceparent: 'nonsense' } }, () => {});
    expect(named('root').parentSpanContext).toBeUndefined();
  });
});

describe('extractTrace', () => {
  test.each<[string, Parameters<typeof extractTrace>[0]]>([
    ['Headers', new Headers({ Traceparent: traceparent })],
    ['a record', { traceparent }],
    ['lists', { traceparent: [traceparent] }],
  ])('reads %s', (_, headers) => {
    expect(extractTrace(headers)).toEqual({ traceparent });
  });

  test('reads a newer version with more fields', () => {
    const newer = `${traceparent.replace(/^00/, '01')}-what-comes`;
    expect(extractTrace({ traceparent: newer })).toEqual({ traceparent: newer });
  });

  test.each([
    undefined,
    '',
    'x'.repeat(100_000),
    traceparent.toUpperCase(),
    `${traceparent}-more`,
    traceparent.replace(/^00/, 'ff'),
    traceparent.replace('0af7651916cd43dd8448eb211c80319c', '0'.repeat(32)),
    traceparent.replace('b7ad6b7169203331', '0'.repeat(16)),
  ])('does not take %.60s', (header) => {
    expect(extractTrace({ traceparent: header, tracestate: 'a=1' })).toBeUndefined();
  });
});
