import fc from 'fast-check';
import { isStatus } from '../../../src/core/error.ts';
import { type Call, call, frames, remember } from '../../server/fuzz-calls.ts';
import { type Attack, ann, countOf } from '../attack.ts';
import { openSocket, times } from '../socket.ts';

/** Requests that are made at once. */
const batch = 500;

/** Requests and frames of all kinds, in every protocol, never end in a 500 or a crash. */
export const attack: Attack = {
  name: 'fuzz',
  setup: { limits: { bodyBytes: 20_000, failedAuthPerMinute: 1_000_000 } },
  async run({ url, check }) {
    const total = countOf('FUZZ', 100_000);
    for (let done = 0; done < total; done += batch) {
      const count = Math.min(batch, total - done);
      const seed = 20261115 + done;
      const calls = fc.sample(call, { numRuns: count, seed });
      // One in ten is a WebSocket.
      const talks = fc.sample(frames, { numRuns: Math.ceil(count / 10), seed });
      await times(count, 16, async (at) => {
        const talk = talks[at / 10];
        const next = calls[at];
        if (talk) await say(url, talk, at);
        else if (next) await send(url, next, check);
      });
    }
    return total;
  },
};

async function send(
  url: string,
  { endpoint: { method, at }, query, text, headers }: Call,
  check: (condition: boolean, breach: string) => void,
): Promise<void> {
  const hasBody = ['POST', 'PATCH', 'PUT', 'DELETE'].includes(method);
  const given = new Headers(Math.abs(at.length) % 20 === 0 ? {} : ann);
  for (const [name, value] of Object.entries(headers)) {
    if (value !== undefined) given.set(name, value);
  }
  const what = `${method} ${at}${query}`.slice(0, 120);
  try {
    const response = await fetch(`${url}${at}${query}`, {
      method,
      headers: given,
      signal: AbortSignal.timeout(20_000),
      ...(hasBody && { body: text ?? '' }),
    });
    const answer = await response.text();
    remember(answer);
    check(response.status < 500, `${what}: ${response.status} ${answer.slice(0, 200)}`);
    if (response.status < 400 || method === 'HEAD') return;
    check(isStatus(JSON.parse(answer).status), `${what}: not an error body`);
  } catch (error) {
    check(false, `${what}: ${String(error)}`);
  }
}

/** Says some frames, and leaves at some moment. */
async function say(url: string, talk: readonly string[], at: number): Promise<void> {
  const socket = await openSocket(url, at % 50 === 0 ? {} : ann);
  socket.on('message', (data) => remember(String(data)));
  for (const frame of talk) if (socket.readyState === socket.OPEN) socket.send(frame);
  if (at % 20 === 0) socket.send(Buffer.from([at % 256, 0, 255]));
  await new Promise<void>((resolve) => {
    socket.once('close', () => resolve());
    setTimeout(() => {
      if (at % 3 === 0) socket.close();
      else socket.terminate();
      resolve();
    }, at % 30);
  });
  // One that does not close by itself is cut.
  setTimeout(() => socket.terminate(), 1000).unref();
}
