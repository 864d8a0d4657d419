import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import fc from 'fast-check';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { isStatus } from '../../src/core/error.ts';
import { routes } from '../../src/protocol/routes.ts';
import { get, startServer, userInput } from './kit.ts';

const total = process.env.LONG === '1' ? 100_000 : 2000;

let server: Awaited<ReturnType<typeof startServer>>;
const failures: string[] = [];

beforeAll(async () => {
  server = await startServer({
    keepAlive: 1000,
    limits: { bodyBytes: 20_000 },
    log: (entry) => {
      if (entry.msg === 'failed') failures.push(JSON.stringify(entry));
    },
  });
});
afterAll(() => server.close());

const known = '0193b7a0-0000-7000-8000-000000000000';
const snapshots: string[] = [known];

const oddText = fc.oneof(
  fc.string({ unit: 'binary', maxLength: 40 }),
  fc.constantFrom(
    '',
    '..',
    '../..',
    '__proto__',
    'constructor',
    '\0',
    '%00',
    '%',
    'a'.repeat(300),
    '🙂',
    '\ud800',
    '-1',
    '1e999',
  ),
);
const id = fc.oneof(
  { weight: 3, arbitrary: fc.constantFrom('s1', 's2', 's3', 'chat', 'held') },
  { weight: 3, arbitrary: fc.nat().map((at) => snapshots[at % snapshots.length] ?? known) },
  { weight: 1, arbitrary: oddText },
);
const endpoints = [
  ...Object.values(routes).map(({ method, path }) => `${method} ${path}`),
  'POST /agents/:agent/turns',
  'POST /agents/:agent/turns',
  'GET /healthz',
  'GET /openapi.json',
  'POST /genkit/:agent',
  'POST /genkit/:agent/getSnapshot',
  'POST /genkit/:agent/abort',
  'POST /ui/:agent',
  'GET /ui/:agent/:session/stream',
  'POST /ui/:agent/:session/stop',
  'GET /ui/:agent/:session/messages',
  'GET /api/actions',
  'POST /api/runAction',
  'POST /api/cancelAction',
  'GET /api/__health',
  'GET /:other',
  'GET //:other//',
];
const rarely = <T>(usual: fc.Arbitrary<T>, odd: fc.Arbitrary<T>): fc.Arbitrary<T> =>
  fc.oneof({ weight: 9, arbitrary: usual }, { weight: 1, arbitrary: odd });
const endpoint = fc
  .tuple(
    fc.constantFrom(...endpoints),
    rarely(
      fc.constant(undefined),
      fc.constantFrom('GET', 'POST', 'PATCH', 'DELETE', 'PUT', 'OPTIONS', 'HEAD'),
    ),
    rarely(fc.constantFrom('chat', 'held', 'busy'), oddText),
    fc.infiniteStream(id),
  )
  .map(([template, other, agent, ids]) => {
    const [method = '', path = ''] = template.split(' ');
    const at = path
      .replace(':agent', safe(agent))
      .replace(/:\w+/g, () => safe(ids.next().value ?? ''));
    return { method: other ?? method, at };
  });
const query = fc.oneof(
  fc.constant(''),
  fc
    .array(
      fc.tuple(
        fc.constantFrom('limit', 'cursor', 'query', 'after', 'includeOrphaned', 'stream', 'x'),
        oddText,
      ),
      {
        maxLength: 3,
      },
    )
    .map((pairs) => `?${pairs.map(([name, value]) => `${name}=${safe(value)}`).join('&')}`),
);

const value: fc.Arbitrary<unknown> = fc.oneof(fc.jsonValue({ maxDepth: 4 }), oddText, id);
// The keys that bodies have, with whatever behind them, and now and then what belongs there.
const body: fc.Arbitrary<unknown> = fc.oneof(
  fc.record(
    {
      init: fc.oneof(
        fc.record({ snapshotId: id, sessionId: id, state: value }, { requiredKeys: [] }),
        value,
      ),
      input: fc.oneof(
        fc
          .constantFrom(
            'hello',
            'count 3',
            'transfer 3',
            'ask',
            'weather in Rome',
            'remember x',
            'fail',
          )
          .map(userInput),
        fc.record(
          {
            message: value,
            resume: fc.record({ respond: value, restart: value }, { requiredKeys: [] }),
            detach: fc.boolean(),
          },
          { requiredKeys: [] },
        ),
        value,
      ),
      data: fc.oneof(
        fc.record({ snapshotId: id, sessionId: id }, { requiredKeys: [] }),
        fc.constant(userInput('hi')),
        value,
      ),
      id,
      messages: fc.array(
        fc.record({
          role: fc.constantFrom('user', 'assistant', 'tool'),
          parts: fc.array(
            fc.record({
              type: fc.constantFrom('text', 'file', 'tool-x'),
              text: oddText,
              url: oddText,
            }),
            { maxLength: 3 },
          ),
        }),
        { maxLength: 3 },
      ),
      trigger: fc.constantFrom('submit-message', 'regenerate-message', 'x'),
      messageId: id,
      key: fc.constantFrom(
        '/agent/chat',
        '/tool/weather',
        '/model/scripted',
        '/agent-snapshot/chat',
        '/x',
      ),
      context: value,
      title: value,
      metadata: value,
      label: value,
      sessionId: id,
      traceId: value,
    },
    { requiredKeys: [] },
  ),
  value,
);
const text = fc.oneof(
  { weight: 6, arbitrary: body.map((content) => JSON.stringify(content)) },
  { weight: 1, arbitrary: fc.string({ unit: 'binary', maxLength: 200 }) },
  {
    weight: 1,
    arbitrary: fc
      .tuple(body, fc.nat(60))
      .map(([content, cut]) => (JSON.stringify(content) ?? '').slice(0, cut)),
  },
  {
    weight: 1,
    arbitrary: fc.constantFrom(
      '['.repeat(3000),
      `"${'a'.repeat(30_000)}"`,
      '{"__proto__":{"x":1}}',
    ),
  },
);
const call = fc.record({
  endpoint,
  query,
  text,
  headers: fc.record(
    {
      accept: fc.constantFrom('text/event-stream', 'application/json', '*/*', 'x'),
      'content-type': fc.constantFrom('application/json', 'text/plain', 'x'),
      'last-event-id': fc.constantFrom('1.0', '1.999999999', '0.0', 'x', '999999999.1', '1.1e3'),
      origin: rarely(fc.constant(undefined), fc.constantFrom('null', 'https://evil.example')),
      'accept-encoding': fc.constantFrom('gzip', 'identity', '*'),
      traceparent: fc.constantFrom('x', `00-${'a'.repeat(32)}-${'b'.repeat(16)}-01`),
    },
    { requiredKeys: [] },
  ),
});

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
  Math.max(60_000, total * 20),
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

type Call = typeof call extends fc.Arbitrary<infer T> ? T : never;

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
  for (const [, snapshotId] of answer.matchAll(/"snapshotId":"([0-9a-f-]{36})"/g)) {
    if (snapshotId && snapshots.length < 500) snapshots.push(snapshotId);
  }
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

// A path that fetch sends as it is.
function safe(part: string): string {
  return encodeURIComponent(part.toWellFormed()).replaceAll('.', '%2E');
}
