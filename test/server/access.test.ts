import { once } from 'node:events';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { WebSocket } from 'ws';
import { memoryStore } from '../../src/index.ts';
import type { AuthorizeCall } from '../../src/server/index.ts';
import { eventually } from '../support/eventually.ts';
import {
  allEvents,
  createTestApp,
  get,
  post,
  readEvents,
  startServer,
  streamTurn,
  userInput,
} from './kit.ts';

const as = (name: string): Record<string, string> => ({ authorization: name });

/** Frames of a WebSocket, and how it closed. */
async function dial(url: string, headers: Record<string, string>) {
  const socket = new WebSocket(`${url.replace('http', 'ws')}/agents/chat/connect`, { headers });
  // biome-ignore lint/suspicious/noExplicitAny: tests look into whatever came
  const frames: any[] = [];
  socket.on('message', (data) => frames.push(JSON.parse(String(data))));
  socket.on('error', () => {});
  const closed = once(socket, 'close').then(([code]) => code as number);
  await once(socket, 'open');
  const send = (frame: object): void => socket.send(JSON.stringify(frame));
  return { socket, frames, closed, send };
}

test('auth may read the body of a request or a copy of it; what reads it next gets what is left', async () => {
  const seen: string[] = [];
  let used: boolean | undefined;
  const server = await startServer({
    auth: async (request) => {
      const how = request.headers.get('authorization');
      if (how === 'copy') seen.push(await request.clone().text());
      if (how === 'whole') seen.push(await request.text());
      return { principal: 'ann' };
    },
    authorize: ({ request }) => {
      used = request.bodyUsed;
      return true;
    },
  });
  try {
    const body = { input: userInput('hello') };
    const turn = (how: string): Promise<Response> =>
      post(`${server.url}/agents/chat/turns`, body, as(how));
    expect(await (await turn('none')).json()).toMatchObject({ finishReason: 'stop' });
    expect(used).toBe(true);
    expect(await (await turn('copy')).json()).toMatchObject({ finishReason: 'stop' });
    expect((await turn('whole')).status).toBe(499);
    expect(seen).toEqual([JSON.stringify(body), JSON.stringify(body)]);
  } finally {
    await server.close();
  }
});

describe('authorize', () => {
  let server: Awaited<ReturnType<typeof startServer>>;
  let url: string;
  let judge: (call: AuthorizeCall) => boolean = () => true;
  const calls: AuthorizeCall[] = [];
  let reads = 0;
  let snapshotId = '';
  let otherId = '';

  beforeAll(async () => {
    const store = memoryStore();
    const counting = {
      ...store,
      getSnapshot: (...given: Parameters<typeof store.getSnapshot>) => {
        reads++;
        return store.getSnapshot(...given);
      },
    };
    server = await startServer({
      app: createTestApp({ store: counting }),
      reflection: true,
      auth: (request) => ({ principal: request.headers.get('authorization') ?? 'nobody' }),
      authorize: (call) => {
        calls.push(call);
        return judge(call);
      },
    });
    ({ url } = server);
    const turn = async (sessionId: string): Promise<string> => {
      const body = { init: { sessionId }, input: userInput('hello') };
      return (await (await post(`${url}/agents/chat/turns`, body, as('ann'))).json()).snapshotId;
    };
    snapshotId = await turn('secret');
    otherId = await turn('open');
  });
  afterAll(() => server.close());
  beforeEach(() => {
    judge = () => true;
    calls.length = 0;
  });

  const input = userInput('hello');
  const chat = (more: object): object => ({
    id: 'secret',
    messages: [{ role: 'user', parts: [{ type: 'text', text: 'x' }] }],
    ...more,
  });
  /** Every way to run a turn over HTTP. */
  const turns: Record<string, () => Promise<Response>> = {
    native: () => post(`${url}/agents/chat/turns`, { input }, as('ann')),
    'a native stream': () => streamTurn(url, 'hello', { headers: as('ann') }),
    genkit: () => post(`${url}/genkit/chat`, { data: input }, as('ann')),
    'the UI stream': () => post(`${url}/ui/chat`, chat({}), as('ann')),
    reflection: () => post(`${url}/api/runAction`, { key: '/agent/chat', input }, as('ann')),
    'a stream of reflection': () =>
      post(`${url}/api/runAction?stream=true`, { key: '/agent/chat', input }, as('ann')),
  };

  test.each(Object.entries(turns))('that refuses runTurn refuses it for %s', async (_, run) => {
    judge = ({ operation }) => operation !== 'runTurn';
    const response = await run();
    expect(response.status).toBe(403);
    expect(await response.json()).toMatchObject({ status: 'PERMISSION_DENIED' });
  });

  test('that refuses runTurn refuses each turn of a WebSocket, and keeps the connection', async () => {
    judge = ({ operation }) => operation !== 'runTurn';
    const line = await dial(url, as('ann'));
    line.send({ type: 'init', ref: 1, init: { sessionId: 'line' } });
    line.send({ type: 'input', ref: 2, input });
    await eventually(() => expect(line.frames).toHaveLength(2));
    expect(line.frames[1]).toMatchObject({ ref: 2, error: { status: 'PERMISSION_DENIED' } });
    judge = () => true;
    line.send({ type: 'input', ref: 3, input });
    await eventually(() => expect(line.frames.some(({ chunk }) => chunk?.turnEnd)).toBe(true));
    judge = ({ operation }) => operation !== 'runTurn';
    line.send({ type: 'detach', ref: 4, input });
    await eventually(() => expect(line.frames.at(-1)).toMatchObject({ type: 'error', ref: 4 }));
    judge = ({ operation }) => operation !== 'abort';
    line.send({ type: 'abort', ref: 5 });
    await eventually(() => expect(line.frames.at(-1)).toMatchObject({ type: 'error', ref: 5 }));
    expect(calls.filter(({ operation }) => operation === 'runTurn')).toMatchObject([
      { agent: 'chat', sessionId: 'line', principal: 'ann' },
      { agent: 'chat', sessionId: 'line' },
      { agent: 'chat', sessionId: 'line' },
    ]);
    line.socket.terminate();
  });

  test('judges inputs of a WebSocket in their order, also when it takes its time', async () => {
    const waits = [20, 10, 0];
    const slow = await startServer({
      auth: () => ({ principal: 'ann' }),
      authorize: async ({ operation }) => {
        const ms = operation === 'runTurn' ? (waits.shift() ?? 0) : 0;
        await new Promise((resolve) => setTimeout(resolve, ms));
        return true;
      },
    });
    const line = await dial(slow.url, {});
    line.send({ type: 'init', init: { sessionId: 'ordered' } });
    for (const text of ['one', 'two', 'three']) {
      line.send({ type: 'input', input: userInput(text) });
    }
    line.send({ type: 'close' });
    expect(await line.closed).toBe(1000);
    const session = await get(`${slow.url}/agents/chat/sessions/ordered`);
    const said = session.state.messages.filter(({ role }: { role: string }) => role === 'user');
    expect(JSON.stringify(said)).toMatch(/one.*two.*three/);
    await slow.close();
  });

  /** Every way to name a session by one of its snapshots. */
  const lookups: Record<string, () => Promise<Response>> = {
    getSnapshot: () => fetch(`${url}/agents/chat/snapshots/${snapshotId}`, { headers: as('ann') }),
    watch: () => fetch(`${url}/agents/chat/snapshots/${snapshotId}/events`, { headers: as('ann') }),
    restore: () => post(`${url}/agents/chat/snapshots/${snapshotId}/restore`, {}, as('ann')),
    fork: () => post(`${url}/agents/chat/snapshots/${snapshotId}/fork`, {}, as('ann')),
    'fork into': () =>
      post(`${url}/agents/chat/snapshots/${otherId}/fork`, { sessionId: 'secret' }, as('ann')),
    abort: () => post(`${url}/agents/chat/snapshots/${snapshotId}/abort`, {}, as('ann')),
    retry: () => post(`${url}/agents/chat/snapshots/${snapshotId}/retry`, {}, as('ann')),
    label: () =>
      fetch(`${url}/agents/chat/snapshots/${snapshotId}`, {
        method: 'PATCH',
        headers: as('ann'),
        body: '{"label":"x"}',
      }),
    'diff from': () =>
      fetch(`${url}/agents/chat/snapshots/${snapshotId}/diff/${otherId}`, { headers: as('ann') }),
    'diff to': () =>
      fetch(`${url}/agents/chat/snapshots/${otherId}/diff/${snapshotId}`, { headers: as('ann') }),
    'a turn': () => post(`${url}/agents/chat/turns`, { init: { snapshotId }, input }, as('ann')),
    'a turn that names another session': () =>
      post(
        `${url}/agents/chat/turns`,
        { init: { snapshotId, sessionId: 'open' }, input },
        as('ann'),
      ),
    'a Genkit turn': () =>
      post(`${url}/genkit/chat`, { init: { snapshotId }, data: input }, as('ann')),
    'a Genkit lookup': () =>
      post(`${url}/genkit/chat/getSnapshot`, { data: { snapshotId } }, as('ann')),
    'a Genkit abort': () => post(`${url}/genkit/chat/abort`, { data: { snapshotId } }, as('ann')),
    'the UI stream': () =>
      post(
        `${url}/ui/chat`,
        chat({ trigger: 'regenerate-message', messageId: snapshotId }),
        as('ann'),
      ),
    'reflection, a turn': () =>
      post(`${url}/api/runAction`, { key: '/agent/chat', input, init: { snapshotId } }, as('ann')),
    ...Object.fromEntries(
      [
        '/agent-snapshot/chat',
        '/agent-abort/chat',
        '/snapshot-store/chat/getSnapshot',
        '/session-store/chat/getSnapshot',
        '/snapshot-store/chat/abortSnapshot',
      ].map((key) => [
        key,
        () => post(`${url}/api/runAction`, { key, input: { snapshotId } }, as('ann')),
      ]),
    ),
    ...Object.fromEntries(
      [
        '/snapshot-store/chat/listSnapshots',
        '/session-store/chat/listSnapshots',
        '/session-store/chat/getSession',
      ].map((key) => [
        key,
        () => post(`${url}/api/runAction`, { key, input: { sessionId: 'secret' } }, as('ann')),
      ]),
    ),
  };

  test.each(Object.entries(lookups))('with a rule on the session holds for %s', async (_, ask) => {
    judge = ({ sessionId }) => sessionId !== 'secret';
    const response = await ask();
    expect(response.status).toBe(403);
    await response.text();
    expect(calls.some(({ sessionId }) => sessionId === 'secret')).toBe(true);
  });

  test('with a rule on the session holds for a WebSocket that starts from a snapshot', async () => {
    judge = ({ sessionId }) => sessionId !== 'secret';
    const line = await dial(url, as('ann'));
    line.send({ type: 'init', init: { snapshotId } });
    expect(await line.closed).toBe(1008);
    expect(line.frames).toMatchObject([{ error: { status: 'PERMISSION_DENIED' } }]);
  });

  test('costs no read where a call names no snapshot, and one for each snapshot', async () => {
    reads = 0;
    await (await post(`${url}/agents/chat/turns`, { input }, as('ann'))).json();
    expect(reads).toBe(0);
    const at = `${url}/agents/chat/snapshots/${snapshotId}/abort`;
    await post(at, {}, as('ann'));
    await post(at, {}, as('ann'));
    // It was asked for before: a snapshot stays in its session.
    expect(reads).toBe(0);
  });
});

describe('access that is revoked', () => {
  const valid = new Set(['ann', 'bob']);
  let asked = 0;
  const start = (more: object = {}) =>
    startServer({
      auth: (request: Request) => {
        asked++;
        const principal = request.headers.get('authorization') ?? '';
        return valid.has(principal) ? { principal } : undefined;
      },
      ...more,
    });
  beforeEach(() => {
    valid.add('ann').add('bob');
    asked = 0;
  });

  test('ends the streams, sockets and calls of that principal at once; its runs continue', async () => {
    const server = await start();
    const { url } = server;
    const run = { init: { sessionId: 'long' }, headers: as('ann') };
    const stream = await streamTurn(url, 'hang', run);
    const events = readEvents(stream);
    const first = (await events.next()).value;
    const runId = first?.data.turnStart.snapshotId;
    const watching = await fetch(`${url}/agents/chat/snapshots/${runId}/events`, {
      headers: as('ann'),
    });
    const waiting = post(`${url}/agents/chat/turns`, { input: userInput('hang') }, as('ann'));
    const line = await dial(url, as('ann'));
    line.send({ type: 'init', ref: 1 });
    line.send({ type: 'input', ref: 2, input: userInput('hang') });
    const other = await streamTurn(url, 'hang', { headers: as('bob') });
    const otherLine = await dial(url, as('bob'));
    otherLine.send({ type: 'init', ref: 1 });
    await eventually(async () => {
      expect(JSON.stringify(line.frames)).toContain('hangs');
      expect(otherLine.frames).toHaveLength(1);
      expect(await get(`${url}/healthz`)).toMatchObject({ turns: 4 });
    });

    valid.delete('ann');
    expect(server.disconnect('ann')).toBe(4);
    const rest = [];
    for await (const event of events) rest.push(event);
    expect(rest.every(({ event }) => event === 'chunk')).toBe(true);
    await allEvents(watching);
    expect((await waiting).status).toBe(401);
    expect(await line.closed).toBe(1008);
    expect(line.frames.at(-1)).toMatchObject({ error: { status: 'UNAUTHENTICATED' } });
    expect(server.disconnect('ann')).toBe(0);
    expect(otherLine.socket.readyState).toBe(WebSocket.OPEN);
    await eventually(async () => {
      expect(await get(`${url}/healthz`)).toMatchObject({ streams: 2 });
    });
    const session = await server.app.agent('chat').getSession('long', { owner: 'ann' });
    expect(session?.running).toBe(runId);
    await other.body?.cancel();
    otherLine.socket.terminate();
    await server.close();
  });

  test("stops its runs with onDisconnect: 'abort'", async () => {
    const server = await start({ onDisconnect: 'abort' });
    const stream = await streamTurn(server.url, 'hang', {
      init: { sessionId: 'stopped' },
      headers: as('ann'),
    });
    await readEvents(stream).next();
    expect(server.disconnect('ann')).toBe(1);
    await eventually(async () => {
      const chat = server.app.agent('chat');
      const session = await chat.getSession('stopped', { owner: 'ann' });
      expect(session).toMatchObject({ turnCount: 1 });
      expect(session?.running).toBeUndefined();
    });
    await server.close();
  });

  test('is noticed by authenticating long connections again', async () => {
    const server = await start({ reauthenticate: 50 });
    const { url } = server;
    const stream = await streamTurn(url, 'hang', { headers: as('ann') });
    const line = await dial(url, {});
    // Browsers have it in the first frame only.
    line.send({ type: 'init', ref: 1, authorization: 'ann' });
    await eventually(() => expect(line.frames).toHaveLength(1));
    const before = asked;
    await eventually(() => expect(asked).toBeGreaterThan(before + 4));
    expect(line.socket.readyState).toBe(WebSocket.OPEN);
    valid.delete('ann');
    expect(await line.closed).toBe(1008);
    await stream.text();
    // No connection is left to ask for.
    await eventually(async () => {
      expect(await get(`${url}/healthz`)).toMatchObject({ streams: 0 });
    });
    await server.close();
  });
});
