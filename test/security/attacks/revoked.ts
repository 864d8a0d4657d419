import { once } from 'node:events';
import { type Attack, ann } from '../attack.ts';
import { openSocket } from '../socket.ts';

const turn = { input: { message: { role: 'user', content: [{ text: 'hang' }] } } };

/** After `disconnect`, nothing of a principal is connected. */
export const attack: Attack = {
  name: 'revoked access',
  async run({ url, disconnect, check }) {
    const streams = await Promise.all(
      Array.from({ length: 10 }, () =>
        fetch(`${url}/agents/chat/turns`, {
          method: 'POST',
          headers: { ...ann, accept: 'text/event-stream' },
          body: JSON.stringify(turn),
        }),
      ),
    );
    const sockets = await Promise.all(
      Array.from({ length: 10 }, async () => {
        const socket = await openSocket(url, ann);
        socket.send('{"type":"init","ref":1}');
        await once(socket, 'message');
        return socket;
      }),
    );
    const closed = sockets.map((socket) => once(socket, 'close'));
    const ended = await disconnect('ann');
    check(ended === 20, `${ended} of 20 connections were ended`);
    const all = Promise.all([...streams.map((stream) => stream.text()), ...closed]);
    const late = new Promise((resolve) => setTimeout(resolve, 10_000, 'late').unref());
    check((await Promise.race([all, late])) !== 'late', 'a connection stayed open');
    return 20;
  },
};
