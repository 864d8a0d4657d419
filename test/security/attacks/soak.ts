import { once } from 'node:events';
import { type Attack, countOf } from '../attack.ts';
import { openSocket, times } from '../socket.ts';

/**
 * Steps in a second. It looks for what stays behind, not for the most that a server can take: a server that is never idle
 * says nothing about that.
 */
const perSecond = 50;

/**
 * Steps before the first look, as fast as they go. Until then caches fill and V8 compiles: after 1000 steps, its code still
 * grows by 4 % of the heap; after 10000, the heap grows by 2 % in 600 s.
 */
const warmUp = 10_000;

/** Mixed load with cut connections ends where it began. */
export const attack: Attack = {
  name: 'soak',
  setup: { limits: { streamsPerPrincipal: 1000, turnsPerPrincipal: 1000 } },
  async run({ url, settle, check, note }) {
    const seconds = countOf('SOAK', 60);
    let requests = 0;
    await times(warmUp, 24, () => step(url, requests++));
    const before = await settle();
    const started = performance.now();
    await times(seconds * perSecond, 24, async (at) => {
      const early = started + (at / perSecond) * 1000 - performance.now();
      if (early > 0) await new Promise((resolve) => setTimeout(resolve, early));
      // A machine that cannot keep up does less, it does not take longer.
      if (performance.now() - started > seconds * 1000) return;
      await step(url, requests++);
    });
    const after = await settle();
    note(`heap ${before.heapBytes} bytes, then ${after.heapBytes}`);
    note(`files ${before.handles}, then ${after.handles}`);
    note(`timers ${before.timers}, then ${after.timers}`);
    const grown = after.heapBytes / before.heapBytes;
    check(grown < 1.05, `the heap grew by ${((grown - 1) * 100).toFixed(1)} %`);
    check(after.timers <= before.timers, `timers: ${before.timers}, then ${after.timers}`);
    const files = Math.max(before.handles * 1.05, before.handles + 3);
    check(after.handles <= files, `files: ${before.handles}, then ${after.handles}`);
    return requests;
  },
};

const post = (url: string, body: object, at: number, headers = {}): Promise<Response> =>
  fetch(url, {
    method: 'POST',
    headers: { authorization: `Bearer user-${at % 20}`, ...headers },
    body: JSON.stringify(body),
  });

async function step(url: string, at: number): Promise<void> {
  // What the other nine steps have stored is deleted by the tenth, so that the length of the soak does not count.
  if (at % 10 === 9) return deleteSessions(url, Math.floor(at / 10));
  const input = { message: { role: 'user', content: [{ text: `count ${at % 20} 1` }] } };
  const init = { sessionId: `session-${at % 200}` };
  const stream = { accept: 'text/event-stream' };
  switch (at % 8) {
    case 0:
      return void (await (await post(`${url}/agents/chat/turns`, { input }, at)).text());
    case 1:
      return void (await (
        await post(`${url}/agents/chat/turns`, { input, init }, at, stream)
      ).text());
    case 2: {
      const leaving = new AbortController();
      const response = await fetch(`${url}/agents/chat/turns`, {
        method: 'POST',
        headers: { authorization: `Bearer user-${at % 20}`, ...stream },
        body: JSON.stringify({ input }),
        signal: leaving.signal,
      });
      await response.body?.getReader().read();
      return leaving.abort();
    }
    case 3:
      return void (await (
        await post(`${url}/genkit/chat?stream=true`, { data: input }, at)
      ).text());
    case 4: {
      const parts = [{ type: 'text', text: 'hello' }];
      const messages = [{ role: 'user', parts }];
      return void (await (await post(`${url}/ui/chat`, { id: `ui-${at}`, messages }, at)).text());
    }
    case 5: {
      const key = '/agent/chat';
      return void (await (
        await post(`${url}/api/runAction?stream=true`, { key, input }, at)
      ).text());
    }
    default: {
      const socket = await openSocket(url, { authorization: `Bearer user-${at % 20}` });
      socket.send('{"type":"init","ref":1}');
      await once(socket, 'message');
      socket.send(JSON.stringify({ type: 'input', input }));
      if (at % 2 === 0) {
        socket.send('{"type":"close"}');
        await once(socket, 'close');
      } else {
        await once(socket, 'message');
        socket.terminate();
      }
    }
  }
}

async function deleteSessions(url: string, at: number): Promise<void> {
  const headers = { authorization: `Bearer user-${at % 20}` };
  const sessions = `${url}/agents/chat/sessions`;
  const { items } = await (await fetch(`${sessions}?limit=100`, { headers })).json();
  for (const { sessionId } of items) {
    // One that is being worked on is refused, and deleted the next time.
    const response = await fetch(`${sessions}/${sessionId}`, { method: 'DELETE', headers });
    await response.text();
  }
}
