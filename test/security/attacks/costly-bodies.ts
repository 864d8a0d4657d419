import { connect } from 'node:net';
import { type Attack, ann } from '../attack.ts';
import { lastFrame, openSocket } from '../socket.ts';

const mebibyte = 2 ** 20;

/** Repeats a value up to a number of bytes, or of values. */
function fill(
  value: string,
  { bytes = 8 * mebibyte - 200, most = Number.POSITIVE_INFINITY },
): string {
  const count = Math.min(most, Math.floor(bytes / (value.length + 1)));
  return Array<string>(count).fill(value).join(',');
}

const message = (content: string): string => `{"message":{"role":"user","content":[${content}]}}`;
const keys = (count: number): string =>
  Array.from({ length: count }, (_, at) => `"key-${at}":${at}`).join(',');

/** What a message may hold, and what it may not. */
const contents: Readonly<Record<string, string>> = {
  'empty parts, 8 MiB': fill('{}', {}),
  'empty parts, 293 KB': fill('{}', { bytes: 293_000 }),
  'empty parts within the limit': fill('{}', { most: 14_500 }),
  'wrong parts within the limit': fill('{"text":1}', { most: 14_500 }),
  'texts within the limit': fill('{"text":"a"}', { most: 14_500 }),
  'data within the limit': fill('{"data":1}', { most: 14_500 }),
  'metadata within the limit': fill('{"data":{},"metadata":{"a":{}}}', { most: 5_500 }),
  'the wrong one is the last': `${fill('{"text":"a"}', { most: 14_500 })},{}`,
  'many keys': `{"data":{${keys(29_500)}}}`,
  'many keys at the top': `{"text":"a",${keys(29_500)}}`,
  'deep within the limit': `{"data":${'['.repeat(100)}${']'.repeat(100)}}`,
  'too deep': '['.repeat(8 * mebibyte - 200),
  'a long text': `{"text":"${'x'.repeat(8 * mebibyte - 300)}"}`,
  'a text of escapes': `{"text":"${'\\u0041'.repeat(Math.floor((8 * mebibyte - 300) / 6))}"}`,
  'a text of quotes': `{"text":"${'\\"'.repeat(4 * mebibyte - 300)}"}`,
  'a text that never ends': `{"text":"${'\\"'.repeat(4 * mebibyte - 300)}`,
  'a long number': `{"data":${'1'.repeat(8 * mebibyte - 300)}}`,
  'many numbers': `{"data":[${fill('0.1234567890123456', { most: 29_500 })}]}`,
  'a long key': `{"${'k'.repeat(8 * mebibyte - 300)}":1}`,
  spaces: ' '.repeat(8 * mebibyte - 300),
};

/** How each protocol carries a message. */
const protocols: readonly (readonly [string, (content: string) => string])[] = [
  ['/agents/chat/turns', (content) => `{"input":${message(content)}}`],
  [
    '/agents/held/turns',
    (content) =>
      `{"init":{"state":{"messages":[{"role":"user","content":[${content}]}]}},"input":${message('{"text":"a"}')}}`,
  ],
  ['/genkit/chat', (content) => `{"data":${message(content)}}`],
  ['/ui/chat', (content) => `{"id":"ui","messages":[{"role":"user","parts":[${content}]}]}`],
  ['/api/runAction', (content) => `{"key":"/agent/chat","input":${message(content)}}`],
];

/** What one body or frame may cost: so many milliseconds, and so many times its size. */
const most = { blockedMs: 100, times: 10 };

/**
 * What a body may cost however small it is: the runtime fills its young generation, which is as large as this, before it
 * collects anything.
 */
const freeBytes = 64 * mebibyte;

/** One body or frame of up to 8 MiB, of whatever kind, costs no more than a moment. */
export const attack: Attack = {
  name: 'costly bodies',
  // Each body may block for 100 ms, and there is nothing but such bodies.
  limits: { blockedP99Ms: most.blockedMs },
  async run({ url, port, check, note, costOf }) {
    let requests = 0;
    const costs: { what: string; blockedMs: number; memoryBytes: number; times: number }[] = [];
    const measure = async (
      what: string,
      bytes: number,
      send: () => Promise<unknown>,
    ): Promise<void> => {
      requests++;
      const allowed = {
        blockedMs: most.blockedMs,
        memoryBytes: Math.max(bytes * most.times, freeBytes),
      };
      const { blockedMs, memoryBytes } = await costOf(send, allowed);
      costs.push({ what, blockedMs, memoryBytes, times: memoryBytes / bytes });
      const blocked = `${blockedMs.toFixed(0)} ms`;
      check(blockedMs <= allowed.blockedMs, `${what} blocked the event loop for ${blocked}`);
      const memory = `${memoryBytes} bytes, ${(memoryBytes / bytes).toFixed(1)} times its size`;
      check(memoryBytes <= allowed.memoryBytes, `${what} took ${memory}`);
    };
    for (const [what, content] of Object.entries(contents)) {
      for (const [path, bodyOf] of protocols) {
        const body = bodyOf(content);
        await measure(`${path}: ${what}`, body.length, async () => {
          const response = await fetch(`${url}${path}`, { method: 'POST', headers: ann, body });
          const answer = await response.text();
          check(response.status < 500, `${path} answered ${response.status} to ${what}`);
          // An answer may hold what was said, but an error is short.
          const isShort = answer.length < Math.max(2000, body.length * 2);
          check(isShort, `${path} answered ${answer.length} bytes to ${what}`);
        });
      }
      const first = `{"type":"init","init":{},"input":${message(content)}}`;
      await measure(`unknown socket: ${what}`, first.length, async () => {
        const socket = await openSocket(url);
        const last = lastFrame(socket);
        socket.send(first);
        const { error } = await last;
        const isRefused = ['UNAUTHENTICATED', 'INVALID_ARGUMENT'].includes(error?.status);
        check(isRefused, `an unknown client could send ${what}`);
      });
      const input = `{"type":"input","input":${message(content)}}`;
      await measure(`socket: ${what}`, first.length + input.length, async () => {
        const socket = await openSocket(url, ann);
        const last = lastFrame(socket);
        socket.send(first);
        socket.send(input);
        socket.send('{"type":"close"}');
        await last;
      });
    }
    await measure('a body byte by byte', 400_000, () => sendByBytes(port, 400_000));
    costs.sort((a, b) => b.blockedMs - a.blockedMs);
    for (const { what, blockedMs } of costs.slice(0, 5))
      note(`${blockedMs.toFixed(0)} ms  ${what}`);
    costs.sort((a, b) => b.memoryBytes - a.memoryBytes);
    for (const { what, memoryBytes, times } of costs.slice(0, 5)) {
      note(
        `${(memoryBytes / mebibyte).toFixed(0)} MiB, ${times.toFixed(1)} times its size  ${what}`,
      );
    }
    return requests;
  },
};

/** Sends a body one byte at a time, each as a piece of its own, until it is refused. */
async function sendByBytes(port: number, bytes: number): Promise<void> {
  const socket = connect(port, '127.0.0.1');
  let isOver = false;
  socket.on('data', () => {
    isOver = true;
  });
  const closed = new Promise<void>((resolve) => socket.once('close', () => resolve()));
  socket.on('error', () => {});
  socket.write(
    'POST /agents/chat/turns HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer ann\r\ntransfer-encoding: chunked\r\n\r\n',
  );
  for (let at = 0; at < bytes && !isOver; at += 1000) {
    socket.write('1\r\n \r\n'.repeat(1000));
    await new Promise((resolve) => setImmediate(resolve));
  }
  socket.end('2\r\n{}\r\n0\r\n\r\n');
  await closed;
}
