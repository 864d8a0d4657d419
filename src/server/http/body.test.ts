import { once } from 'node:events';
import { createServer, type IncomingMessage } from 'node:http';
import { type AddressInfo, connect } from 'node:net';
import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { exceededBound, joinPieces } from './body.ts';

const any = Number.POSITIVE_INFINITY;

describe('depth', () => {
  test('brackets inside strings do not count', () => {
    const bounds = { depth: 1, values: any };
    expect(exceededBound('["[[[[", "\\"[[[[", "\\\\"]', bounds)).toBeUndefined();
    expect(exceededBound('["\\\\", [1]]', bounds)).toBe('depth');
  });

  test('agrees with a walk over the parsed value', () => {
    fc.assert(
      fc.property(fc.json({ maxDepth: 8 }), fc.integer({ min: 0, max: 8 }), (text, depth) => {
        const isDeeper = exceededBound(text, { depth, values: any }) === 'depth';
        expect(isDeeper).toBe(depthOf(JSON.parse(text)) > depth);
      }),
    );
  });

  test('a text that never ends is looked through once', () => {
    const started = performance.now();
    const text = `"${'\\"'.repeat(2_000_000)}`;
    expect(exceededBound(text, { depth: 5, values: any })).toBeUndefined();
    expect(performance.now() - started).toBeLessThan(2000);
  });
});

describe('values', () => {
  test('commas and brackets inside strings do not count', () => {
    expect(exceededBound('["a,b,[,{"]', { depth: any, values: 2 })).toBeUndefined();
  });

  test('no text has more values than were counted, and the count is at most twice as many', () => {
    fc.assert(
      fc.property(fc.json({ maxDepth: 6 }), (text) => {
        const values = countOf(JSON.parse(text));
        expect(exceededBound(text, { depth: any, values: values * 2 })).toBeUndefined();
        if (values === 1) return;
        expect(exceededBound(text, { depth: any, values: values - 1 })).toBe('values');
      }),
    );
  });
});

test('numbers and gaps of any length are refused, texts are not', () => {
  const bounds = { depth: any, values: any };
  const long = 100_000;
  for (const text of [
    `[${'1'.repeat(long)}]`,
    `[1,${'1'.repeat(long)},2]`,
    '1'.repeat(long),
    `[${' '.repeat(long)}"a"]`,
    `{"a":${' '.repeat(long)}1}`,
    `{}${' '.repeat(long)}`,
  ]) {
    expect(exceededBound(text, bounds)).toBe('token');
  }
  for (const text of [
    `["${'1'.repeat(long)}"]`,
    `{"${' '.repeat(long)}":1}`,
    `["\\"${','.repeat(long)}"]`,
  ]) {
    expect(exceededBound(text, bounds)).toBeUndefined();
  }
});

function depthOf(value: unknown): number {
  if (typeof value !== 'object' || value === null) return 0;
  return 1 + Math.max(0, ...Object.values(value).map(depthOf));
}

function countOf(value: unknown): number {
  if (typeof value !== 'object' || value === null) return 1;
  return Object.values(value).reduce((sum: number, item) => sum + countOf(item), 1);
}

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
