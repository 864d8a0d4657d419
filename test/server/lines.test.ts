import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { eventually } from '../support/eventually.ts';
import {
  allEvents,
  get,
  post,
  readEvents,
  type SseEvent,
  startServer,
  streamTurn,
  textOf,
  userInput,
} from './kit.ts';

let server: Awaited<ReturnType<typeof startServer>>;
beforeAll(async () => {
  server = await startServer();
});
afterAll(() => server.close());

const turn = (text: string): string => JSON.stringify({ input: userInput(text) });

/** Writes a request by hand. */
function ask(body: string, { version = '1.1', headers = '' } = {}): Socket {
  const socket = connect(server.port, '127.0.0.1');
  socket.setEncoding('utf8');
  socket.write(
    `POST /agents/chat/turns HTTP/${version}\r\nhost: localhost\r\naccept: text/event-stream\r\n${headers}content-length: ${Buffer.byteLength(body)}\r\n\r\n${body}`,
  );
  return socket;
}

async function everything(socket: Socket): Promise<string> {
  let text = '';
  for await (const piece of socket) text += piece;
  return text;
}

describe('a stream', () => {
  test('to a client of HTTP/1.0 is not cut into pieces it does not know, and ends with the line', async () => {
    const text = await everything(ask(turn('count 3'), { version: '1.0' }));
    const [head = '', body = ''] = text.split('\r\n\r\n');
    expect(head).toMatch(/^HTTP\/1\.1 200 OK/);
    expect(head.toLowerCase()).not.toContain('transfer-encoding');
    expect(body).toMatch(/^event: chunk\nid: 1\.0\ndata: \{"turnStart"/);
    expect(body).toMatch(/event: output\ndata: \{.*\}\n\n$/);
  });

  test('of a short turn arrives whole, with its headers, on a line that is used again', async () => {
    const socket = ask(turn('count 3'));
    let text = '';
    socket.on('data', (piece: string) => {
      text += piece;
    });
    await eventually(() => expect(text).toMatch(/event: output\n.*\r\n0\r\n\r\n$/s));
    text = '';
    const again = turn('umlaut');
    socket.write(
      `POST /agents/chat/turns HTTP/1.1\r\nhost: localhost\r\naccept: text/event-stream\r\ncontent-length: ${again.length}\r\n\r\n${again}`,
    );
    await eventually(() => expect(text).toMatch(/日本語.*event: output\n.*\r\n0\r\n\r\n$/s));
    socket.destroy();
  });

  test('of a run that is silent begins at once', async () => {
    const detached = await post(`${server.url}/agents/chat/turns`, {
      input: { ...userInput('hang'), detach: true },
    });
    const { snapshotId } = await detached.json();
    const place = `${server.url}/agents/chat/snapshots/${snapshotId}`;
    const events = await allEventsUntil(`${place}/events`, 'hangs');
    // Nothing comes after the last one, but the answer to the request does.
    const headers = { 'last-event-id': events.at(-1)?.id ?? '' };
    const silent = await fetch(`${place}/events`, { headers });
    expect(silent.headers.get('content-type')).toContain('text/event-stream');
    await post(`${place}/abort`, {});
    expect((await allEvents(silent)).at(-1)?.event).toBe('output');
  });

  test('carries what others put on the answer, such as the headers of cors', async () => {
    const open = await startServer({ cors: { origins: ['https://app.example'] } });
    try {
      const headers = { origin: 'https://app.example' };
      const response = await streamTurn(open.url, 'count 3', { headers });
      expect(response.headers.get('access-control-allow-origin')).toBe('https://app.example');
      expect(response.headers.get('vary')).toBe('Origin');
      expect(response.headers.get('cache-control')).toBe('no-store, no-transform');
      expect(textOf(await allEvents(response))).toBe('0 1 2 ');
    } finally {
      await open.close();
    }
  });

  test('whose client hangs up in the middle frees its place; the turn goes on', async () => {
    const socket = ask(turn('count 40 5'));
    const [first] = (await once(socket, 'data')) as [string];
    const { snapshotId } = JSON.parse(/"turnStart":(\{[^}]*\})/.exec(first)?.[1] ?? '{}');
    socket.resetAndDestroy();
    await eventually(async () => expect((await get(`${server.url}/healthz`)).streams).toBe(0));
    const events = await allEvents(
      await fetch(`${server.url}/agents/chat/snapshots/${snapshotId}/events`),
    );
    expect(textOf(events)).toMatch(/^0 1 2 .* 39 $/);
  });
});

describe('a request', () => {
  test('over IPv6 loopback is let in, and one to another host over it is not', async () => {
    const six = await startServer({ host: '::1' });
    try {
      expect(six.url).toBe(`http://[::1]:${six.port}`);
      expect((await fetch(`${six.url}/agents`)).status).toBe(200);
      const socket = connect(six.port, '::1');
      socket.end('GET /agents HTTP/1.1\r\nhost: evil.example\r\nconnection: close\r\n\r\n');
      expect(await everything(socket)).toMatch(/^HTTP\/1\.1 403 /);
    } finally {
      await six.close();
    }
  });

  test('HEAD is answered as GET without its body, but not for a stream', async () => {
    const head = await fetch(`${server.url}/agents`, { method: 'HEAD' });
    expect([head.status, await head.text()]).toEqual([200, '']);
    const stream = await fetch(`${server.url}/agents/chat/snapshots/x/events`, { method: 'HEAD' });
    expect(stream.status).toBeGreaterThanOrEqual(400);
  });

  test('with a slash too many, or of a method that is not there, says what there is', async () => {
    for (const [path, method] of [
      ['/agents/', 'GET'],
      ['//agents', 'GET'],
      ['/agents/chat/turns', 'PUT'],
      ['/agents/chat/turns', 'OPTIONS'],
    ] as const) {
      const response = await fetch(`${server.url}${path}`, { method });
      expect(response.status).toBe(404);
      expect((await response.json()).message).toContain('/openapi.json');
    }
  });
});

async function allEventsUntil(url: string, word: string): Promise<readonly SseEvent[]> {
  const leaving = new AbortController();
  const events: SseEvent[] = [];
  for await (const event of readEvents(await fetch(url, { signal: leaving.signal }))) {
    events.push(event);
    if (textOf([event]).includes(word)) break;
  }
  leaving.abort();
  return events;
}
