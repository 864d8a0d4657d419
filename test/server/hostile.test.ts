import { once } from 'node:events';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { WebSocket } from 'ws';
import { systemClock } from '../../src/core/time.ts';
import { eventually } from '../support/eventually.ts';
import { get, post, startServer, userInput } from './kit.ts';

// Every timer that the server has running.
let timers = 0;
const clock: typeof systemClock = {
  ...systemClock,
  every(ms, fn) {
    const stop = systemClock.every(ms, fn);
    timers++;
    let stopped = false;
    return () => {
      if (!stopped) timers--;
      stopped = true;
      stop();
    };
  },
};

const names = new Map([['Bearer ann', 'ann']]);
let authCalls = 0;
let server: Awaited<ReturnType<typeof startServer>>;
let url: string;

beforeAll(async () => {
  server = await startServer({
    clock,
    auth: async (request) => {
      authCalls++;
      await Promise.resolve();
      const principal = names.get(request.headers.get('authorization') ?? '');
      return principal === undefined ? undefined : { principal };
    },
    reflection: true,
  });
  ({ url } = server);
});
afterAll(() => server.close());

const ann = { authorization: 'Bearer ann' };

function connect(headers: Record<string, string> = {}): WebSocket {
  const socket = new WebSocket(`${url.replace('http', 'ws')}/agents/chat/connect`, { headers });
  socket.on('error', () => {});
  return socket;
}

/** The first frame that comes. */
async function firstFrame(
  socket: WebSocket,
): Promise<{ type: string; error?: { status: string } }> {
  const [data] = await once(socket, 'message');
  return JSON.parse(String(data));
}

const partsOf = (count: number, part = '{}'): string =>
  `{"message":{"role":"user","content":[${Array(count).fill(part).join(',')}]}}`;

describe('a body of many faults or values', () => {
  const bodies: readonly [string, string, (parts: string) => string][] = [
    ['native', '/agents/chat/turns', (parts) => `{"input":${parts}}`],
    ['genkit', '/genkit/chat', (parts) => `{"data":${parts}}`],
    ['state', '/agents/held/turns', (parts) => `{"init":{"state":{"messages":[${parts}]}}}`],
    ['chat', '/ui/chat', (parts) => `{"id":"a","messages":[{"role":"user","parts":[${parts}]}]}`],
    ['reflection', '/api/runAction', (parts) => `{"key":"/agent/chat","input":${parts}}`],
  ];

  test.each(bodies)('is refused with one short message (%s)', async (_, path, bodyOf) => {
    for (const count of [2000, 60_000]) {
      const response = await post(`${url}${path}`, bodyOf(partsOf(count)), ann);
      const text = await response.text();
      expect(text).toContain('INVALID_ARGUMENT');
      expect(text.length).toBeLessThan(700);
      // More values than a body may have are not even parsed.
      expect(text.includes('more than 30000 values')).toBe(count === 60_000);
    }
  });

  test('of one-byte pieces is read as one of any other size', async () => {
    const text = JSON.stringify({ input: userInput('hello') });
    const response = await fetch(`${url}/agents/chat/turns`, {
      method: 'POST',
      headers: ann,
      body: new ReadableStream({
        start(controller) {
          for (const byte of new TextEncoder().encode(text))
            controller.enqueue(Uint8Array.of(byte));
          controller.close();
        },
      }),
      duplex: 'half',
    } as RequestInit);
    expect(await response.json()).toMatchObject({ finishReason: 'stop' });
  });
});

describe('frames of a client that is not known', () => {
  test.each([
    ['many faults', `{"type":"input","input":${partsOf(10_000)}}`],
    ['no JSON', '{"type":'],
    ['no init', '{"type":"close"}'],
  ])('are not parsed before it is authenticated (%s)', async (_, text) => {
    const socket = connect();
    await once(socket, 'open');
    socket.send(text);
    expect(await firstFrame(socket)).toMatchObject({ error: { status: 'UNAUTHENTICATED' } });
  });

  test.each([
    ['too many values', `{"type":"input","input":${partsOf(200_000)}}`, 'values'],
    ['too deep', '['.repeat(100_000), 'nested'],
    ['a long number', `{"type":${'1'.repeat(1_000_000)}}`, 'number'],
  ])('are refused by a scan, without asking the hook (%s)', async (_, text, reason) => {
    const before = authCalls;
    const socket = connect();
    await once(socket, 'open');
    socket.send(text);
    expect(await firstFrame(socket)).toMatchObject({
      error: { status: 'INVALID_ARGUMENT', message: expect.stringContaining(reason) },
    });
    expect(authCalls).toBe(before);
  });

  test('are parsed once it is, whether the header or the first frame says who it is', async () => {
    const byHeader = connect(ann);
    await once(byHeader, 'open');
    byHeader.send('{"type":');
    expect(await firstFrame(byHeader)).toMatchObject({ error: { status: 'INVALID_ARGUMENT' } });
    const byFrame = connect();
    await once(byFrame, 'open');
    const init = { type: 'init', ref: 1, init: { sessionId: 'late' }, ...ann };
    // The next frame comes while the first one is being looked at.
    byFrame.send(JSON.stringify({ ...init, authorization: 'Bearer ann' }));
    byFrame.send(JSON.stringify({ type: 'input', ref: 2, input: userInput('hello') }));
    expect(await firstFrame(byFrame)).toEqual({ type: 'accepted', seq: 0, ref: 1 });
    byFrame.terminate();
  });

  test('that name two authorizations are judged by the one that JSON means', async () => {
    const socket = connect();
    await once(socket, 'open');
    socket.send('{"authorization":"Bearer ann","type":"init","authorization":"Bearer eve"}');
    expect(await firstFrame(socket)).toMatchObject({ error: { status: 'UNAUTHENTICATED' } });
  });

  test('are refused with one authentication, however many come', async () => {
    const before = authCalls;
    const socket = connect();
    await once(socket, 'open');
    for (let at = 0; at < 50; at++) socket.send('{"type":"init"}');
    await once(socket, 'close');
    expect(authCalls - before).toBe(1);
  });
});

test('frames behind a long one keep their order', async () => {
  const socket = connect(ann);
  await once(socket, 'open');
  const refs: number[] = [];
  socket.on('message', (data) => {
    const { type, ref } = JSON.parse(String(data));
    if (type === 'accepted') refs.push(ref);
  });
  const init = { sessionId: `order-${crypto.randomUUID()}` };
  const texts = ['a'.repeat(200_000), 'b', 'c'.repeat(200_000), 'd'];
  socket.send(JSON.stringify({ type: 'init', ref: 0, init }));
  for (const [at, text] of texts.entries()) {
    socket.send(JSON.stringify({ type: 'input', ref: at + 1, input: userInput(text) }));
  }
  socket.send('{"type":"close"}');
  await once(socket, 'close');
  expect(refs).toEqual([0, 1, 2, 3, 4]);
  const at = `${url}/agents/chat/sessions/${init.sessionId}/snapshot`;
  const { state } = await get(at, { headers: ann });
  const said = state.messages.filter(({ role }: { role: string }) => role === 'user');
  expect(said.map((each: { content: { text: string }[] }) => each.content[0]?.text)).toEqual(texts);
});

describe('sockets that have closed', () => {
  test('leave no timer, stream or turn behind, at whatever moment they close', async () => {
    const init = JSON.stringify({ type: 'init', ref: 1, ...ann });
    const input = JSON.stringify({ type: 'input', input: userInput('count 2') });
    const leave: readonly ((socket: WebSocket) => Promise<unknown>)[] = [
      async (socket) => socket.terminate(),
      async (socket) => socket.close(),
      async (socket) => {
        socket.send(init);
        socket.terminate();
      },
      async (socket) => {
        socket.send(init);
        await once(socket, 'message');
        socket.terminate();
      },
      async (socket) => {
        socket.send(init);
        socket.send(input);
        await once(socket, 'message');
        socket.terminate();
      },
      async (socket) => {
        socket.send(init);
        socket.send(input);
        socket.send('{"type":"close"}');
        await once(socket, 'close');
      },
      async (socket) => {
        socket.send('{');
        await once(socket, 'close');
      },
    ];
    for (let round = 0; round < 8; round++) {
      await Promise.all(
        leave.map(async (how) => {
          const socket = connect();
          await once(socket, 'open');
          await how(socket);
        }),
      );
    }
    await eventually(async () => {
      expect(await get(`${url}/healthz`)).toMatchObject({ streams: 0, turns: 0 });
      expect(timers).toBe(0);
    });
  });
});
