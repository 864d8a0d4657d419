import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { WebSocket } from 'ws';
import { waymark } from '../../src/app.ts';
import { memoryStore } from '../../src/store/memory/memory-store.ts';
import { scriptedModel } from '../../src/testing/scripted-model.ts';
import { eventually } from '../support/eventually.ts';
import {
  allEvents,
  get,
  post,
  readEvents,
  startServer,
  streamTurn,
  textOf,
  userInput,
} from './kit.ts';

let server: Awaited<ReturnType<typeof startServer>>;
let url: string;

beforeAll(async () => {
  server = await startServer({
    limits: { bodyBytes: 10_000, jsonDepth: 20, urlLength: 500, requestTimeout: 300 },
  });
  ({ url } = server);
});
afterAll(() => server.close());

const turns = (): string => `${url}/agents/chat/turns`;

describe('what is too much', () => {
  test('a body over its limit is 413, whether its length is announced or not', async () => {
    const long = JSON.stringify({ input: userInput('x'.repeat(20_000)) });
    const announced = await post(turns(), long);
    const chunked = await fetch(turns(), {
      method: 'POST',
      body: new Blob([long]).stream(),
      duplex: 'half',
    } as RequestInit);
    for (const response of [announced, chunked]) {
      expect(response.status).toBe(413);
      expect(await response.json()).toMatchObject({ status: 'RESOURCE_EXHAUSTED' });
    }
  });

  test.each([
    ['deeply nested', `{"input":${'['.repeat(5000)}`],
    ['nested too deeply for us', `{"input":${'{"a":'.repeat(30)}1${'}'.repeat(31)}`],
    ['not JSON', '{"input": oops}'],
    ['cut off', '{"input":'],
    ['a lone quote', '"'],
    ['an array', '[]'],
    ['null', 'null'],
  ])('a body that is %s is INVALID_ARGUMENT', async (_, body) => {
    const response = await post(turns(), body);
    expect(response.status).toBe(400);
    const { status, message } = await response.json();
    expect(status).toBe('INVALID_ARGUMENT');
    expect(message.length).toBeLessThanOrEqual(400);
  });

  test('a URL and headers over their limits are refused with the error body', async () => {
    const long = await fetch(`${url}/agents?x=${'y'.repeat(600)}`);
    expect([long.status, (await long.json()).status]).toEqual([400, 'INVALID_ARGUMENT']);
    const heavy = await raw(
      `GET /agents HTTP/1.1\r\nhost: localhost\r\nx: ${'y'.repeat(20_000)}\r\n\r\n`,
    );
    expect(heavy).toMatch(/^HTTP\/1\.1 400 .*"status":"INVALID_ARGUMENT"/s);
  });

  test.each([
    ['no HTTP', 'hello\r\n\r\n'],
    ['no Host', 'GET /agents HTTP/1.1\r\n\r\n'],
    [
      'two lengths',
      'POST /agents HTTP/1.1\r\nhost: localhost\r\ncontent-length: 5\r\ncontent-length: 6\r\n\r\nhello',
    ],
    ['a bad Host', 'GET /agents HTTP/1.1\r\nhost: a b/c\r\n\r\n'],
    ['a bad target', 'GET http://[ HTTP/1.1\r\nhost: localhost\r\n\r\n'],
  ])('%s is 400 with the error body', async (_, text) => {
    expect(await raw(text)).toMatch(
      /^HTTP\/1\.1 40[03] .*"status":"(INVALID_ARGUMENT|PERMISSION_DENIED)"/s,
    );
  });

  test('a client that sends too slowly is answered and cut', async () => {
    const headers = 'POST /agents/chat/turns HTTP/1.1\r\nhost: localhost\r\n';
    const slowHeaders = raw(headers);
    const slowBody = raw(`${headers}content-length: 100\r\n\r\n{"input"`);
    for (const answer of [await slowHeaders, await slowBody]) {
      expect(answer).toMatch(/^HTTP\/1\.1 504 .*"status":"DEADLINE_EXCEEDED"/s);
    }
    expect(await raw('')).toBe('');
  });

  test('an echoed id is short and escaped', async () => {
    const response = await fetch(
      `${url}/agents/${encodeURIComponent(`<script>${'\u0007"\n'.repeat(40)}`)}`,
    );
    const { message } = await response.json();
    expect(message.length).toBeLessThan(300);
    expect(message).not.toContain('\u0007');
    const snapshot = await fetch(`${url}/agents/chat/snapshots/${'z'.repeat(300)}`);
    expect(snapshot.status).toBe(404);
    expect((await snapshot.json()).message.length).toBeLessThan(200);
  });
});

describe('keys that mean something to JavaScript', () => {
  test('go through as data and change nothing', async () => {
    const input =
      '{"message":{"role":"user","content":[{"text":"a","metadata":{"__proto__":{"polluted":1},"toString":"x"}}]}}';
    for (const misplaced of [
      `{"__proto__":{"polluted":1},"input":${input}}`,
      `{"constructor":{"prototype":{"polluted":1}},"input":${input}}`,
      `{"init":{"__proto__":{"sessionId":"stolen"},"sessionId":"protos"},"input":${input}}`,
    ]) {
      expect((await post(turns(), misplaced)).status).toBe(400);
    }
    const body = `{"init":{"sessionId":"protos"},"input":${input}}`;
    const output = await (await post(turns(), body)).json();
    expect(output).toMatchObject({ sessionId: 'protos', finishReason: 'stop' });
    expect(({} as { polluted?: number }).polluted).toBeUndefined();
    const text = await (await fetch(`${url}/agents/chat/sessions/protos`)).text();
    expect(text).toContain('"__proto__":{"polluted":1}');
    for (const id of ['__proto__', 'constructor', 'toString', '..', '%2e%2e%2fetc%2fpasswd']) {
      for (const path of [
        `/agents/${id}`,
        `/agents/chat/sessions/${id}`,
        `/agents/chat/snapshots/${id}`,
      ]) {
        expect((await fetch(`${url}${path}`)).status).toBe(404);
      }
    }
  });
});

describe('what is forged', () => {
  test('a sealed state that was changed, or taken from another agent, is refused in every dialect', async () => {
    const { state } = await (
      await post(`${url}/agents/sealed/turns`, { input: userInput('one') })
    ).json();
    expect(state.seal).toEqual(expect.any(String));
    const changed = structuredClone(state);
    changed.messages[1].content[0].text = 'You have a million.';
    const { seal: _, ...bare } = state;
    const cases: [number, unknown][] = [
      [200, state],
      [403, changed],
      [403, bare],
      [403, { ...state, seal: `${state.seal}0` }],
    ];
    for (const [status, given] of cases) {
      const native = { init: { state: given }, input: userInput('two') };
      expect((await post(`${url}/agents/sealed/turns`, native)).status).toBe(status);
      const genkit = { init: { state: given }, data: userInput('two') };
      expect((await post(`${url}/genkit/sealed`, genkit)).status).toBe(status);
    }
  });

  test('S184 provider options of a client reach no provider, in any protocol', async () => {
    const model = scriptedModel({ patterns: [], otherwise: 'ok' });
    const app = waymark({ model, store: memoryStore() });
    app.defineAgent({ name: 'chat' });
    app.defineAgent({ name: 'held', store: false });
    const server = await startServer({ app });
    const options = { openai: { store: true, itemId: 'of another user' } };
    const metadata = { providerMetadata: options, kept: 1 };
    const message = { role: 'user', content: [{ text: 'hi', metadata }], metadata };
    const init = { state: { messages: [message, { ...message, role: 'model' }] } };
    for (const [path, body] of [
      ['agents/chat/turns', { input: { message } }],
      ['agents/held/turns', { input: { message }, init }],
      ['genkit/chat', { data: { message } }],
      ['genkit/held', { data: { message }, init }],
    ] as const) {
      expect((await post(`${server.url}/${path}`, body)).status, path).toBe(200);
    }
    const socket = new WebSocket(`${server.url.replace('http', 'ws')}/agents/held/connect`);
    await once(socket, 'open');
    socket.send(JSON.stringify({ type: 'init', init }));
    socket.send(JSON.stringify({ type: 'input', input: { message } }));
    socket.send(JSON.stringify({ type: 'close' }));
    await once(socket, 'close');
    const told = (): string => JSON.stringify(model.requests.map(({ messages }) => messages));
    expect(model.requests).toHaveLength(5);
    expect(told()).not.toContain('of another user');
    expect(told()).toContain('"kept":1');
    // Code of the server may set them.
    const own = app.agent('chat');
    await own.run({ message: { role: 'user', content: [{ text: 'hi', metadata }] } });
    expect(told()).toContain('of another user');
    await server.close();
  });

  test('line breaks in ids and texts stay within their JSON', async () => {
    const sessionId = 'x\r\nevent: output\r\ndata: {}\r\n\r\n';
    const text = await (
      await streamTurn(url, 'a\u2028\n\nevent: error\n\n', { init: { sessionId } })
    ).text();
    expect([...text.matchAll(/^event: (\w+)$/gm)].map(([, name]) => name)).toEqual([
      'chunk',
      'chunk',
      'chunk',
      'output',
    ]);
    const at = `${url}/agents/chat/sessions/${encodeURIComponent(sessionId)}`;
    expect(await get(at)).toMatchObject({ sessionId });
  });
});

describe('per principal', () => {
  test('requests, streams and turns are limited, with Retry-After, and others are not held up', async () => {
    const limited = await startServer({
      auth: (request) => ({ principal: request.headers.get('authorization') ?? 'nobody' }),
      limits: { requestsPerMinute: 10, streamsPerPrincipal: 2, turnsPerPrincipal: 3 },
    });
    const as = (name: string): Record<string, string> => ({ authorization: name });
    try {
      const agents = (name: string): Promise<Response> =>
        fetch(`${limited.url}/agents`, { headers: as(name) });
      for (let at = 0; at < 10; at++) expect((await agents('ann')).status).toBe(200);
      const refused = await agents('ann');
      expect(refused.status).toBe(429);
      expect(Number(refused.headers.get('retry-after'))).toBeGreaterThan(0);
      expect(await refused.json()).toMatchObject({ status: 'RESOURCE_EXHAUSTED' });
      expect((await agents('bob')).status).toBe(200);

      const hang = (name: string): Promise<Response> =>
        streamTurn(limited.url, 'hang', { headers: as(name) });
      const open = [await hang('carol'), await hang('carol')];
      const third = await hang('carol');
      expect([third.status, third.headers.get('retry-after')]).toEqual([429, '1']);
      const other = await hang('dora');
      expect(other.status).toBe(200);
      // A stream that is left is free again; its turn still counts.
      await open[0]?.body?.cancel();
      await eventually(async () => expect((await hang('carol')).status).toBe(200));
      await open[1]?.body?.cancel();
      const fourth = await hang('carol');
      expect((await fourth.json()).message).toContain('3 turns');
    } finally {
      await limited.close();
    }
  });
});

describe('work that nobody waits for', () => {
  const auth = (request: Request) => ({
    principal: request.headers.get('authorization') ?? 'nobody',
  });
  const headers = { authorization: 'ann' };

  test('a WebSocket turn whose client has left counts until it is over', async () => {
    const limited = await startServer({ auth, limits: { turnsPerPrincipal: 1 } });
    const socket = new WebSocket(`${limited.url.replace('http', 'ws')}/agents/chat/connect`, {
      headers,
    });
    await once(socket, 'open');
    socket.send(JSON.stringify({ type: 'init', init: { sessionId: 'left' } }));
    socket.send(JSON.stringify({ type: 'input', input: userInput('hang') }));
    await once(socket, 'message');
    socket.close();
    await once(socket, 'close');
    const again = await streamTurn(limited.url, 'hello', { headers });
    expect(again.status).toBe(429);
    const { running } = (await limited.app.agent('chat').getSession('left', { owner: 'ann' })) as {
      running: string;
    };
    await limited.app.agent('chat').abort(running, { owner: 'ann' });
    await eventually(async () =>
      expect((await streamTurn(limited.url, 'hello', { headers })).status).toBe(200),
    );
    await limited.close();
  });

  test('background runs are counted per principal, over HTTP and WebSocket', async () => {
    const limited = await startServer({ auth, limits: { backgroundRunsPerPrincipal: 2 } });
    const detach = (name: string): Promise<Response> =>
      fetch(`${limited.url}/agents/chat/turns`, {
        method: 'POST',
        headers: { authorization: name, 'content-type': 'application/json' },
        body: JSON.stringify({ input: { ...userInput('hang'), detach: true } }),
      });
    const first = (await (await detach('ann')).json()) as { snapshotId: string };
    expect((await detach('ann')).status).toBe(200);
    const third = await detach('ann');
    expect(third.status).toBe(429);
    expect(await third.json()).toMatchObject({
      message: expect.stringContaining('2 background runs'),
    });
    const socket = new WebSocket(`${limited.url.replace('http', 'ws')}/agents/chat/connect`, {
      headers,
    });
    await once(socket, 'open');
    socket.send(JSON.stringify({ type: 'init' }));
    socket.send(JSON.stringify({ type: 'detach', input: userInput('hang') }));
    const [data] = await once(socket, 'message');
    expect(JSON.parse(String(data))).toMatchObject({ error: { status: 'RESOURCE_EXHAUSTED' } });
    expect((await detach('bob')).status).toBe(200);
    const chat = limited.app.agent('chat');
    await chat.abort(first.snapshotId, { owner: 'ann' });
    await chat.wait(first.snapshotId, { owner: 'ann' });
    expect((await detach('ann')).status).toBe(200);
    for (const owner of ['ann', 'bob']) {
      for (const { snapshotId } of (await chat.listRuns({ owner })).items) {
        await chat.abort(snapshotId, { owner });
      }
    }
    await limited.close();
  });

  test('inputs that wait on a WebSocket are bounded in bytes', async () => {
    const limited = await startServer({ limits: { bodyBytes: 20_000 } });
    const socket = new WebSocket(`${limited.url.replace('http', 'ws')}/agents/chat/connect`);
    await once(socket, 'open');
    const frames: { ref?: number; type: string; error?: { status: string } }[] = [];
    socket.on('message', (data) => frames.push(JSON.parse(String(data))));
    socket.send(JSON.stringify({ type: 'init' }));
    socket.send(JSON.stringify({ type: 'input', ref: 0, input: userInput('hang') }));
    for (let ref = 1; ref <= 5; ref++) {
      const input = userInput('x'.repeat(9_000));
      socket.send(JSON.stringify({ type: 'input', ref, input }));
    }
    const answers = () => frames.filter(({ ref }) => ref !== undefined);
    await eventually(() => expect(answers()).toHaveLength(6));
    expect(answers().map(({ error }) => error?.status)).toEqual([
      undefined,
      undefined,
      undefined,
      undefined,
      'RESOURCE_EXHAUSTED',
      'RESOURCE_EXHAUSTED',
    ]);
    socket.send(JSON.stringify({ type: 'abort' }));
    await once(socket, 'close');
    await limited.close();
  });
});

describe('a reader that does not read', () => {
  test('holds little memory, is cut, and goes on by its last event', async () => {
    const slow = await startServer({ limits: { stallTimeout: 1500 } });
    try {
      const socket = connect(slow.port, '127.0.0.1');
      socket.pause();
      const body = JSON.stringify({ init: { sessionId: 'slow' }, input: userInput('200000') });
      socket.write(
        `POST /agents/busy/turns HTTP/1.1\r\nhost: localhost\r\naccept: text/event-stream\r\ncontent-length: ${body.length}\r\n\r\n${body}`,
      );
      const closed = new Promise<void>((resolve) => socket.on('close', () => resolve()));
      socket.on('error', () => {});
      // The turn does not wait for it.
      await eventually(async () =>
        expect(await get(`${slow.url}/agents/busy/sessions/slow`)).toMatchObject({
          turnCount: 1,
        }),
      );
      await eventually(async () => expect((await get(`${slow.url}/healthz`)).streams).toBe(0));
      let text = '';
      socket.on('data', (piece) => {
        text += piece;
      });
      socket.resume();
      await closed;
      expect(text.length).toBeLessThan(12_000_000);
      // Of events that came whole: the last one was cut anywhere.
      const lastId = [...text.matchAll(/^id: (\S+)\ndata: .*\n\n/gm)].at(-1)?.[1] ?? '';
      expect(text).not.toContain('event: output');
      const { headId } = await get(`${slow.url}/agents/busy/sessions/slow`);
      const rest = await fetch(`${slow.url}/agents/busy/snapshots/${headId}/events`, {
        headers: { 'last-event-id': lastId },
      });
      expect(rest.status).toBe(200);
      const events = await allEvents(rest);
      expect(events.at(-1)?.event).toBe('output');
      expect(textOf(events)).toMatch(/ 199999 $/);
      expect(Number(events[0]?.id?.split('.')[1])).toBe(Number(lastId.split('.')[1]) + 1);
    } finally {
      await slow.close();
    }
  });
});

describe('cors', () => {
  test('by default only pages of the same origin may call; others when they are named', async () => {
    const page = { origin: 'https://app.example' };
    const refused = await post(turns(), { input: userInput('x') }, page);
    expect(refused.status).toBe(403);
    expect(
      (await fetch(`${url}/agents`, { headers: page })).headers.get('access-control-allow-origin'),
    ).toBeNull();
    const open = await startServer({
      cors: { origins: ['https://app.example'], credentials: true },
    });
    try {
      const preflight = await fetch(`${open.url}/agents/chat/turns`, {
        method: 'OPTIONS',
        headers: {
          ...page,
          'access-control-request-method': 'POST',
          'access-control-request-headers': 'authorization',
        },
      });
      expect(preflight.status).toBe(204);
      expect(preflight.headers.get('access-control-allow-origin')).toBe('https://app.example');
      expect(preflight.headers.get('access-control-allow-headers')).toContain('authorization');
      const allowed = await streamTurn(open.url, 'hello', { headers: page });
      expect(allowed.headers.get('access-control-allow-origin')).toBe('https://app.example');
      await allowed.text();
      const other = await streamTurn(open.url, 'hello', {
        headers: { origin: 'https://evil.example' },
      });
      expect(other.status).toBe(403);
    } finally {
      await open.close();
    }
    await expect(startServer({ cors: { origins: true, credentials: true } })).rejects.toMatchObject(
      {
        status: 'INVALID_ARGUMENT',
      },
    );
  });
});

describe('shutting down', () => {
  test('running turns may finish, streams are cut so that they can be taken up, new requests are refused', async () => {
    const ending = await startServer({ grace: 1500 });
    const long = await streamTurn(ending.url, 'count 400 20');
    const json = post(`${ending.url}/agents/chat/turns`, { input: userInput('count 400 20') });
    const events = readEvents(long);
    const seen = [(await events.next()).value];
    await eventually(async () =>
      expect(await get(`${ending.url}/healthz`)).toMatchObject({ turns: 2 }),
    );
    const quick = await streamTurn(ending.url, 'count 10 20');
    const closing = ending.close();
    expect((await allEvents(quick)).at(-1)?.event).toBe('output');
    for await (const event of events) seen.push(event);
    expect(seen.at(-1)?.event).toBe('chunk');
    const waiting = await json;
    expect(waiting.status).toBe(503);
    expect(await waiting.json()).toMatchObject({
      status: 'UNAVAILABLE',
      details: { snapshotId: expect.any(String) },
    });
    await closing;
    await expect(fetch(`${ending.url}/healthz`)).rejects.toThrow();
  });
});

/** Writes bytes to the server and gives all that comes back. */
function raw(text: string): Promise<string> {
  return new Promise((resolve) => {
    let answer = '';
    const socket: Socket = connect(server.port, '127.0.0.1', () => socket.write(text));
    socket.on('data', (piece) => {
      answer += piece;
      // A kept-alive answer is complete when its body is.
      if (/\r\n\r\n\{.*\}$/s.test(answer)) socket.end();
    });
    socket.on('error', () => {});
    socket.on('close', () => resolve(answer));
  });
}
