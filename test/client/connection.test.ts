import { afterEach, expect, test } from 'vitest';
import { type AgentConnection, client } from '../../src/client/index.ts';
import { deliverIo } from '../support/deliver-io.ts';
import { type Loopback, type LoopbackRun, type Script, startLoopback } from './support/loopback.ts';

let server: Loopback | undefined;
afterEach(async () => {
  await server?.[Symbol.asyncDispose]();
  server = undefined;
});

async function serve(script: Script): Promise<Loopback> {
  server = await startLoopback(script);
  return server;
}

function open({ url }: Loopback, options = {}): AgentConnection {
  return client({ url, agent: 'chat', reconnect: { delay: 1, maxDelay: 2 } }).streamBidi(options);
}

const echo: Script = (run, input) => {
  const part = input.message?.content[0];
  start(run);
  run.chunk({
    modelChunk: { content: [{ text: `echo ${part && 'text' in part ? part.text : ''}` }] },
  });
  finish(run);
};

function start(run: LoopbackRun): void {
  run.chunk({ turnStart: { sessionId: 's1', snapshotId: run.id, turnIndex: 0 } });
}

function finish(run: LoopbackRun, finishReason: 'stop' | 'aborted' = 'stop'): void {
  run.chunk({ snapshotCreated: run.id, turnEnd: { snapshotId: run.id, finishReason } });
  run.end({ finishReason, snapshotIds: [run.id] });
}

async function readTurn(
  connection: AgentConnection,
  onText: (soFar: string) => void = () => {},
): Promise<string> {
  let text = '';
  for await (const { modelChunk } of connection.turn()) {
    for (const part of modelChunk?.content ?? []) if ('text' in part) text += part.text;
    onText(text);
  }
  return text;
}

test('many turns go over one connection', async () => {
  const loopback = await serve(echo);
  const connection = open(loopback, { sessionId: 's1' });
  await connection.sendText('one');
  expect(await readTurn(connection)).toBe('echo one');
  await connection.sendText('two');
  expect(await readTurn(connection)).toBe('echo two');
  expect(await connection.output()).toMatchObject({
    snapshotId: 'run-2',
    snapshotIds: ['run-1', 'run-2'],
  });
  await connection.done;
  expect(loopback.frames.map(({ type }) => type)).toEqual(['init', 'input', 'input', 'close']);
  expect(loopback.frames[0]).toMatchObject({ init: { sessionId: 's1' } });
});

test('the authorization header goes along in the first frame', async () => {
  const loopback = await serve(echo);
  const headers = { authorization: 'Bearer x' };
  await client({ url: loopback.url, agent: 'chat', headers }).streamBidi().output();
  expect(loopback.frames[0]).toMatchObject({ type: 'init', authorization: 'Bearer x' });
});

test('an input that is refused rejects its send and leaves the connection open', async () => {
  const connection = open(await serve(echo));
  await expect(
    connection.sendMessage({ role: 'model', content: [{ text: 'x' }] }),
  ).rejects.toMatchObject({ status: 'INVALID_ARGUMENT' });
  await connection.sendText('ok');
  expect(await readTurn(connection)).toBe('echo ok');
});

test('sending on a closed connection fails at once', async () => {
  const connection = open(await serve(echo));
  await connection.output();
  await expect(connection.sendText('late')).rejects.toMatchObject({
    status: 'FAILED_PRECONDITION',
  });
});

test('a server that is not there ends the connection with UNAVAILABLE', async () => {
  const loopback = await serve(echo);
  await loopback[Symbol.asyncDispose]();
  server = undefined;
  const connection = open(loopback);
  await expect(connection.sendText('x')).rejects.toMatchObject({ status: 'UNAVAILABLE' });
  await expect(connection.output()).rejects.toMatchObject({ status: 'UNAVAILABLE' });
  await connection.done;
});

test('a turn whose socket is cut is followed to its end over HTTP', async () => {
  let running: LoopbackRun | undefined;
  const loopback = await serve((run) => {
    running = run;
    start(run);
    run.chunk({ modelChunk: { content: [{ text: 'before ' }] } });
  });
  const connection = open(loopback);
  await connection.sendText('x');
  let seen = '';
  const read = readTurn(connection, (soFar) => {
    seen = soFar;
  });
  await expect.poll(() => seen).toBe('before ');
  loopback.cutSockets();
  running?.chunk({ modelChunk: { content: [{ text: 'after' }] } });
  if (running) finish(running);
  expect(await read).toBe('before after');
  expect(loopback.seen.map(({ url, headers }) => [url, headers['last-event-id']])).toEqual([
    ['/agents/chat/snapshots/run-1/events', '1.1'],
  ]);
});

test('after a cut between turns the next one goes on there over a new socket', async () => {
  const loopback = await serve(echo);
  const connection = open(loopback);
  await connection.sendText('one');
  await readTurn(connection);
  loopback.cutSockets();
  await deliverIo();
  await connection.sendText('two');
  expect(await readTurn(connection)).toBe('echo two');
  expect(loopback.frames.filter(({ type }) => type === 'init')).toMatchObject([
    { init: {} },
    { init: { sessionId: 's1', snapshotId: 'run-1' } },
  ]);
  expect(await connection.output()).toMatchObject({ snapshotIds: ['run-1', 'run-2'] });
});

test('a cut of a client-managed connection is UNAVAILABLE: its state is gone', async () => {
  const loopback = await serve((run) =>
    run.chunk({ turnStart: { sessionId: 's1', turnIndex: 0 } }),
  );
  const connection = open(loopback);
  await connection.sendText('one');
  loopback.cutSockets();
  await expect(connection.output()).rejects.toMatchObject({ status: 'UNAVAILABLE' });
});

test('an abort keeps the partial answer and ends the connection', async () => {
  const loopback = await serve((run) => {
    start(run);
    run.stopped.signal.addEventListener('abort', () => finish(run, 'aborted'));
  });
  const connection = open(loopback);
  await connection.sendText('x');
  connection.abort();
  expect(await connection.output()).toMatchObject({ finishReason: 'aborted' });
});

test('the signal of the call aborts the connection', async () => {
  const loopback = await serve((run) => {
    start(run);
    run.stopped.signal.addEventListener('abort', () => finish(run, 'aborted'));
  });
  const stop = new AbortController();
  const connection = open(loopback, { signal: stop.signal });
  await connection.sendText('x');
  stop.abort();
  expect(await connection.output()).toMatchObject({ finishReason: 'aborted' });
});

test('a detach in the middle of a turn gives the output and ends the connection', async () => {
  const connection = open(await serve(start));
  await connection.sendText('x');
  expect(await connection.detach()).toMatchObject({
    finishReason: 'detached',
    snapshotId: 'run-1',
  });
  await connection.done;
});

test('single turns can go over a WebSocket as well', async () => {
  const loopback = await serve(echo);
  const agent = client({ url: loopback.url, agent: 'chat', transport: 'websocket' });
  const { stream, output } = agent.streamText('hi');
  const kinds = [];
  for await (const chunk of stream) kinds.push(...Object.keys(chunk));
  expect(kinds).toEqual(['turnStart', 'modelChunk', 'snapshotCreated', 'turnEnd']);
  expect(await output).toMatchObject({ snapshotId: 'run-1' });
  await expect(agent.run({ message: { role: 'model', content: [] } })).rejects.toMatchObject({
    status: 'INVALID_ARGUMENT',
  });
});

test('without a WebSocket class a connection says so', async () => {
  const loopback = await serve(echo);
  // As in a runtime that has none.
  const none = undefined as unknown as typeof WebSocket;
  const saved = globalThis.WebSocket;
  globalThis.WebSocket = none;
  try {
    await expect(open(loopback).output()).rejects.toMatchObject({ status: 'UNIMPLEMENTED' });
  } finally {
    globalThis.WebSocket = saved;
  }
});
