import { type Attack, ann } from '../attack.ts';
import { lastFrame, openSocket, times } from '../socket.ts';

/** An address that guesses tokens is throttled; a client with a token that is known is not. */
export const attack: Attack = {
  name: 'guessing',
  async run({ url, check }) {
    await (await fetch(`${url}/agents`, { headers: ann })).text();
    const statuses = new Map<number, number>();
    await times(3000, 20, async (at) => {
      const headers = at % 100 === 0 ? ann : { authorization: `Bearer guess-${at}` };
      const response = await fetch(`${url}/agents`, { headers });
      await response.text();
      if (headers === ann) check(response.status === 200, `ann got ${response.status}`);
      else statuses.set(response.status, (statuses.get(response.status) ?? 0) + 1);
    });
    // A minute's worth, what came at once before it was counted, and what a slow machine gives time for.
    check((statuses.get(401) ?? 0) < 300, `${statuses.get(401)} guesses were judged`);
    check(statuses.has(429), 'no guess was throttled');
    const socket = await openSocket(url);
    const last = lastFrame(socket);
    socket.send('{"type":"init","authorization":"Bearer guess"}');
    const { error } = await last;
    check(error?.status === 'RESOURCE_EXHAUSTED', `a WebSocket answered ${error?.status}`);
    return 3002;
  },
};
