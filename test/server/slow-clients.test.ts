import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { once } from 'node:events';
import { Agent, type IncomingMessage, request } from 'node:http';
import { connect, type Socket } from 'node:net';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { WebSocket } from 'ws';
import { eventually } from '../support/eventually.ts';
import { get, post, startServer, userInput } from './kit.ts';

// The server's ends of all connections: a client cannot tell whether the server still holds its own.
// By the port of the client, which a socket no longer knows when it is closed.
const accepted = new Map<number | undefined, Socket>();
const onSocket = (message: unknown): void => {
  const { socket } = message as { socket: Socket };
  accepted.set(socket.remotePort, socket);
};
const held = (): number => [...accepted.values()].filter((socket) => !socket.destroyed).length;

const names = new Map([['Bearer ann', 'ann']]);
const ann = { authorization: 'Bearer ann' };
let server: Awaited<ReturnType<typeof startServer>>;
const clients: { destroy(): void }[] = [];

beforeAll(async () => {
  subscribe('net.server.socket', onSocket);
  server = await startServer({
    auth: (request) => {
      const principal = names.get(request.headers.get('authorization') ?? '');
      return principal === undefined ? undefined : { principal };
    },
    limits: { requestTimeout: 400, authTimeout: 400, stallTimeout: 400, failedAuthPerMinute: 1000 },
  });
});
afterAll(async () => {
  unsubscribe('net.server.socket', onSocket);
  for (const client of clients) client.destroy();
  await server.close();
});

/** A client that never closes its own side. */
function open(text: string): Socket {
  const socket = connect({ port: server.port, host: '127.0.0.1', allowHalfOpen: true });
  socket.on('error', () => {});
  clients.push(socket);
  if (text !== '') socket.write(text);
  return socket;
}

async function portOf(client: Socket): Promise<number | undefined> {
  await once(client, 'connect');
  return client.localPort;
}

/** Sends one byte every few milliseconds, for ever. */
function drip(start: string, byte: string): Socket {
  const socket = open(start);
  const timer = setInterval(() => socket.writable && socket.write(byte), 50);
  socket.on('close', () => clearInterval(timer));
  return socket;
}

const head = (path: string, more = ''): string =>
  `POST ${path} HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer ann\r\n${more}`;
const turns = '/agents/chat/turns';
const upgrade = (path: string): string =>
  `GET ${path} HTTP/1.1\r\nhost: localhost\r\nconnection: upgrade\r\nupgrade: websocket\r\nsec-websocket-version: 13\r\nsec-websocket-key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n`;

const slow: Record<string, () => Socket> = {
  'says nothing': () => open(''),
  'stops within the request line': () => open('POST /agen'),
  'stops within the headers': () => open(head(turns)),
  'stops within the headers and ends its side': () => open(head(turns)).end(),
  'stops before the body': () => open(head(turns, 'content-length: 100\r\n\r\n')),
  'stops within the body': () => open(head(turns, 'content-length: 100\r\n\r\n{"input"')),
  'stops within the body and ends its side': () =>
    open(head(turns, 'content-length: 100\r\n\r\n{"input"')).end(),
  'stops within a piece of the body': () =>
    open(head(turns, 'transfer-encoding: chunked\r\n\r\n64\r\n{"input"')),
  'stops within the body of an unknown route': () =>
    open(head('/nowhere', 'content-length: 100\r\n\r\n{')),
  'stops within the body without being known': () =>
    open(`POST ${turns} HTTP/1.1\r\nhost: localhost\r\ncontent-length: 100\r\n\r\n{`),
  'waits to be told to go on': () =>
    open(head(turns, 'expect: 100-continue\r\ncontent-length: 100\r\n\r\n')),
  'drips headers': () => drip(head(turns, 'x: '), 'y'),
  'drips a body': () => drip(head(turns, 'content-length: 5000\r\n\r\n'), ' '),
  'drips a body in pieces': () =>
    drip(head(turns, 'transfer-encoding: chunked\r\n\r\n'), '1\r\n \r\n'),
  'drips a body to an unknown route': () =>
    drip(head('/nowhere', 'content-length: 5000\r\n\r\n'), ' '),
  'upgrades to nothing': () => open(upgrade('/agents')),
  'upgrades and says nothing': () => open(upgrade('/agents/chat/connect')),
  'upgrades and drips a frame': () => drip(upgrade('/agents/chat/connect'), '\x81'),
  'sends what is not HTTP': () => open('hello\r\n\r\n'),
};

describe('a client that', () => {
  test.concurrent.each(Object.entries(slow))('%s is cut', async (_, start) => {
    const ports = await Promise.all(Array.from({ length: 5 }, () => portOf(start())));
    await eventually(() => ports.every((port) => accepted.get(port)?.destroyed ?? false));
  });

  test.each([
    ['does not read its answer', 0],
    ['reads the first of several answers and then nothing', 4_001_000],
  ])('%s is cut', async (_, length) => {
    // Enough that the answers do not fit into what the operating system holds. Sent in process: the server's time limits are short.
    const large = 'x'.repeat(4_000_000);
    const sessionId = `large-${length}`;
    await server.app.agent('chat').runText(large, { sessionId, owner: 'ann' });
    const before = held();
    for (let at = 0; at < 3; at++) {
      const ask = head(`/agents/chat/sessions/${sessionId}`, '\r\n').replace('POST', 'GET');
      const client = open(ask.repeat(8)).pause();
      if (length > 0) readOnly(client, length);
    }
    await eventually(() => expect(held()).toBeGreaterThan(before));
    await eventually(() => expect(held()).toBeLessThanOrEqual(before));
  });
});

/** Reads so many bytes, and then no more. */
function readOnly(client: Socket, length: number): void {
  let left = length;
  client.on('data', (piece) => {
    left -= piece.length;
    if (left <= 0) client.pause();
  });
}

describe('clients that are not known', () => {
  test('have a small pool, in which the oldest makes room; those that are known keep theirs', async () => {
    const small = await startServer({
      auth: (request) => {
        const principal = names.get(request.headers.get('authorization') ?? '');
        return principal === undefined ? undefined : { principal };
      },
      limits: { unauthenticated: 8, unauthenticatedPerAddress: 5 },
    });
    const dial = (headers = {}): WebSocket => {
      const socket = new WebSocket(`${small.url.replace('http', 'ws')}/agents/chat/connect`, {
        headers,
      });
      socket.on('error', () => {});
      clients.push({ destroy: () => socket.terminate() });
      return socket;
    };
    try {
      const known = dial(ann);
      await once(known, 'open');
      known.send('{"type":"init","ref":1}');
      await once(known, 'message');
      const strangers: WebSocket[] = [];
      for (let at = 0; at < 20; at++) {
        const socket = dial();
        strangers.push(socket);
        await once(socket, 'open');
      }
      const openOnes = (): number[] =>
        strangers.flatMap(({ readyState, OPEN }, at) => (readyState === OPEN ? [at] : []));
      await eventually(() => expect(openOnes()).toEqual([15, 16, 17, 18, 19]));
      expect(known.readyState).toBe(known.OPEN);
      // A client that says who it is gets through the whole time.
      const response = await post(`${small.url}${turns}`, { input: userInput('hello') }, ann);
      expect(response.status).toBe(200);
    } finally {
      await small.close();
    }
  });

  test('may be many from one address in the same moment, as behind a proxy', async () => {
    const small = await startServer({ limits: { unauthenticatedPerAddress: 2 } });
    try {
      const agent = new Agent({ keepAlive: true, maxSockets: 200 });
      const answers = Array.from({ length: 200 }, async () => {
        const asked = request(`${small.url}/agents`, { agent });
        asked.end();
        const [response] = (await once(asked, 'response')) as [IncomingMessage];
        response.resume();
        return response.statusCode;
      });
      expect(new Set(await Promise.all(answers))).toEqual(new Set([200]));
      agent.destroy();
    } finally {
      await small.close();
    }
  });

  test('hold a limited number of bytes together', async () => {
    const small = await startServer({
      auth: () => new Promise(() => {}),
      limits: { bodyBytes: 1_000_000, authTimeout: 60_000 },
    });
    try {
      const sockets = await Promise.all(
        Array.from({ length: 8 }, async () => {
          const socket = new WebSocket(`${small.url.replace('http', 'ws')}/agents/chat/connect`);
          socket.on('error', () => {});
          clients.push({ destroy: () => socket.terminate() });
          await once(socket, 'open');
          return socket;
        }),
      );
      for (const socket of sockets) socket.send(JSON.stringify('x'.repeat(900_000)));
      const openOnes = (): number =>
        sockets.filter(({ readyState, OPEN }) => readyState === OPEN).length;
      await eventually(() => expect(openOnes()).toBeLessThanOrEqual(4));
    } finally {
      await small.close();
    }
  });
});

describe('failed authentications', () => {
  test('are throttled per address, without asking the hook and without locking out known clients', async () => {
    let asked = 0;
    const guarded = await startServer({
      auth: (request) => {
        asked++;
        const principal = names.get(request.headers.get('authorization') ?? '');
        return principal === undefined ? undefined : { principal };
      },
      clientAddress: (request) => request.headers.get('x-real-ip') ?? undefined,
      limits: { failedAuthPerMinute: 5 },
    });
    const call = async (authorization: string, address: string): Promise<Response> =>
      fetch(`${guarded.url}/agents`, { headers: { authorization, 'x-real-ip': address } });
    try {
      expect((await call('Bearer ann', '10.0.0.1')).status).toBe(200);
      for (let at = 0; at < 5; at++) {
        expect((await call(`Bearer guess-${at}`, '10.0.0.1')).status).toBe(401);
      }
      asked = 0;
      const refused = await call('Bearer guess-6', '10.0.0.1');
      expect(refused.status).toBe(429);
      expect(Number(refused.headers.get('retry-after'))).toBeGreaterThan(0);
      expect((await refused.json()).message).toContain('failed authentications');
      expect(asked).toBe(0);
      expect((await call('Bearer ann', '10.0.0.1')).status).toBe(200);
      expect((await call('Bearer guess-7', '10.0.0.2')).status).toBe(401);
      // A WebSocket is another way to guess.
      const socket = new WebSocket(`${guarded.url.replace('http', 'ws')}/agents/chat/connect`, {
        headers: { 'x-real-ip': '10.0.0.1' },
      });
      await once(socket, 'open');
      socket.send('{"type":"init","authorization":"Bearer guess-8"}');
      const [data] = await once(socket, 'message');
      expect(JSON.parse(String(data))).toMatchObject({ error: { status: 'RESOURCE_EXHAUSTED' } });
      expect((await get(`${guarded.url}/healthz`)).status).toBe('ok');
    } finally {
      await guarded.close();
    }
  });
});
