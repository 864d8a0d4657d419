import { once } from 'node:events';
import { createServer, type IncomingMessage } from 'node:http';
import { type AddressInfo, connect } from 'node:net';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { joinPieces } from './body.ts';

// Reads one request at a time, and keeps what came.
let arrived: { text: string; pieces: number; error?: unknown };
const server = createServer((incoming, outgoing) => {
  joinPieces(incoming);
  void read(incoming).then(() => outgoing.end('done'));
});

async function read(incoming: IncomingMessage): Promise<void> {
  arrived = { text: '', pieces: 0 };
  try {
    for await (const piece of incoming) {
      arrived.text += piece;
      arrived.pieces++;
    }
  } catch (error) {
    arrived.error = error;
  }
}

beforeAll(async () => {
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
});
afterAll(() => void server.close());

const chunk = (text: string): string => `${text.length.toString(16)}\r\n${text}\r\n`;

async function send(...writes: readonly string[]): Promise<string> {
  const socket = connect((server.address() as AddressInfo).port, '127.0.0.1');
  let answer = '';
  socket.on('data', (data) => {
    answer += data;
  });
  socket.on('error', () => {});
  const closed = new Promise((resolve) => socket.once('close', resolve));
  socket.write(
    'POST / HTTP/1.1\r\nhost: a\r\nconnection: close\r\ntransfer-encoding: chunked\r\n\r\n',
  );
  for (const text of writes) socket.write(text);
  socket.end('0\r\n\r\n');
  await closed;
  return answer;
}

test('pieces that arrive together are one', async () => {
  expect(await send(chunk('x').repeat(900))).toContain('done');
  expect(arrived.text).toBe('x'.repeat(900));
  // The network may cut them somewhere.
  expect(arrived.pieces).toBeLessThan(50);
});

test('a long body comes whole and in order', async () => {
  const texts = Array.from({ length: 300 }, (_, at) => `${at}-`.padEnd(20_000, 'abc'));
  expect(await send(...texts.map(chunk))).toContain('done');
  expect(arrived.text).toBe(texts.join(''));
});

test('too many small pieces end the connection', async () => {
  expect(await send(chunk('x').repeat(20_000))).not.toContain('done\r\n');
  expect(arrived.error).toMatchObject({ status: 'INVALID_ARGUMENT' });
  expect(arrived.text.length).toBeLessThanOrEqual(1000);
});
