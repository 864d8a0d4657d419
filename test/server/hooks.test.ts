/** Failures of `auth` and `authorize`, which users write: the owner of the app sees them, and clients get no details. */
import { once } from 'node:events';
import { afterEach, describe, expect, test } from 'vitest';
import { WebSocket } from 'ws';
import { type ErrorInfo, memoryStore, WaymarkError, waymark } from '../../src/index.ts';
import type { LogEntry, ServeOptions } from '../../src/server/index.ts';
import { eventually } from '../support/eventually.ts';
import { get, post, startServer, streamTurn, talkative, userInput } from './kit.ts';

const closers: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const close of closers.splice(0)) await close();
});

async function start(options: ServeOptions) {
  const reported: { error: unknown; info: ErrorInfo }[] = [];
  const onError = (error: unknown, info: ErrorInfo): void => void reported.push({ error, info });
  const app = waymark({ model: talkative(), store: memoryStore(), onError });
  app.defineAgent({ name: 'chat' });
  const all = { mcp: true, a2a: true, openai: true, agui: true };
  const server = await startServer({ app, ...all, ...options });
  closers.push(server.close);
  return { ...server, reported };
}

const broken = new TypeError('Cannot read properties of undefined (reading "secret")');
const breaks = (): never => {
  throw broken;
};
const ann = { principal: 'ann' };

const message = { messageId: 'm', role: 'ROLE_USER', parts: [{ text: 'hi' }] };
const rpc = { jsonrpc: '2.0', id: 1 };
/** One call per protocol. */
const calls: [string, (url: string) => Promise<Response>][] = [
  ['native', (url) => fetch(`${url}/agents/chat/sessions`)],
  ['a turn', (url) => post(`${url}/agents/chat/turns`, { input: userInput('hi') })],
  ['a stream', (url) => streamTurn(url, 'hi')],
  [
    'useChat',
    (url) =>
      post(`${url}/ui/chat`, {
        id: 'c',
        messages: [{ id: '1', role: 'user', parts: [{ type: 'text', text: 'hi' }] }],
      }),
  ],
  ['Genkit', (url) => post(`${url}/genkit/chat`, { data: userInput('hi') })],
  ['OpenAI', (url) => post(`${url}/openai/v1/responses`, { model: 'chat', input: 'hi' })],
  [
    'AG-UI',
    (url) =>
      post(`${url}/agui/chat`, {
        threadId: 't',
        runId: 'r',
        state: {},
        messages: [{ id: '1', role: 'user', content: 'hi' }],
        tools: [],
        context: [],
        forwardedProps: {},
      }),
  ],
  ['MCP', (url) => post(`${url}/mcp`, { ...rpc, method: 'tools/list' })],
  ['A2A', (url) => post(`${url}/a2a/chat`, { ...rpc, method: 'SendMessage', params: { message } })],
];

async function firstFrame(url: string): Promise<{ error?: { status: string; message: string } }> {
  const socket = new WebSocket(`${url.replace('http', 'ws')}/agents/chat/connect`);
  await once(socket, 'open');
  const answered = once(socket, 'message');
  socket.send(JSON.stringify({ type: 'init' }));
  const [data] = await answered;
  socket.terminate();
  return JSON.parse(String(data));
}

describe.each([
  ['auth', { auth: breaks }],
  ['authorize', { auth: () => ann, authorize: breaks }],
] as const)('S710 an exception in %s', (name, options) => {
  test.each(calls)('is reported, and an internal error for the client: %s', async (_, call) => {
    const log: LogEntry[] = [];
    const { url, reported } = await start({ ...options, log: (entry) => log.push(entry) });
    const response = await call(url);
    const text = await response.text();
    expect(text).not.toContain('secret');
    // The protocols over JSON-RPC and streams answer with their own form of an error.
    const isOwnForm = name === 'authorize' && response.status === 200;
    if (!isOwnForm) expect(response.status).toBe(500);
    expect(text).toMatch(/INTERNAL|unexpected error|internal|server_error/i);
    expect(reported).toEqual([{ error: broken, info: { phase: 'auth' } }]);
    const failed = log.filter(({ msg }) => msg === 'failed');
    expect(failed).toEqual([
      expect.objectContaining({
        phase: 'auth',
        error: expect.objectContaining({ name: 'TypeError' }),
      }),
    ]);
  });

  test('is reported over a WebSocket', async () => {
    const { url, reported } = await start(options);
    expect(await firstFrame(url)).toMatchObject({
      error: { status: 'INTERNAL', message: 'An unexpected error occurred.' },
    });
    expect(reported).toEqual([{ error: broken, info: { phase: 'auth' } }]);
  });
});

test.each([
  ['UNAUTHENTICATED', 401],
  ['PERMISSION_DENIED', 403],
  ['UNAVAILABLE', 503],
] as const)('S710 a WaymarkError of a hook is its answer: %s', async (status, code) => {
  const refuse = (): never => {
    throw new WaymarkError(status, 'Not now.');
  };
  for (const options of [{ auth: refuse }, { auth: () => ann, authorize: refuse }]) {
    const { url, reported } = await start(options);
    const response = await fetch(`${url}/agents/chat/sessions`);
    expect(response.status).toBe(code);
    expect(await response.json()).toMatchObject({ status, message: 'Not now.' });
    expect(await firstFrame(url)).toMatchObject({ error: { status } });
    expect(reported).toEqual([]);
  }
});

test.each([
  ['a string', 'ann', '`auth` returned a string. Return { principal }'],
  ['another name', { userId: 'ann' }, '`auth` returned an object without `principal`.'],
  ['an invalid id', { principal: '' }, 'a `principal` that is not a valid id'],
])('S710 an auth that returns %s is told what to return', async (_, returned, advice) => {
  const { url, reported } = await start({ auth: () => returned as never });
  expect(await get(`${url}/agents`)).toEqual({
    status: 'INTERNAL',
    message: 'An unexpected error occurred.',
  });
  expect(reported).toMatchObject([{ error: { message: expect.stringContaining(advice) } }]);
});

test('an auth that returns null refuses the request', async () => {
  const { url, reported } = await start({ auth: () => null as never });
  expect((await fetch(`${url}/agents`)).status).toBe(401);
  expect(reported).toEqual([]);
});

test('S710 failures of auth count as failed authentications', async () => {
  const { url } = await start({ auth: breaks, limits: { failedAuthPerMinute: 2 } });
  const statuses: number[] = [];
  for (let at = 0; at < 3; at++) statuses.push((await fetch(`${url}/agents`)).status);
  expect(statuses).toEqual([500, 500, 429]);
});

test('S710 an exception when a connection is authenticated again closes it', async () => {
  let isBroken = false;
  const auth = (): typeof ann => (isBroken ? breaks() : ann);
  const { url, reported } = await start({ auth, reauthenticate: 20 });
  const socket = new WebSocket(`${url.replace('http', 'ws')}/agents/chat/connect`);
  const closed = once(socket, 'close');
  await once(socket, 'open');
  const accepted = once(socket, 'message');
  socket.send(JSON.stringify({ type: 'init', ref: 1 }));
  await accepted;
  isBroken = true;
  expect((await closed)[0]).toBe(1008);
  await eventually(() => expect(reported[0]).toMatchObject({ error: broken }));
});
