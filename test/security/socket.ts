import { once } from 'node:events';
import { WebSocket } from 'ws';

/** An open WebSocket to an agent. */
export async function openSocket(
  url: string,
  headers: Readonly<Record<string, string>> = {},
): Promise<WebSocket> {
  const socket = new WebSocket(`${url.replace('http', 'ws')}/agents/chat/connect`, {
    headers,
    perMessageDeflate: false,
  });
  const refused = Promise.withResolvers<never>();
  socket.on('error', refused.reject);
  refused.promise.catch(() => {});
  await Promise.race([once(socket, 'open'), refused.promise]);
  return socket;
}

/** The last frame that came before the socket closed, as JSON. */
// biome-ignore lint/suspicious/noExplicitAny: attacks look into whatever came
export async function lastFrame(socket: WebSocket): Promise<any> {
  let last = '{}';
  socket.on('message', (data) => {
    last = String(data);
  });
  await once(socket, 'close');
  return JSON.parse(last);
}

/** Calls a function this many times, with some of the calls at once. */
export async function times(
  count: number,
  atOnce: number,
  call: (at: number) => Promise<unknown>,
): Promise<void> {
  let next = 0;
  const worker = async (): Promise<void> => {
    while (next < count) await call(next++);
  };
  await Promise.all(Array.from({ length: Math.min(atOnce, count) }, worker));
}
