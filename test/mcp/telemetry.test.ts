import { context, trace } from '@opentelemetry/api';
import { AsyncLocalStorageContextManager } from '@opentelemetry/context-async-hooks';
import {
  BasicTracerProvider,
  InMemorySpanExporter,
  type ReadableSpan,
  SimpleSpanProcessor,
} from '@opentelemetry/sdk-trace-base';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type App, memoryStore, waymark } from 'waymark';
import { mcp } from 'waymark/mcp';
import { type RunningServer, serve } from 'waymark/server';
import { scriptedModel } from 'waymark/testing';

const spans = new InMemorySpanExporter();
let remote: App;
let server: RunningServer;

beforeAll(async () => {
  context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable());
  trace.setGlobalTracerProvider(
    new BasicTracerProvider({ spanProcessors: [new SimpleSpanProcessor(spans)] }),
  );
  remote = waymark({
    store: memoryStore(),
    model: scriptedModel({ patterns: [], otherwise: 'Hi.' }),
  });
  remote.defineAgent({ name: 'desk', system: 'Help.' });
  server = await serve(remote, { port: 0, log: () => {}, mcp: true });
});
afterAll(async () => {
  await server.close();
  await remote.close();
  trace.disable();
  context.disable();
});

function named(name: string): ReadableSpan {
  const found = spans.getFinishedSpans().find((span) => span.name === name);
  if (found) return found;
  throw new Error(`No span "${name}" in ${spans.getFinishedSpans().map((span) => span.name)}.`);
}

test('S827 a call of an MCP tool is one trace, with the attributes of both sides', async () => {
  const app = waymark({
    store: memoryStore(),
    model: scriptedModel([
      { toolCalls: [{ name: 'crm_desk', input: { message: 'Hi' } }] },
      'Done.',
    ]),
  });
  const source = mcp('crm', { url: `${server.url}/mcp` });
  const lead = app.defineAgent({ name: 'lead', tools: [source] });
  await lead.run('Ask');
  await app.close();

  const tool = named('execute_tool crm_desk');
  const { port } = new URL(server.url);
  expect(tool.attributes).toMatchObject({
    'gen_ai.operation.name': 'execute_tool',
    'gen_ai.tool.name': 'crm_desk',
    'mcp.method.name': 'tools/call',
    'mcp.protocol.version': expect.stringMatching(/^20\d\d-\d\d-\d\d$/),
    'network.transport': 'tcp',
    'server.address': '127.0.0.1',
    'server.port': Number(port),
  });
  const call = named('tools/call desk');
  expect(call.attributes).toMatchObject({
    'gen_ai.operation.name': 'execute_tool',
    'gen_ai.tool.name': 'desk',
    'mcp.method.name': 'tools/call',
    'jsonrpc.request.id': expect.stringMatching(/./),
    'mcp.protocol.version': tool.attributes['mcp.protocol.version'],
    'network.transport': 'tcp',
  });
  const inner = named('invoke_agent desk');
  expect(call.parentSpanContext?.spanId).toBe(tool.spanContext().spanId);
  expect(inner.spanContext().traceId).toBe(tool.spanContext().traceId);
});

test('S827 a request that is refused has its code, and no name of the client’s choice', async () => {
  spans.reset();
  const rpc = async (method: string, params: object): Promise<void> => {
    const body = JSON.stringify({ jsonrpc: '2.0', id: 7, method, params });
    const headers = { 'content-type': 'application/json', accept: 'application/json' };
    await (await fetch(`${server.url}/mcp`, { method: 'POST', headers, body })).text();
  };
  await rpc('resources/read', { uri: 'waymark://nothing' });
  await rpc('made/up-by-a-client', {});
  expect(named('resources/read').attributes).toMatchObject({
    'mcp.resource.uri': 'waymark://nothing',
    'jsonrpc.request.id': '7',
    'rpc.response.status_code': expect.stringMatching(/^-\d+$/),
  });
  expect(named('request').attributes['mcp.method.name']).toBe('made/up-by-a-client');
});
