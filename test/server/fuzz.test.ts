import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import fc from 'fast-check';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { isStatus } from '../../src/core/error.ts';
import { type Call, call, remember } from './fuzz-calls.ts';
import { get, startServer } from './kit.ts';

const total = process.env.LONG === '1' ? 4_000 : 2000;

let server: Awaited<ReturnType<typeof startServer>>;
const failures: string[] = [];

beforeAll(async () => {
  server = await startServer({
    keepAlive: 1000,
    limits: { bodyBytes: 20_000 },
    log: (entry) => {
      // A model that fails is reported too, with its phase; of a request nothing may fail.
      if (entry.msg === 'failed' && entry.phase === undefined) failures.push(JSON.stringify(entry));
    },
  });
});
afterAll(() => server.close());

test(
  `${total} requests of all kinds never end in a 500, a hang, or a leak`,
  async () => {
    const calls = fc.sample(call, { numRuns: total, seed: 20261115 });
    const statuses = new Map<number, number>();
    const warmUp = Math.floor(total / 2);
    await sendAll(calls.slice(0, warmUp), statuses);
    const before = await heapAfterErasing();
    await sendAll(calls.slice(warmUp), statuses);
    const after = await heapAfterErasing();
    expect(failures).toEqual([]);
    expect([...statuses.keys()].filter((status) => status === 500)).toEqual([]);
    // Most are refused, but enough get through to mean something.
    expect(statuses.get(200)).toBeGreaterThan(total / 20);
    expect(statuses.get(400)).toBeGreaterThan(total / 20);
    expect(statuses.get(404)).toBeGreaterThan(total / 20);
    expect(after).toBeLessThan(before * 1.1);
    expect(await get(`${server.url}/healthz`)).toMatchObject({
      status: 'ok',
      streams: 0,
      turns: 0,
    });
  },
  Math.max(600_000, total * 60),
);

async function sendAll(calls: readonly Call[], statuses: Map<number, number>): Promise<void> {
  const queue = calls.values();
  const worker = async (): Promise<void> => {
    for (const next of queue) {
      const status = await send(next);
      statuses.set(status, (statuses.get(status) ?? 0) + 1);
    }
  };
  await Promise.all(Array.from({ length: 16 }, worker));
}

async function send({
  endpoint: { method, at },
  query: search,
  text: content,
  headers,
}: Call): Promise<number> {
  const hasBody =
    method === 'POST' || method === 'PATCH' || method === 'PUT' || method === 'DELETE';
  const given = new Headers();
  for (const [name, header] of Object.entries(headers))
    if (header !== undefined) given.set(name, header);
  const response = await fetch(`${server.url}${at}${search}`, {
    method,
    headers: given,
    signal: AbortSignal.timeout(20_000),
    ...(hasBody && { body: content ?? '' }),
  });
  const answer = await response.text();
  remember(answer);
  if (response.status >= 400 && method !== 'HEAD') {
    const error = JSON.parse(answer);
    expect(isStatus(error.status)).toBe(true);
    expect(error.message.length).toBeLessThanOrEqual(400);
  }
  return response.status;
}

// What the requests have stored is not a leak: it is erased before the heap is looked at.
async function heapAfterErasing(): Promise<number> {
  for (const agent of ['chat', 'busy']) {
    for (;;) {
      const { items } = await get(`${server.url}/agents/${agent}/sessions?limit=100`);
      if (items.length === 0) break;
      for (const { sessionId, running } of items) {
        if (running) {
          await fetch(`${server.url}/agents/${agent}/snapshots/${running}/abort`, {
            method: 'POST',
          });
        }
        await fetch(`${server.url}/agents/${agent}/sessions/${encodeURIComponent(sessionId)}`, {
          method: 'DELETE',
        });
      }
    }
  }
  setFlagsFromString('--expose-gc');
  const gc = runInNewContext('gc') as () => void;
  for (let at = 0; at < 3; at++) {
    gc();
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
  return process.memoryUsage().heapUsed;
}
