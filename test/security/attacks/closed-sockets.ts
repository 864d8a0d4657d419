import { once } from 'node:events';
import { type Attack, ann, countOf } from '../attack.ts';
import { openSocket, times } from '../socket.ts';

const input = JSON.stringify({
  type: 'input',
  input: { message: { role: 'user', content: [{ text: 'count 2' }] } },
});

const warmUp = 2000;

/** WebSockets that come and go leave nothing behind. */
export const attack: Attack = {
  name: 'closed sockets',
  setup: { limits: { streams: 100_000, streamsPerPrincipal: 100_000, turnsPerPrincipal: 1000 } },
  async run({ url, settle, check, note }) {
    const count = countOf('SOCKETS', 20_000);
    const visit = async (at: number): Promise<void> => {
      const socket = await openSocket(url, at % 4 === 3 ? {} : ann);
      socket.on('error', () => {});
      const closed = once(socket, 'close');
      if (at % 4 === 0) {
        socket.send('{"type":"init","ref":1}');
        await once(socket, 'message');
      } else if (at % 4 === 1) {
        socket.send('{"type":"init"}');
        if (at % 40 === 1) socket.send(input);
      }
      if (at % 3 === 0) socket.close();
      else socket.terminate();
      await closed;
    };
    // The first ones fill caches, and pools of the runtime.
    await times(warmUp, 50, visit);
    const before = await settle();
    await times(count, 50, visit);
    const after = await settle();
    // 10 KB for each would be 200 MB.
    const left = after.heapBytes - before.heapBytes;
    note(`${count} sockets left ${left} bytes`);
    check(left < count * 100, `${count} sockets left ${left} bytes`);
    check(after.timers <= before.timers, `timers: ${before.timers}, then ${after.timers}`);
    check(after.handles <= before.handles + 3, `files: ${before.handles}, then ${after.handles}`);
    return count + warmUp;
  },
};
