import { type Attack, ann } from '../attack.ts';
import { openSocket, times } from '../socket.ts';

/** Clients that never say who they are, with large frames or none, do not keep out those that do. */
export const attack: Attack = {
  name: 'unknown clients',
  async run({ url, check }) {
    let requests = 0;
    const large = JSON.stringify('x'.repeat(4 * 2 ** 20));
    const flood = times(1500, 100, async (at) => {
      // Those that are cut on the way are what is wanted.
      const socket = await openSocket(url).catch(() => undefined);
      requests++;
      if (at % 10 === 0) socket?.send(large);
    });
    let isFlooding = true;
    const known = (async () => {
      while (isFlooding) {
        const response = await fetch(`${url}/agents`, { headers: ann });
        await response.text();
        check(response.status === 200, `a known client was answered with ${response.status}`);
        requests++;
      }
    })();
    await flood;
    isFlooding = false;
    await known;
    return requests;
  },
};
