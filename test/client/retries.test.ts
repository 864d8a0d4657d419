import { afterAll, beforeAll, expect, test } from 'vitest';
import { client } from '../../src/client/index.ts';
import type { Output } from '../../src/protocol/turn.ts';
import { type CuttableLine, cuttableLine } from '../browser/support/cuttable-line.ts';
import { eventually } from '../support/eventually.ts';
import { serveTestApp } from './support/served.ts';

let served: Awaited<ReturnType<typeof serveTestApp>>;
let line: CuttableLine;
beforeAll(async () => {
  served = await serveTestApp();
  line = await cuttableLine(served.url);
});
afterAll(async () => {
  await line[Symbol.asyncDispose]();
  await served[Symbol.asyncDispose]();
});

const quick = { delay: 5 };

/** A fetch that loses the answers to the first turns that are sent, after the server has had them. */
function losing(count: number): { readonly fetch: typeof fetch; readonly sent: string[] } {
  const sent: string[] = [];
  return {
    sent,
    async fetch(target, init) {
      const response = await fetch(target, init);
      if (init?.method !== 'POST') return response;
      sent.push(String(init.body));
      if (sent.length > count) return response;
      await response.body?.cancel();
      throw new TypeError('fetch failed');
    },
  };
}

/** How often the model was asked this. */
function asked(text: string): number {
  return served.model.requests.filter(({ messages }) =>
    messages.at(-1)?.content.some((part) => 'text' in part && part.text === text),
  ).length;
}

test('S219: a turn whose answer was lost is sent again under the same id, and runs once', async () => {
  const { fetch, sent } = losing(2);
  const agent = client({ url: served.url, agent: 'chat', fetch, reconnect: quick });
  const { message, sessionId, snapshotId } = await agent.runText('say lost over HTTP');
  expect(message?.content).toEqual([{ text: 'lost over HTTP' }]);
  expect(sent).toHaveLength(3);
  expect(new Set(sent).size).toBe(1);
  expect(asked('say lost over HTTP')).toBe(1);
  const session = await served.chat.getSession(sessionId);
  expect(session).toMatchObject({ turnCount: 1, headId: snapshotId });
});

test('S219: an id of the caller is used over HTTP and over a WebSocket, by any client', async () => {
  const requestId = 'order 1';
  const one = client({ url: served.url, agent: 'chat' });
  const first = await one.runText('say once', { requestId });
  expect(await one.chat().send('say once', { requestId })).toEqual(first);
  const two = client({ url: served.url, agent: 'chat', transport: 'websocket' });
  expect(await two.runText('say once', { requestId })).toMatchObject({
    snapshotId: first.snapshotId,
    message: first.message,
  });
  await expect(two.runText('say twice', { requestId })).rejects.toMatchObject({
    status: 'INVALID_ARGUMENT',
  });
  expect(asked('say once')).toBe(1);
});

test('S219: Idempotency-Key in the header is the requestId of the body', async () => {
  const post = async (headers: Record<string, string>, body: object): Promise<Response> =>
    await fetch(`${served.url}/agents/chat/turns`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', ...headers },
      body: JSON.stringify(body),
    });
  const input = { message: { role: 'user', content: [{ text: 'say by header' }] } };
  const key = { 'idempotency-key': 'key 1' };
  const first = (await (await post(key, { input })).json()) as Output;
  expect(first.snapshotId).toBeDefined();
  expect(await (await post(key, { input })).json()).toEqual(first);
  expect(await (await post({}, { input, requestId: 'key 1' })).json()).toEqual(first);
  expect((await post(key, { input, requestId: 'key 2' })).status).toBe(400);
  expect(asked('say by header')).toBe(1);
});

test('S219: an agent that cannot keep ids takes turns without one, and a lost answer is UNAVAILABLE', async () => {
  const { fetch, sent } = losing(1);
  const agent = client({ url: served.url, agent: 'portable', fetch, reconnect: quick });
  await expect(agent.runText('say x')).rejects.toMatchObject({ status: 'UNAVAILABLE' });
  expect(sent).toHaveLength(1);
  expect((await agent.runText('say y')).message?.content).toEqual([{ text: 'y' }]);
  await expect(agent.runText('say z', { requestId: 'mine' })).rejects.toMatchObject({
    status: 'FAILED_PRECONDITION',
  });
});

test('S219: what waited behind a turn when its socket was cut is sent again, and runs once', async () => {
  const agent = client({ url: line.url, agent: 'chat', reconnect: quick });
  const connection = agent.streamBidi();
  await connection.sendText('wait for socket');
  const waiting = [connection.sendText('say second'), connection.sendText('say third')];
  for await (const { modelChunk } of connection.receive()) if (modelChunk) break;
  await Promise.all(waiting);
  line.cut();
  served.letGo('socket');
  connection.close();
  const texts: string[] = [];
  for await (const { modelChunk } of connection.receive()) {
    for (const part of modelChunk?.content ?? []) if ('text' in part) texts.push(part.text);
  }
  expect(texts.slice(-2)).toEqual(['second', 'third']);
  const { sessionId, message } = await connection.output();
  expect(message?.content).toEqual([{ text: 'third' }]);
  expect([asked('say second'), asked('say third')]).toEqual([1, 1]);
  expect(await served.chat.getSession(sessionId)).toMatchObject({ turnCount: 3 });
});

test('S219: an input that was on its way when its socket was cut is sent again, and runs once', async () => {
  const agent = client({ url: line.url, agent: 'chat', reconnect: quick });
  const connection = agent.streamBidi();
  await connection.sendText('say one');
  for await (const { turnEnd } of connection.receive()) if (turnEnd) break;
  const sent = connection.sendText('say on its way');
  line.cut();
  await sent;
  let text = '';
  for await (const { modelChunk } of connection.turn()) {
    for (const part of modelChunk?.content ?? []) if ('text' in part) text += part.text;
  }
  expect(text).toBe('on its way');
  const { sessionId } = await connection.output();
  await eventually(async () => (await served.chat.listRuns()).items.length === 0);
  expect(asked('say on its way')).toBe(1);
  expect(await served.chat.getSession(sessionId)).toMatchObject({ turnCount: 2 });
});
