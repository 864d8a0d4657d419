import { context, trace } from '@opentelemetry/api';
import { AsyncLocalStorageContextManager } from '@opentelemetry/context-async-hooks';
import { BasicTracerProvider } from '@opentelemetry/sdk-trace-base';
import { afterEach, expect, test } from 'vitest';
import { client } from '../../src/client/index.ts';
import { startLoopback } from './support/loopback.ts';

afterEach(() => {
  trace.disable();
  context.disable();
});

test('a request carries the trace it belongs to', async () => {
  context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable());
  trace.setGlobalTracerProvider(new BasicTracerProvider());
  await using loopback = await startLoopback((run) => run.end());
  const agent = client({ url: loopback.url, agent: 'chat' });
  const span = await trace.getTracer('test').startActiveSpan('caller', async (active) => {
    await agent.runText('Hi');
    active.end();
    return active.spanContext();
  });
  expect(loopback.seen[0]?.headers.traceparent).toBe(`00-${span.traceId}-${span.spanId}-01`);
});

test('without a trace there is no header', async () => {
  await using loopback = await startLoopback((run) => run.end());
  await client({ url: loopback.url, agent: 'chat' }).runText('Hi');
  expect(loopback.seen[0]?.headers.traceparent).toBeUndefined();
});
