import { afterAll, beforeAll, expect, test } from 'vitest';
import { type AgentConnection, client } from '../../src/client/index.ts';
import { type CuttableLine, cuttableLine } from '../browser/support/cuttable-line.ts';
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

async function readTurn(
  connection: AgentConnection,
  onText?: (text: string) => void,
): Promise<string> {
  let text = '';
  for await (const { modelChunk } of connection.turn()) {
    for (const part of modelChunk?.content ?? []) if ('text' in part) text += part.text;
    onText?.(text);
  }
  return text;
}

function open(): AgentConnection {
  return client({ url: line.url, agent: 'chat', reconnect: { delay: 5 } }).streamBidi();
}

test('a turn whose socket is cut comes to its end, and the next goes on after it', async () => {
  const connection = open();
  await connection.sendText('say one');
  expect(await readTurn(connection)).toBe('one');
  await connection.sendText('slow 12');
  let cuts = 0;
  const text = await readTurn(connection, (soFar) => {
    if (cuts === 0 && soFar.endsWith('w4 ')) {
      cuts++;
      line.cut();
    }
  });
  expect(cuts).toBe(1);
  expect(text).toBe(Array.from({ length: 12 }, (_, at) => `w${at} `).join(''));
  await connection.sendText('say three');
  expect(await readTurn(connection)).toBe('three');
  const { sessionId, snapshotIds } = await connection.output();
  expect(snapshotIds).toHaveLength(3);
  const session = await served.chat.getSession(sessionId);
  expect(session?.state?.messages).toHaveLength(6);
});

test('an abort after a cut still stops the turn and keeps the partial answer', async () => {
  const connection = open();
  await connection.sendText('hang');
  for await (const chunk of connection.receive()) if (chunk.modelChunk) break;
  line.cut();
  await new Promise((resolve) => setTimeout(resolve, 30));
  connection.abort();
  expect(await connection.output()).toMatchObject({ finishReason: 'aborted' });
});

test('an output that was asked for before the cut is still given', async () => {
  const connection = open();
  await connection.sendText('slow 10');
  const output = connection.output();
  for await (const chunk of connection.receive()) if (chunk.modelChunk) break;
  line.cut();
  expect((await output).message?.content).toEqual([
    { text: Array.from({ length: 10 }, (_, at) => `w${at} `).join('') },
  ]);
});

test('what is sent while a turn is being taken up waits for its end', async () => {
  const connection = open();
  await connection.sendText('slow 12');
  for await (const chunk of connection.receive()) if (chunk.modelChunk) break;
  line.cut();
  await new Promise((resolve) => setTimeout(resolve, 20));
  const sent = connection.sendText('say after');
  expect(await readTurn(connection)).toMatch(/w11 $/);
  await sent;
  expect(await readTurn(connection)).toBe('after');
  expect((await connection.output()).message?.content).toEqual([{ text: 'after' }]);
});

test('an input that waits when the socket is cut is sent again, after the turn that ran', async () => {
  const connection = open();
  await connection.sendText('slow 8');
  await connection.sendText('say later');
  for await (const chunk of connection.receive()) if (chunk.modelChunk) break;
  line.cut();
  const { message, sessionId } = await connection.output();
  expect(message?.content).toEqual([{ text: 'later' }]);
  expect(await served.chat.getSession(sessionId)).toMatchObject({ turnCount: 2 });
});

test('an abort of a connection that was cut between two turns ends it', async () => {
  const connection = open();
  await connection.sendText('say one');
  await readTurn(connection);
  line.cut();
  await new Promise((resolve) => setTimeout(resolve, 20));
  connection.abort();
  await connection.output();
  await expect(connection.sendText('x')).rejects.toMatchObject({ status: 'FAILED_PRECONDITION' });
});

test('a socket that has died without a word is noticed by its silence', async () => {
  const silent = await serveTestApp({ keepAlive: 50 });
  const frozen = await cuttableLine(silent.url);
  try {
    const reconnect = { delay: 5, idleTimeout: 400 };
    const connection = client({ url: frozen.url, agent: 'chat', reconnect }).streamBidi();
    await connection.sendText('slow 12');
    let isFrozen = false;
    const text = await readTurn(connection, () => {
      if (!isFrozen) frozen.freeze();
      isFrozen = true;
    });
    expect(text).toBe(Array.from({ length: 12 }, (_, at) => `w${at} `).join(''));
    // A quiet line that is open stays.
    await new Promise((resolve) => setTimeout(resolve, 1000));
    await connection.sendText('say still here');
    expect(await readTurn(connection)).toBe('still here');
    await connection.output();
  } finally {
    await frozen[Symbol.asyncDispose]();
    await silent[Symbol.asyncDispose]();
  }
});
