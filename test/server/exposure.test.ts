import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createServer, request as httpRequest } from 'node:http';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { WebSocket } from 'ws';
import { memoryStore } from '../../src/index.ts';
import { handler } from '../../src/server/index.ts';
import { createTestApp, get, post, startServer, streamTurn, userInput } from './kit.ts';

let server: Awaited<ReturnType<typeof startServer>>;
let url: string;
let folder: string;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'waymark-exposure-'));
  await writeFile(join(folder, 'index.html'), '<!doctype html><title>Studio</title>');
  server = await startServer({ studio: folder });
  ({ url } = server);
});
afterAll(async () => {
  await server.close();
  await rm(folder, { recursive: true });
});

describe('without auth, a request that came through a proxy', () => {
  const headers = [
    ['forwarded', 'for=203.0.113.7'],
    ['x-forwarded-for', '203.0.113.7'],
    ['x-forwarded-for', '127.0.0.1, 203.0.113.7'],
    ['x-forwarded-host', 'agents.example'],
    ['x-forwarded-proto', 'https'],
    ['x-forwarded-port', '443'],
    ['x-forwarded-server', 'edge-1'],
    ['x-real-ip', '203.0.113.7'],
    ['via', '1.1 proxy'],
    ['cf-connecting-ip', '203.0.113.7'],
    ['true-client-ip', '203.0.113.7'],
    ['fastly-client-ip', '203.0.113.7'],
    ['x-azure-clientip', '203.0.113.7'],
    ['x-amzn-trace-id', 'Root=1-2'],
    ['cdn-loop', 'cdn'],
  ] as const;

  test.each(headers)('is refused, and says what to do (%s: %s)', async (name, value) => {
    const response = await fetch(`${url}/agents`, { headers: { [name]: value } });
    expect(response.status).toBe(403);
    expect(await response.json()).toMatchObject({
      status: 'PERMISSION_DENIED',
      message: expect.stringMatching(/proxy.*auth hook/),
    });
  });

  test('is refused as a turn, as a WebSocket, and by a mounted handler', async () => {
    const proxied = { 'x-forwarded-for': '203.0.113.7' };
    const turn = await post(`${url}/agents/chat/turns`, { input: userInput('x') }, proxied);
    expect(turn.status).toBe(403);
    const socket = new WebSocket(`${url.replace('http', 'ws')}/agents/chat/connect`, {
      headers: proxied,
    });
    socket.on('error', () => {});
    const [, answer] = await once(socket, 'unexpected-response');
    expect(answer.statusCode).toBe(403);
    const mounted = handler(createTestApp());
    const asked = new Request('http://localhost/agents', { headers: proxied });
    expect((await mounted(asked)).status).toBe(403);
  });

  test('through a real one that rewrites the host is refused, and answered with auth', async () => {
    const guarded = await startServer({ auth: () => ({ principal: 'all' }) });
    const through = async (port: number): Promise<number> => {
      const proxy = createServer((incoming, outgoing) => {
        const host = `127.0.0.1:${port}`;
        const passed = { ...incoming.headers, host, 'x-forwarded-for': '203.0.113.7' };
        const next = httpRequest(
          { port, host: '127.0.0.1', path: incoming.url, headers: passed },
          (response) => {
            outgoing.writeHead(response.statusCode ?? 0, response.headers);
            response.pipe(outgoing);
          },
        );
        incoming.pipe(next);
      });
      proxy.listen(0, '127.0.0.1');
      await once(proxy, 'listening');
      const { port: at } = proxy.address() as { port: number };
      const { status } = await fetch(`http://127.0.0.1:${at}/agents`);
      proxy.close();
      proxy.closeAllConnections();
      return status;
    };
    expect(await through(server.port)).toBe(403);
    expect(await through(guarded.port)).toBe(200);
    await guarded.close();
  });

  test('of a development server on this machine passes', async () => {
    const local = {
      'x-forwarded-for': '::1',
      'x-forwarded-host': 'localhost:3000',
      'x-forwarded-proto': 'http',
      'x-forwarded-port': '3000',
    };
    expect((await fetch(`${url}/agents`, { headers: local })).status).toBe(200);
    const named = { ...local, 'x-forwarded-host': 'agents.example' };
    expect((await fetch(`${url}/agents`, { headers: named })).status).toBe(403);
  });
});

describe('every answer', () => {
  const answers: Record<string, () => Promise<Response>> = {
    JSON: () => fetch(`${url}/agents`),
    'an error': () => post(`${url}/agents/chat/turns`, '{'),
    'an unknown route': () => fetch(`${url}/nowhere`),
    'a refused host': () => handler(createTestApp())(new Request('http://evil.example/agents')),
    'a stream': () => streamTurn(url, 'hello'),
    'a Genkit stream': () => post(`${url}/genkit/chat?stream=true`, { data: userInput('x') }),
    'a UI stream': () =>
      post(`${url}/ui/chat`, {
        id: 'ui',
        messages: [{ role: 'user', parts: [{ type: 'text', text: 'x' }] }],
      }),
    'lines of reflection': () =>
      post(`${url}/api/runAction?stream=true`, { key: '/agent/chat', input: userInput('x') }),
    'no content': () => fetch(`${url}/ui/chat/none/stream`),
    'plain text': () => fetch(`${url}/api/__health`),
    'a redirect': () => fetch(`${url}/`, { headers: { accept: 'text/html' }, redirect: 'manual' }),
    'the studio': () => fetch(`${url}/studio/`),
    'a missing file of the studio': () => fetch(`${url}/studio/none.js`),
    healthz: () => fetch(`${url}/healthz`),
    readyz: () => fetch(`${url}/readyz`),
    'openapi.json': () => fetch(`${url}/openapi.json`),
  };

  test.each(Object.entries(answers))(
    'has the headers that protect browsers (%s)',
    async (_, ask) => {
      const response = await ask();
      await response.text();
      const header = (name: string): string => response.headers.get(name) ?? '';
      expect(header('x-content-type-options')).toBe('nosniff');
      expect(header('x-frame-options')).toBe('DENY');
      expect(header('referrer-policy')).toBe('no-referrer');
      expect(header('cross-origin-opener-policy')).toBe('same-origin');
      expect(header('cross-origin-resource-policy')).toBe('same-origin');
      expect(header('content-security-policy')).toContain("default-src 'none'");
      expect(header('content-security-policy')).toContain("frame-ancestors 'none'");
      expect(header('cache-control')).toMatch(/^no-(?:store|cache)/);
    },
  );

  test('has them also where no request was understood, or an upgrade was refused', async () => {
    const raw = (text: string): Promise<string> =>
      new Promise((resolve) => {
        let answer = '';
        const socket = connect(server.port, '127.0.0.1', () => socket.write(text));
        socket.on('data', (piece) => {
          answer += piece;
        });
        socket.on('close', () => resolve(answer));
      });
    const bad = await raw('hello\r\n\r\n');
    const upgrade =
      'GET /agents HTTP/1.1\r\nhost: localhost\r\nconnection: upgrade\r\nupgrade: websocket\r\n\r\n';
    for (const answer of [bad, await raw(upgrade)]) {
      expect(answer).toMatch(/^HTTP\/1\.1 40[04] /);
      expect(answer).toContain('x-content-type-options: nosniff');
      expect(answer).toContain("frame-ancestors 'none'");
      expect(answer).toContain('cache-control: no-store');
    }
  });

  test('of the studio loads pictures of the page itself only', async () => {
    const policy = (await fetch(`${url}/studio/`)).headers.get('content-security-policy');
    expect(policy).toMatch(/img-src 'self' data: blob:;/);
  });
});

describe('health', () => {
  test('asks the engine and the store once, however many ask', async () => {
    const store = memoryStore();
    let reads = 0;
    let statuses = 0;
    const app = createTestApp({
      store: {
        ...store,
        getSnapshot: (...given: Parameters<typeof store.getSnapshot>) => {
          reads++;
          return store.getSnapshot(...given);
        },
      },
    });
    const engine = {
      status: async () => {
        statuses++;
        return { waiting: 0 };
      },
    };
    const time = { now: 1_000_000 };
    const answer = handler(
      { agents: () => app.agents(), engine },
      { clock: { now: () => time.now, sleep: async () => {}, every: () => () => {} } },
    );
    const ask = (path: string): Promise<Response> => answer(new Request(`http://localhost${path}`));
    const many = await Promise.all(
      Array.from({ length: 50 }, () => [ask('/healthz'), ask('/readyz')]).flat(),
    );
    expect(new Set(many.map(({ status }) => status))).toEqual(new Set([200]));
    expect([statuses, reads]).toEqual([1, 1]);
    time.now += 2000;
    await ask('/healthz');
    await ask('/readyz');
    expect([statuses, reads]).toEqual([2, 2]);
    await app.close();
  });

  test('readyz is 503 while the store fails, and healthz is not', async () => {
    const store = memoryStore();
    let fails = true;
    const app = createTestApp({
      store: {
        ...store,
        getSnapshot: async (...given: Parameters<typeof store.getSnapshot>) => {
          if (fails) throw new Error('password=secret');
          return store.getSnapshot(...given);
        },
      },
    });
    const logged: string[] = [];
    const time = { now: 1_000_000 };
    const clock = { now: () => time.now, sleep: async () => {}, every: () => () => {} };
    const answer = handler(app, { clock, log: (entry) => logged.push(JSON.stringify(entry)) });
    const ask = (path: string): Promise<Response> => answer(new Request(`http://localhost${path}`));
    const failed = await ask('/readyz');
    expect(failed.status).toBe(503);
    const body = await failed.text();
    expect(body).toContain('"reason":"store"');
    expect(body).not.toContain('secret');
    expect(logged.join()).toContain('password=secret');
    expect((await ask('/healthz')).status).toBe(200);
    fails = false;
    time.now += 2000;
    expect(await (await ask('/readyz')).json()).toEqual({ status: 'ready' });
    await app.close();
  });

  test('readyz reports that a server is draining, on new connections too', async () => {
    const draining = await startServer({ grace: 20_000 });
    const chat = draining.app.agent('chat');
    const stream = await streamTurn(draining.url, 'hang', { init: { sessionId: 'last' } });
    expect((await fetch(`${draining.url}/readyz`)).status).toBe(200);
    const closed = draining.close();
    // A connection of its own for each.
    const fresh = { headers: { connection: 'close' } };
    const answer = await fetch(`${draining.url}/readyz`, fresh);
    expect(answer.status).toBe(503);
    expect(await answer.json()).toMatchObject({ details: { reason: 'draining' } });
    expect((await fetch(`${draining.url}/healthz`, fresh)).status).toBe(503);
    expect((await fetch(`${draining.url}/agents`, fresh)).status).toBe(503);
    const { running } = (await chat.getSession('last')) ?? {};
    await chat.abort(running ?? '');
    await stream.text();
    await closed;
    await expect(get(`${draining.url}/readyz`)).rejects.toThrow();
  });
});
