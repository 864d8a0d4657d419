import { type Attack, ann } from '../attack.ts';
import { lastFrame, openSocket } from '../socket.ts';

const input = { message: { role: 'user', content: [{ text: 'hello' }] } };
const ways: readonly (readonly [string, object])[] = [
  ['/agents/chat/turns', { input }],
  ['/genkit/chat', { data: input }],
  [
    '/ui/chat',
    { id: 'ui', messages: [{ role: 'user', parts: [{ type: 'text', text: 'hello' }] }] },
  ],
  ['/api/runAction', { key: '/agent/chat', input }],
];

/** A turn that `authorize` refuses is refused in every protocol. */
export const attack: Attack = {
  name: 'refused turns',
  setup: { refused: 'runTurn' },
  async run({ url, check }) {
    for (const [path, body] of ways) {
      const response = await fetch(`${url}${path}`, {
        method: 'POST',
        headers: ann,
        body: JSON.stringify(body),
      });
      await response.text();
      check(response.status === 403, `${path} answered ${response.status}`);
    }
    const socket = await openSocket(url, ann);
    const last = lastFrame(socket);
    socket.send('{"type":"init"}');
    socket.send(JSON.stringify({ type: 'input', input }));
    const { error } = await last;
    check(error?.status === 'PERMISSION_DENIED', `a WebSocket answered ${error?.status}`);
    return ways.length + 1;
  },
};
