import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import {
  type Chunk,
  client,
  createClient,
  type RemoteAgent,
  type TypesOf,
} from '../../src/client/index.ts';
import { serveTestApp, type TestApp } from './support/served.ts';

type Chat = RemoteAgent<TypesOf<TestApp['chat']>>;

let served: Awaited<ReturnType<typeof serveTestApp>>;
beforeAll(async () => {
  served = await serveTestApp();
});
afterAll(() => served[Symbol.asyncDispose]());

function textOf(chunks: readonly Pick<Chunk, 'modelChunk'>[]): string {
  return chunks
    .flatMap(({ modelChunk }) => modelChunk?.content ?? [])
    .map((part) => ('text' in part ? part.text : ''))
    .join('');
}

async function collect<T>(items: AsyncIterable<T>): Promise<T[]> {
  const all: T[] = [];
  for await (const item of items) all.push(item);
  return all;
}

test('a server lists its agents and what their stores can do', async () => {
  const agents = await createClient({ url: served.url }).agents();
  expect(agents.map(({ name, metadata }) => [name, metadata.stateManagement])).toEqual([
    ['chat', 'server'],
    ['boss', 'server'],
    ['former', 'server'],
    ['portable', 'client'],
    ['counter', 'server'],
    ['closing', 'server'],
  ]);
  const info = await client({ url: served.url, agent: 'chat' }).describe();
  expect(info).toMatchObject({ name: 'chat', metadata: { detachable: true, timeline: true } });
});

describe.each(['http', 'websocket'] as const)('turns over %s', (transport) => {
  const open = (): Chat =>
    client<TestApp['chat']>({ url: served.url, agent: 'chat', transport, reconnect: { delay: 5 } });

  test('stream chunks and give an output', async () => {
    const { stream, output } = open().streamText('say one two three');
    const chunks = await collect(stream);
    expect(chunks[0]?.turnStart).toMatchObject({ turnIndex: 0 });
    expect(textOf(chunks)).toBe('one two three');
    expect(chunks.at(-1)?.turnEnd).toMatchObject({ finishReason: 'stop' });
    const { sessionId, snapshotId, message } = await output;
    expect(sessionId).toBe(chunks[0]?.turnStart?.sessionId);
    expect(snapshotId).toBe(chunks[0]?.turnStart?.snapshotId);
    expect(message?.content).toEqual([{ text: 'one two three' }]);
  });

  test('go on in a session, at its head or from a snapshot', async () => {
    const agent = open();
    const one = await agent.runText('say one');
    const two = await agent.runText('say two', { sessionId: one.sessionId });
    const other = await agent.runText('say other', { snapshotId: one.snapshotId ?? '' });
    const { items } = await agent.listSnapshots(one.sessionId, { includeOrphaned: true });
    expect(items.map(({ snapshotId, orphaned }) => [snapshotId, orphaned])).toEqual([
      [one.snapshotId, false],
      [two.snapshotId, true],
      [other.snapshotId, false],
    ]);
  });

  test('carry custom state, artifacts and tool calls', async () => {
    const agent = open();
    const { stream, output } = agent.streamText('note Lisbon');
    const chunks = await collect(stream);
    expect(chunks.flatMap(({ customPatch }) => customPatch ?? [])).not.toHaveLength(0);
    const { sessionId, artifacts } = await output;
    expect(artifacts).toEqual([{ name: 'notes.md', parts: [{ text: '# Lisbon' }] }]);
    const session = await agent.getSession(sessionId);
    expect(session?.state?.custom?.topics).toEqual(['Lisbon']);
  });

  test('an interrupt is resumed', async () => {
    const agent = open();
    const asked = await agent.runText('book a table');
    expect(asked.finishReason).toBe('interrupted');
    const request = asked.message?.content.find((part) => 'toolRequest' in part);
    if (!request) throw new Error('no request');
    expect(request.metadata).toMatchObject({ interrupt: { price: 40 } });
    const done = await agent.run(
      { resume: { restart: [{ toolRequest: request.toolRequest, metadata: { resumed: 'me' } }] } },
      { sessionId: asked.sessionId },
    );
    expect(done.message?.content).toEqual([{ text: '{"booked":"a table","by":"me"}' }]);
  });

  test('a failed turn is a result that names the last good snapshot', async () => {
    const agent = open();
    const good = await agent.runText('say one');
    const failed = await agent.runText('fail', { sessionId: good.sessionId, throwOnError: false });
    expect(failed).toMatchObject({ finishReason: 'failed', snapshotId: good.snapshotId });
    expect(failed.error?.status).toBe('INTERNAL');
  });

  test('misuse throws what the agent throws', async () => {
    const agent = open();
    await expect(agent.runText('x', { snapshotId: 'no-such' })).rejects.toMatchObject({
      status: 'NOT_FOUND',
    });
    await expect(agent.run({})).rejects.toMatchObject({ status: 'INVALID_ARGUMENT' });
    await expect(agent.runText('x', { state: { messages: [] } })).rejects.toMatchObject({
      status: 'FAILED_PRECONDITION',
    });
  });

  test('a signal stops the turn and keeps the partial answer', async () => {
    const agent = open();
    const stop = new AbortController();
    const { stream, output } = agent.streamText('hang', { signal: stop.signal });
    for await (const chunk of stream) if (chunk.modelChunk) stop.abort();
    const stopped = await output;
    expect(stopped.finishReason).toBe('aborted');
    const snapshot = await agent.getSnapshot({ snapshotId: stopped.snapshotId ?? '' });
    expect(snapshot).toMatchObject({ status: 'succeeded', finishReason: 'aborted' });
    expect(snapshot?.state?.messages?.at(-1)?.content).toEqual([{ text: 'half ' }]);
  });

  test('two turns at once on one session: the second is ABORTED', async () => {
    const agent = open();
    const { stream, output } = agent.streamText('slow 20', { sessionId: `busy-${transport}` });
    await stream[Symbol.asyncIterator]().next();
    await expect(agent.runText('x', { sessionId: `busy-${transport}` })).rejects.toMatchObject({
      status: 'ABORTED',
    });
    await output;
  });

  test('a client-managed agent takes its state along', async () => {
    const agent = client<TestApp['portable']>({ url: served.url, agent: 'portable', transport });
    const chat = agent.chat();
    await chat.send('say one');
    await chat.send('say two');
    expect(chat.state?.messages?.map(({ role }) => role)).toEqual([
      'user',
      'model',
      'user',
      'model',
    ]);
    expect(chat.snapshotId).toBeUndefined();
  });
});

test('over a WebSocket a stopped client-managed turn keeps its partial answer', async () => {
  const agent = client<TestApp['portable']>({
    url: served.url,
    agent: 'portable',
    transport: 'websocket',
  });
  const stop = new AbortController();
  const { stream, output } = agent.streamText('hang', { signal: stop.signal });
  for await (const chunk of stream) if (chunk.modelChunk) stop.abort();
  const { finishReason, state } = await output;
  expect(finishReason).toBe('aborted');
  expect(state?.messages?.at(-1)?.content).toEqual([{ text: 'half ' }]);
});

describe('connections', () => {
  test('many turns, the last left to the background', async () => {
    const agent = client<TestApp['chat']>({ url: served.url, agent: 'chat' });
    const connection = agent.streamBidi();
    await connection.sendText('say one');
    expect(textOf(await collect(connection.turn()))).toBe('one');
    await connection.sendText('slow 5');
    for await (const chunk of connection.receive()) if (chunk.modelChunk) break;
    const output = await connection.detach();
    expect(output.finishReason).toBe('detached');
    const events = await collect(agent.watch(output.snapshotId ?? ''));
    const seen = events.flatMap((event) => (event.type === 'chunk' ? [event.chunk] : []));
    expect(textOf(seen)).toBe('w0 w1 w2 w3 w4 ');
    expect(await agent.wait(output.snapshotId ?? '')).toMatchObject({ status: 'succeeded' });
  });

  test('an abort ends the connection with the partial answer', async () => {
    const connection = client({ url: served.url, agent: 'chat' }).streamBidi();
    await connection.sendText('hang');
    for await (const chunk of connection.receive()) if (chunk.modelChunk) break;
    connection.abort();
    expect(await connection.output()).toMatchObject({ finishReason: 'aborted' });
  });

  test('a bad start rejects everything', async () => {
    const connection = client({ url: served.url, agent: 'chat' }).streamBidi({
      snapshotId: 'no-such',
    });
    await connection.sendText('x').catch(() => {});
    await expect(connection.output()).rejects.toMatchObject({ status: 'NOT_FOUND' });
  });
});

describe('the timeline', () => {
  test('restore, fork, label, diff, sessions', async () => {
    const agent = client<TestApp['chat']>({ url: served.url, agent: 'chat' });
    const one = await agent.runText('say one', { sessionId: 'timeline' });
    const two = await agent.runText('note Porto', { sessionId: 'timeline' });
    const [first = '', second = ''] = [one.snapshotId, two.snapshotId];

    const diff = await agent.diff(first, second);
    expect(diff.messages.added.map(({ role }) => role)).toEqual(['user', 'model', 'tool', 'model']);
    expect(diff.artifacts).toMatchObject([{ name: 'notes.md', change: 'added' }]);

    expect(await agent.label(first, 'good')).toMatchObject({ label: 'good' });
    expect(await agent.restore(first)).toMatchObject({ snapshotId: first });
    expect((await agent.getSession('timeline'))?.headId).toBe(first);
    expect((await agent.getSnapshot({ sessionId: 'timeline' }))?.label).toBe('good');
    const page = await agent.listSnapshots('timeline', { limit: 1, includeOrphaned: true });
    expect(page.items).toHaveLength(1);
    const next = await agent.listSnapshots('timeline', {
      limit: 1,
      includeOrphaned: true,
      ...(page.next !== undefined && { cursor: page.next }),
    });
    expect(next.items[0]?.snapshotId).toBe(second);

    const forked = await agent.fork(second, { sessionId: 'forked' });
    expect(forked.sessionId).toBe('forked');
    expect((await agent.getSession('forked'))?.state?.custom?.topics).toEqual(['Porto']);

    await agent.updateSession('forked', { title: 'Another way', metadata: { a: 1 } });
    const { items } = await agent.listSessions({ query: 'Another' });
    expect(items).toMatchObject([{ sessionId: 'forked', title: 'Another way' }]);
    expect(await agent.deleteSession('forked')).toBe(true);
    expect(await agent.deleteSession('forked')).toBe(false);
    expect(await agent.getSession('forked')).toBeUndefined();
    expect(await agent.getSnapshot({ snapshotId: 'no-such' })).toBeUndefined();
    expect(await agent.abort('no-such')).toBeUndefined();
  });

  test('an agent that is not there is NOT_FOUND, not an unknown snapshot', async () => {
    const agent = client({ url: served.url, agent: 'no-such-agent' });
    await expect(agent.getSnapshot({ snapshotId: 'x' })).rejects.toMatchObject({
      status: 'NOT_FOUND',
    });
  });
});

test('a detached run is watched from its start, and aborted', async () => {
  const agent = client<TestApp['chat']>({ url: served.url, agent: 'chat' });
  const message = { role: 'user' as const, content: [{ text: 'hang' }] };
  const { finishReason, snapshotId = '' } = await agent.run({ message, detach: true });
  expect(finishReason).toBe('detached');
  const seen: string[] = [];
  for await (const event of agent.watch(snapshotId)) {
    if (event.type === 'end') seen.push(event.snapshot.status);
    else if (event.type === 'chunk' && event.chunk.modelChunk) {
      seen.push(textOf([event.chunk]));
      expect(await agent.abort(snapshotId)).toBe('aborted');
    }
  }
  expect(seen).toEqual(['half ', 'aborted']);
});

test('a wait ends with its signal', async () => {
  const agent = client<TestApp['chat']>({ url: served.url, agent: 'chat' });
  const message = { role: 'user' as const, content: [{ text: 'hang' }] };
  const { snapshotId = '' } = await agent.run({ message, detach: true });
  await expect(agent.wait(snapshotId, { signal: AbortSignal.timeout(50) })).rejects.toMatchObject({
    status: 'DEADLINE_EXCEEDED',
  });
  await agent.abort(snapshotId);
});
