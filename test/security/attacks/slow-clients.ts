import { connect, type Socket } from 'node:net';
import { type Attack, ann } from '../attack.ts';

const head = (more: string): string =>
  `POST /agents/chat/turns HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer ann\r\n${more}`;
const upgrade =
  'GET /agents/chat/connect HTTP/1.1\r\nhost: localhost\r\nconnection: upgrade\r\nupgrade: websocket\r\nsec-websocket-version: 13\r\nsec-websocket-key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n';

/** How a client starts, and what it then sends a byte of now and then. */
const ways: readonly (readonly [start: string, drip: string])[] = [
  ['', ''],
  ['POST /ag', ''],
  [head('x: '), 'y'],
  [head('content-length: 5000\r\n\r\n{"input"'), ' '],
  [head('content-length: 5000\r\n\r\n{"input"'), ''],
  [head('transfer-encoding: chunked\r\n\r\n'), '1\r\n \r\n'],
  [upgrade, ''],
  [upgrade, '\x81'],
  [
    'GET /agents HTTP/1.1\r\nhost: localhost\r\nupgrade: websocket\r\nconnection: upgrade\r\n\r\n',
    '',
  ],
  ['hello\r\n\r\n', ''],
];

/** Slow and half-open clients are all cut in time; the server keeps no socket of theirs. */
export const attack: Attack = {
  name: 'slow clients',
  setup: { limits: { requestTimeout: 2000, authTimeout: 2000, stallTimeout: 2000 } },
  async run({ url, port, settle, handles, check }) {
    const before = await settle();
    const sockets: Socket[] = [];
    for (let at = 0; at < 300; at++) {
      const [start, drip] = ways[at % ways.length] ?? ['', ''];
      const socket = connect({ port, host: '127.0.0.1', allowHalfOpen: true });
      socket.on('error', () => {});
      socket.resume();
      if (start !== '') socket.write(start);
      if (drip !== '') {
        const timer = setInterval(() => socket.writable && socket.write(drip), 200);
        socket.once('close', () => clearInterval(timer));
      }
      sockets.push(socket);
    }
    const body = '{"input":{"message":{"role":"user","content":[{"text":"hello"}]}}}';
    const deadline = performance.now() + 12_000;
    let held = Number.POSITIVE_INFINITY;
    let turns = 0;
    while (held > 5 && performance.now() < deadline) {
      const response = await fetch(`${url}/agents/chat/turns`, {
        method: 'POST',
        headers: ann,
        body,
      });
      await response.text();
      check(response.status === 200, `a turn was answered with ${response.status}`);
      turns++;
      await new Promise((resolve) => setTimeout(resolve, 500));
      held = (await handles()) - before.handles;
    }
    check(held <= 5, `${held} sockets were still held`);
    for (const socket of sockets) socket.destroy();
    return sockets.length + turns;
  },
};
