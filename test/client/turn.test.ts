import fc from 'fast-check';
import { afterEach, expect, test } from 'vitest';
import { type Chunk, client, createClient, isWaymarkError } from '../../src/client/index.ts';
import { eventually } from '../support/eventually.ts';
import { movableClock } from '../support/movable-clock.ts';
import { type Loopback, type Script, startLoopback } from './support/loopback.ts';

let server: Loopback | undefined;
afterEach(async () => {
  await server?.[Symbol.asyncDispose]();
  server = undefined;
});

const quick = { delay: 1, maxDelay: 2 };

async function serve(script: Script): Promise<Loopback> {
  server = await startLoopback(script);
  return server;
}

/** A turn that says these words, one chunk each. */
function saying(...words: readonly string[]): Script {
  return async (run) => {
    run.chunk({ turnStart: { sessionId: 's1', snapshotId: run.id, turnIndex: 0 } });
    for (const text of words) {
      await new Promise((resolve) => setImmediate(resolve));
      run.chunk({ modelChunk: { content: [{ text }] } });
    }
    run.chunk({ snapshotCreated: run.id, turnEnd: { snapshotId: run.id, finishReason: 'stop' } });
    run.end({
      finishReason: 'stop',
      message: { role: 'model', content: [{ text: words.join('') }] },
    });
  };
}

async function collect<T>(items: AsyncIterable<T>): Promise<T[]> {
  const all: T[] = [];
  for await (const item of items) all.push(item);
  return all;
}

function textOf(chunks: readonly Pick<Chunk, 'modelChunk'>[]): string {
  return chunks
    .flatMap(({ modelChunk }) => modelChunk?.content ?? [])
    .map((part) => ('text' in part ? part.text : ''))
    .join('');
}

test('a turn is streamed, and its output comes at the end', async () => {
  const { url, seen } = await serve(saying('Hello ', 'wörld 🎒'));
  const { stream, output } = client({ url, agent: 'chat' }).streamText('Hi', { sessionId: 's1' });
  expect(textOf(await collect(stream))).toBe('Hello wörld 🎒');
  expect(await output).toMatchObject({
    sessionId: 's1',
    snapshotId: 'run-1',
    finishReason: 'stop',
  });
  expect(seen[0]).toMatchObject({
    method: 'POST',
    url: '/agents/chat/turns',
    headers: { accept: 'text/event-stream', 'content-type': 'application/json' },
    body: {
      init: { sessionId: 's1' },
      input: { message: { role: 'user', content: [{ text: 'Hi' }] } },
    },
  });
});

test('the output comes whether or not anybody reads the chunks', async () => {
  const { url } = await serve(saying('a', 'b'));
  const output = await client({ url, agent: 'chat' }).runText('Hi');
  expect(output.message?.content).toEqual([{ text: 'ab' }]);
});

test('leaving the loop ends nothing, and the next one goes on where it was left', async () => {
  const { url } = await serve(saying('a', 'b', 'c'));
  const { stream } = client({ url, agent: 'chat' }).streamText('Hi');
  for await (const chunk of stream) if (chunk.modelChunk) break;
  expect(textOf(await collect(stream))).toBe('bc');
});

test('wherever the line is cut, again and again, every chunk comes exactly once', async () => {
  const words = Array.from({ length: 30 }, (_, at) => `${at}ä漢🎒 `);
  const loopback = await serve(saying(...words));
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.integer({ min: 150, max: 1500 }), { maxLength: 12 }),
      async (cuts) => {
        const places = cuts.values();
        // The first line must live long enough to tell the id of the turn.
        loopback.cutAfter = () => places.next().value;
        const { stream, output } = client({
          url: loopback.url,
          agent: 'chat',
          reconnect: quick,
        }).streamText('Hi');
        expect(textOf(await collect(stream))).toBe(words.join(''));
        expect(await output).toMatchObject({ finishReason: 'stop' });
      },
    ),
    { numRuns: 40 },
  );
});

test('a line is taken up with the id of the last event that came whole', async () => {
  const loopback = await serve(saying('a', 'b', 'c'));
  const cuts = [300, undefined].values();
  loopback.cutAfter = () => cuts.next().value;
  await client({ url: loopback.url, agent: 'chat', reconnect: quick }).runText('Hi');
  expect(loopback.seen.map(({ method, url }) => `${method} ${url}`)).toEqual([
    'POST /agents/chat/turns',
    'GET /agents/chat/snapshots/run-1/events',
  ]);
  expect(loopback.seen[1]?.headers['last-event-id']).toMatch(/^1\.\d$/);
});

test('without reconnect a line that drops is UNAVAILABLE and names the turn', async () => {
  const loopback = await serve(saying('a', 'b', 'c'));
  loopback.cutAfter = () => 250;
  const { stream, output } = client({
    url: loopback.url,
    agent: 'chat',
    reconnect: false,
  }).streamText('Hi');
  await expect(output).rejects.toMatchObject({
    status: 'UNAVAILABLE',
    details: { snapshotId: 'run-1' },
  });
  await expect(collect(stream)).rejects.toMatchObject({ status: 'UNAVAILABLE' });
});

test('a line that keeps dropping without anything new is given up after so many tries', async () => {
  const loopback = await serve(saying('a'));
  const cuts = [250];
  loopback.cutAfter = () => cuts.shift() ?? 5;
  const agent = client({ url: loopback.url, agent: 'chat', reconnect: { ...quick, attempts: 3 } });
  await expect(agent.runText('Hi')).rejects.toMatchObject({ status: 'UNAVAILABLE' });
  expect(loopback.seen).toHaveLength(4);
});

test('a turn is not sent twice to a server that knows no request ids: it is UNAVAILABLE', async () => {
  const loopback = await serve(saying('a'));
  loopback.cutAfter = () => 30;
  const agent = client({ url: loopback.url, agent: 'chat', reconnect: quick });
  await expect(agent.runText('Hi')).rejects.toMatchObject({ status: 'UNAVAILABLE' });
  expect(loopback.seen.filter(({ method }) => method === 'POST')).toHaveLength(1);
});

test('a server that asks for patience is given it, and then asked again', async () => {
  const loopback = await serve(saying('a', 'b'));
  const cuts = [250, undefined].values();
  loopback.cutAfter = () => cuts.next().value;
  loopback.answers.set('GET /agents/chat/snapshots/run-1/events', {
    status: 429,
    headers: { 'retry-after': '0.05' },
    body: { status: 'RESOURCE_EXHAUSTED', message: 'Too many streams.' },
    times: 2,
  });
  const agent = client({ url: loopback.url, agent: 'chat', reconnect: { ...quick, attempts: 3 } });
  expect(await agent.runText('Hi')).toMatchObject({ finishReason: 'stop' });
  expect(loopback.seen.map(({ method }) => method)).toEqual(['POST', 'GET', 'GET', 'GET']);
});

test('a refusal on the way back is final', async () => {
  const loopback = await serve(saying('a', 'b'));
  loopback.cutAfter = () => 250;
  loopback.answers.set('GET /agents/chat/snapshots/run-1/events', {
    status: 401,
    body: { status: 'UNAUTHENTICATED', message: 'Say who you are.' },
  });
  const agent = client({ url: loopback.url, agent: 'chat', reconnect: quick });
  await expect(agent.runText('Hi')).rejects.toMatchObject({ status: 'UNAUTHENTICATED' });
});

test('a line on which nothing comes any more counts as dropped', async () => {
  const { clock, advance } = movableClock();
  const idleTimeout = 60_000;
  let stuck = true;
  const loopback = await serve(async (run) => {
    run.chunk({ turnStart: { sessionId: 's1', snapshotId: run.id, turnIndex: 0 } });
    await eventually(() => loopback.seen.length > 1);
    stuck = false;
    run.end({ finishReason: 'stop' });
  });
  // Answers the first request with a line that stays open and silent.
  const fetchOnce: typeof fetch = async (url, init) => {
    const response = await fetch(url, init);
    if (!stuck || !String(url).endsWith('/turns')) return response;
    const [body] = response.body?.tee() ?? [];
    const reader = body?.getReader();
    const first = await reader?.read();
    return new Response(
      new ReadableStream({
        start(controller) {
          controller.enqueue(first?.value);
          // The turn has been accepted; from now on nothing comes.
          setImmediate(() => advance(idleTimeout));
          init?.signal?.addEventListener('abort', () => controller.error(new Error('aborted')));
        },
      }),
    );
  };
  const agent = client({
    url: loopback.url,
    agent: 'chat',
    fetch: fetchOnce,
    clock,
    reconnect: { ...quick, idleTimeout, attempts: 50 },
  });
  expect(await agent.runText('Hi')).toMatchObject({ finishReason: 'stop' });
  expect(loopback.seen.length).toBeGreaterThan(1);
});

test('a takeover is told in its place among the chunks', async () => {
  const { url } = await serve((run) => {
    run.chunk({ turnStart: { sessionId: 's1', snapshotId: run.id, turnIndex: 0 } });
    run.chunk({ modelChunk: { content: [{ text: 'lost' }] } });
    run.reset();
    run.chunk({ modelChunk: { content: [{ text: 'kept' }] } });
    run.end();
  });
  const heard: string[] = [];
  const { stream } = client({ url, agent: 'chat' }).streamText('Hi', {
    onReset: (attempt) => heard.push(`reset ${attempt}`),
  });
  for await (const chunk of stream) heard.push(textOf([chunk]));
  expect(heard).toEqual(['', 'lost', 'reset 2', 'kept']);
});

test('a signal stops the turn on the server, and the partial answer comes as its output', async () => {
  const loopback = await serve(async (run) => {
    run.chunk({ turnStart: { sessionId: 's1', snapshotId: run.id, turnIndex: 0 } });
    run.chunk({ modelChunk: { content: [{ text: 'half' }] } });
    run.stopped.signal.addEventListener('abort', () => run.end({ finishReason: 'aborted' }));
  });
  const stop = new AbortController();
  const { stream, output } = client({ url: loopback.url, agent: 'chat' }).streamText('Hi', {
    signal: stop.signal,
  });
  for await (const chunk of stream) if (chunk.modelChunk) stop.abort();
  expect(await output).toMatchObject({ finishReason: 'aborted' });
  expect(loopback.seen.map(({ url }) => url)).toContain('/agents/chat/snapshots/run-1/abort');
});

test('a stop right after sending still reaches the turn', async () => {
  const { url } = await serve(async (run) => {
    run.stopped.signal.addEventListener('abort', () => run.end({ finishReason: 'aborted' }));
    await new Promise((resolve) => setTimeout(resolve, 30));
    run.chunk({ turnStart: { sessionId: 's1', snapshotId: run.id, turnIndex: 0 } });
  });
  const stop = new AbortController();
  const { output } = client({ url, agent: 'chat' }).streamText('Hi', { signal: stop.signal });
  setTimeout(() => stop.abort(), 5);
  expect(await output).toMatchObject({ finishReason: 'aborted' });
});

test('a turn without an id is cut off by its signal', async () => {
  const { url } = await serve((run) => {
    run.chunk({ turnStart: { sessionId: 's1', turnIndex: 0 } });
  });
  const stop = new AbortController();
  const { stream, output } = client({ url, agent: 'chat' }).streamText('Hi', {
    signal: stop.signal,
  });
  await stream[Symbol.asyncIterator]().next();
  stop.abort();
  await expect(output).rejects.toMatchObject({ status: 'CANCELLED' });
});

test('a signal that is aborted already sends nothing', async () => {
  const loopback = await serve(saying('a'));
  const run = client({ url: loopback.url, agent: 'chat' }).runText('Hi', {
    signal: AbortSignal.abort(),
  });
  await expect(run).rejects.toMatchObject({ status: 'CANCELLED' });
  expect(loopback.seen).toEqual([]);
});

test('errors have the status and details of their body', async () => {
  const loopback = await serve(saying('a'));
  loopback.answers.set('POST /agents/chat/turns', {
    status: 409,
    body: {
      status: 'ABORTED',
      message: 'The session is being worked on.',
      details: { running: 'x' },
    },
  });
  const error = await client({ url: loopback.url, agent: 'chat' })
    .runText('Hi')
    .catch((caught: unknown) => caught);
  expect(isWaymarkError(error)).toBe(true);
  expect(error).toMatchObject({ status: 'ABORTED', details: { running: 'x' } });
});

test('an error event on the stream is that error', async () => {
  const { url } = await serve((run) =>
    run.fail({ status: 'INVALID_ARGUMENT', message: 'No input.' }),
  );
  await expect(client({ url, agent: 'chat' }).run({})).rejects.toMatchObject({
    status: 'INVALID_ARGUMENT',
    message: 'No input.',
  });
});

test('an answer that is not ours is told by its HTTP status', async () => {
  const loopback = await serve(saying());
  loopback.answers.set('GET /agents', { status: 502, body: '<html>Bad gateway</html>' });
  await expect(createClient({ url: loopback.url }).agents()).rejects.toMatchObject({
    status: 'UNAVAILABLE',
  });
  loopback.answers.set('GET /agents', { body: '<html>Hello</html>' });
  await expect(createClient({ url: loopback.url }).agents()).rejects.toMatchObject({
    status: 'UNKNOWN',
  });
});

test('a server that is not there is UNAVAILABLE', async () => {
  const { url } = await serve(saying());
  await server?.[Symbol.asyncDispose]();
  server = undefined;
  await expect(client({ url, agent: 'chat' }).runText('Hi')).rejects.toMatchObject({
    status: 'UNAVAILABLE',
  });
});

test('headers may be a function, which is asked before every request', async () => {
  const loopback = await serve(saying('a', 'b'));
  const cuts = [250, undefined].values();
  loopback.cutAfter = () => cuts.next().value;
  let asked = 0;
  const headers = async () => ({ authorization: `Bearer ${++asked}` });
  await client({ url: `${loopback.url}/`, agent: 'chat', headers, reconnect: quick }).runText('Hi');
  expect(loopback.seen.map((request) => request.headers.authorization)).toEqual([
    'Bearer 1',
    'Bearer 2',
  ]);
});

test('an id never becomes another path', async () => {
  const loopback = await serve(saying());
  loopback.answers.set('GET /agents/chat', { body: { name: 'chat' } });
  const agent = client({ url: loopback.url, agent: 'chat' });
  expect(await agent.getSnapshot({ snapshotId: '../sessions/x?y#z' })).toBeUndefined();
  expect(loopback.seen[0]?.url).toBe('/agents/chat/snapshots/..%2Fsessions%2Fx%3Fy%23z');
  for (const snapshotId of ['', '.', '..']) {
    await expect(agent.getSnapshot({ snapshotId })).rejects.toMatchObject({
      status: 'INVALID_ARGUMENT',
    });
  }
});

test('a chat follows its session from turn to turn', async () => {
  const loopback = await serve(saying('a'));
  const chat = client({ url: loopback.url, agent: 'chat' }).chat();
  await chat.send('one');
  await chat.send('two');
  expect(loopback.seen.map(({ body }) => (body as { init?: unknown }).init)).toEqual([
    {},
    { sessionId: 's1' },
  ]);
  expect(chat.snapshotId).toBe('run-2');
});

test('watching gives the events with their ids, and at the end the snapshot', async () => {
  const loopback = await serve(saying('a', 'b'));
  const agent = client({ url: loopback.url, agent: 'chat', reconnect: quick });
  await agent.runText('Hi');
  loopback.answers.set('GET /agents/chat/snapshots/run-1', {
    body: { snapshotId: 'run-1', status: 'succeeded' },
  });
  const events = await collect(agent.watch('run-1', { after: '1.1' }));
  expect(events.map((event) => (event.type === 'end' ? event.snapshot.status : event.id))).toEqual([
    '1.2',
    '1.3',
    'succeeded',
  ]);
  expect(await agent.wait('run-1')).toMatchObject({ status: 'succeeded' });
});
