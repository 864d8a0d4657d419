import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { getRequestListener } from '@hono/node-server';
import { context, propagation, SpanKind, trace } from '@opentelemetry/api';
import { AsyncLocalStorageContextManager } from '@opentelemetry/context-async-hooks';
import {
  BasicTracerProvider,
  InMemorySpanExporter,
  SimpleSpanProcessor,
} from '@opentelemetry/sdk-trace-base';
import fastify from 'fastify';
import { Hono } from 'hono';
import { afterEach, describe, expect, test } from 'vitest';
import { handler, jsonLines, type LogEntry } from '../../src/server/index.ts';
import { allEvents, createTestApp, get, post, startServer, streamTurn, userInput } from './kit.ts';
import { streamsPieceByPiece } from './piece-by-piece.ts';

const open: Server[] = [];
afterEach(() => {
  for (const server of open.splice(0)) server.close();
});

async function listen(listener: Parameters<typeof createServer>[1]): Promise<string> {
  const server = createServer(listener);
  open.push(server);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

describe('the handler', () => {
  test('is a plain function of a request', async () => {
    const fetch = handler(createTestApp());
    const response = await fetch(
      new Request('http://localhost/agents/chat/turns', {
        method: 'POST',
        headers: { accept: 'text/event-stream' },
        body: JSON.stringify({ input: userInput('count 3') }),
      }),
    );
    const events = await allEvents(response);
    expect(events.at(-1)?.event).toBe('output');
    const foreign = await fetch(new Request('http://example.com/agents'));
    expect(foreign.status).toBe(403);
  });

  test('mounts under a path of another Hono app', async () => {
    const outer = new Hono();
    const mounted = handler(createTestApp());
    outer.mount('/ai', (request) => mounted(request));
    outer.get('/', (c) => c.text('mine'));
    expect(await (await outer.request('http://localhost/')).text()).toBe('mine');
    expect((await outer.request('http://localhost/ai/agents/chat')).status).toBe(200);
    expect((await outer.request('http://localhost/ai/nothing')).status).toBe(404);
  });

  test('mounts inside Express, and streams through it', async () => {
    const app = createTestApp();
    const site = await expressApp();
    site.get('/', (_, response) => void response.send('mine'));
    // #region express
    const agents = handler(app, { basePath: '/ai' });
    const listener = getRequestListener(agents, { overrideGlobalObjects: false });
    site.use((request, response, next) => {
      if (request.path.startsWith('/ai/')) void listener(request, response);
      else next();
    });
    // #endregion
    const url = await listen(site);
    expect(await (await fetch(url)).text()).toBe('mine');
    await streamsPieceByPiece(`${url}/ai`);
    expect((await get(`${url}/ai/nothing`)).status).toBe('NOT_FOUND');
  });

  test('mounts inside Fastify, and streams through it', async () => {
    const app = createTestApp();
    const site = fastify();
    site.get('/', () => 'mine');
    // #region fastify
    const agents = handler(app, { basePath: '/ai' });
    const listener = getRequestListener(agents, { overrideGlobalObjects: false });
    site.register((scope, _options, registered) => {
      // Let the handler read the body.
      scope.removeAllContentTypeParsers();
      scope.addContentTypeParser('*', (_request, _payload, parsed) => parsed(null));
      scope.all('/ai/*', (request, reply) => {
        reply.hijack();
        void listener(request.raw, reply.raw);
      });
      registered();
    });
    // #endregion
    try {
      const url = await site.listen({ port: 0, host: '127.0.0.1' });
      expect(await (await fetch(url)).text()).toBe('mine');
      await streamsPieceByPiece(`${url}/ai`);
      expect((await get(`${url}/ai/nothing`)).status).toBe('NOT_FOUND');
    } finally {
      await site.close();
    }
  });

  test('mounts in a bare Node server', async () => {
    const mounted = handler(createTestApp());
    const url = await listen(getRequestListener(mounted, { overrideGlobalObjects: false }));
    await streamsPieceByPiece(url);
    expect((await fetch(`${url}/api/actions`)).status).toBe(200);
  });
});

describe('the log', () => {
  test('has a line for each request and stream, with ids and no content', async () => {
    const entries: LogEntry[] = [];
    const server = await startServer({ log: (entry) => entries.push(entry) });
    try {
      await allEvents(await streamTurn(server.url, 'count 3'));
      await fetch(`${server.url}/agents/nobody`);
      await post(`${server.url}/agents/chat/turns`, { input: userInput('fail') });
    } finally {
      await server.close();
    }
    expect(entries).toMatchObject([
      { level: 'info', msg: 'listening', url: server.url },
      {
        level: 'info',
        msg: 'request',
        method: 'POST',
        path: '/agents/chat/turns',
        agent: 'chat',
        operation: 'runTurn',
        status: 200,
      },
      { level: 'info', msg: 'stream', end: 'complete', events: 6 },
      { level: 'info', msg: 'request', status: 404 },
      { level: 'error', msg: 'failed', agent: 'chat', phase: 'model', turnIndex: 0 },
      { level: 'info', msg: 'request', status: 200 },
      { level: 'info', msg: 'closed' },
    ]);
    expect(JSON.stringify(entries)).not.toContain('count 3');
    const lines: string[] = [];
    const log = jsonLines((line) => lines.push(line));
    for (const entry of entries) log(entry);
    expect(
      lines.every((line) => line.endsWith('\n') && typeof JSON.parse(line).time === 'number'),
    ).toBe(true);
  });

  test('says what an unknown exception was; the client does not learn it', async () => {
    const entries: LogEntry[] = [];
    const app = createTestApp();
    const broken = {
      ...app,
      agents: () => {
        throw new TypeError('secret of the app');
      },
    };
    const response = await handler(broken, { log: (entry) => entries.push(entry) })(
      new Request('http://localhost/agents'),
    );
    expect(response.status).toBe(500);
    expect(await response.json()).toEqual({
      status: 'INTERNAL',
      message: 'An unexpected error occurred.',
    });
    expect(entries).toMatchObject([
      { level: 'error', msg: 'failed', error: { name: 'TypeError', message: 'secret of the app' } },
      { level: 'error', msg: 'request', status: 500 },
    ]);
  });
});

describe('traces', () => {
  test('join client, server and turn', async () => {
    const exporter = new InMemorySpanExporter();
    const provider = new BasicTracerProvider({
      spanProcessors: [new SimpleSpanProcessor(exporter)],
    });
    trace.setGlobalTracerProvider(provider);
    context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable());
    try {
      const fetch = handler(createTestApp());
      const traceId = 'c'.repeat(32);
      const request = new Request('http://localhost/agents/chat/turns', {
        method: 'POST',
        headers: { traceparent: `00-${traceId}-${'d'.repeat(16)}-01` },
        body: JSON.stringify({ input: userInput('hello') }),
      });
      expect((await fetch(request)).status).toBe(200);
      const spans = exporter.getFinishedSpans();
      const server = spans.find(({ kind }) => kind === SpanKind.SERVER);
      expect(server?.parentSpanContext?.spanId).toBe('d'.repeat(16));
      expect(server?.attributes).toMatchObject({
        'http.request.method': 'POST',
        'http.response.status_code': 200,
      });
      const names = spans
        .filter((span) => span.spanContext().traceId === traceId)
        .map(({ name }) => name);
      expect(names).toEqual(expect.arrayContaining(['invoke_agent chat', 'chat scripted']));
    } finally {
      trace.disable();
      context.disable();
      propagation.disable();
    }
  });
});

interface ExpressApp {
  (request: IncomingMessage, response: ServerResponse): void;
  get(
    path: string,
    handle: (request: unknown, response: { send(text: string): void }) => void,
  ): void;
  use(
    handle: (
      request: IncomingMessage & { readonly path: string },
      response: ServerResponse,
      next: () => void,
    ) => void,
  ): void;
}

// Express comes with the genkit package, without its types.
async function expressApp(): Promise<ExpressApp> {
  const name = 'express';
  const { default: express } = await import(name);
  return express();
}
