import fc from 'fast-check';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type FetchHandler, handler } from '../../src/server/index.ts';
import { createTestApp } from './kit.ts';

const total = process.env.LONG === '1' ? 2_000 : 1000;

const app = createTestApp();
const failures: string[] = [];
let fetch: FetchHandler;

beforeAll(() => {
  fetch = handler(app, {
    mcp: true,
    limits: { bodyBytes: 20_000 },
    log: (entry) => {
      // A model that fails is reported too, with its phase; of a request nothing may fail.
      if (entry.msg === 'failed' && entry.phase === undefined) failures.push(JSON.stringify(entry));
    },
  });
});
afterAll(() => app.close({ grace: 0 }));

const oddText = fc.oneof(
  fc.string({ unit: 'binary', maxLength: 30 }),
  fc.constantFrom('', '..', '__proto__', 'constructor', '\0', '\ud800', '🙂', 'a'.repeat(300)),
);
const rarely = <T>(usual: fc.Arbitrary<T>, odd: fc.Arbitrary<unknown>): fc.Arbitrary<unknown> =>
  fc.oneof({ weight: 9, arbitrary: usual }, { weight: 1, arbitrary: odd });

/** Ids, states and sessions that were answered before. */
const known: string[] = ['0193b7a0-0000-7000-8000-000000000000'];
const id = fc.oneof(
  fc.nat().map((at) => known[at % known.length] ?? ''),
  fc.constantFrom('s1', 's2'),
  oddText,
);

const message = fc.constantFrom('hello', 'count 3', 'transfer 7', 'ask', 'remember rain', 'fail');
const call = fc.record(
  {
    name: rarely(fc.constantFrom('chat', 'other', 'busy'), oddText),
    arguments: rarely(
      fc.record(
        { message: rarely(message, fc.anything()), sessionId: id, snapshotId: id },
        { requiredKeys: ['message'] },
      ),
      fc.anything(),
    ),
    requestState: rarely(id, fc.anything()),
    inputResponses: rarely(
      fc.dictionary(
        fc.oneof(
          id,
          fc.tuple(id, id).map(([a, b]) => `${a}:${b}`),
        ),
        fc.record({
          action: fc.constantFrom('accept', 'decline', 'cancel', 'x'),
          content: fc.anything(),
        }),
        { maxKeys: 3 },
      ),
      fc.anything(),
    ),
    task: fc.anything(),
  },
  { requiredKeys: ['name', 'arguments'] },
);
const taskId = fc.oneof(
  id,
  id.map((each) => `chat:${each}`),
);
const uri = fc.oneof(
  id,
  fc.tuple(fc.constantFrom('chat', 'x', '%'), id).map(([a, b]) => `waymark://${a}/snapshots/${b}`),
  fc.tuple(id, oddText).map(([a, b]) => `waymark://chat/snapshots/${a}/artifacts/${b}`),
);
const params: Readonly<Record<string, fc.Arbitrary<unknown>>> = {
  initialize: fc.record({ protocolVersion: oddText, capabilities: fc.anything() }),
  ping: fc.anything(),
  'server/discover': fc.anything(),
  'tools/list': fc.anything(),
  'tools/call': call,
  'resources/list': fc.record({ cursor: fc.oneof(oddText, fc.constantFrom('1:', '9:x', '0:')) }),
  'resources/templates/list': fc.anything(),
  'resources/read': fc.record({ uri }),
  'tasks/get': fc.record({ taskId }),
  'tasks/update': fc.record({ taskId, inputResponses: fc.dictionary(id, fc.anything()) }),
  'tasks/cancel': fc.record({ taskId }),
  'notifications/cancelled': fc.record({ requestId: fc.anything() }),
};

interface Sent {
  readonly text: string;
  readonly headers: Record<string, string>;
}

const modernMeta = {
  'io.modelcontextprotocol/protocolVersion': '2026-07-28',
  'io.modelcontextprotocol/clientCapabilities': {
    elicitation: {},
    extensions: { 'io.modelcontextprotocol/tasks': {} },
  },
};

const regular: fc.Arbitrary<Sent> = fc
  .constantFrom(...Object.keys(params), 'tools/call', 'tools/call')
  .chain((method) =>
    fc.record({
      method: fc.constant(method),
      given: rarely(params[method] ?? fc.anything(), fc.anything()),
      requestId: rarely(fc.integer(), fc.anything()),
      isModern: fc.boolean(),
      meta: rarely(fc.constant(modernMeta), fc.anything()),
      session: rarely(fc.constant(undefined), id),
      isStream: fc.boolean(),
    }),
  )
  .map(({ method, given, requestId, isModern, meta, session, isStream }) => {
    const fields =
      typeof given === 'object' && given !== null && !Array.isArray(given) ? given : {};
    const named = Object.entries(fields).find(([key]) => ['name', 'uri', 'taskId'].includes(key));
    const sent = isModern ? { ...fields, _meta: meta } : given;
    return {
      text: toText({ jsonrpc: '2.0', id: requestId, method, params: sent }),
      headers: {
        'content-type': 'application/json',
        accept: isStream ? 'application/json, text/event-stream' : 'application/json',
        ...(isModern && { 'mcp-protocol-version': '2026-07-28', 'mcp-method': method }),
        ...(isModern && typeof named?.[1] === 'string' && { 'mcp-name': inHeader(named[1]) }),
        ...(typeof session === 'string' && { 'mcp-session-id': inHeader(session) }),
      },
    };
  });
const odd: fc.Arbitrary<Sent> = fc
  .oneof(fc.anything().map(toText), fc.string({ maxLength: 200 }), fc.json())
  .map((text) => ({ text, headers: { 'content-type': 'application/json' } }));

function toText(value: unknown): string {
  try {
    return JSON.stringify(value, (_, each) => (typeof each === 'bigint' ? `${each}` : each)) ?? '';
  } catch {
    return '{';
  }
}

function inHeader(text: string): string {
  const bytes = new TextEncoder().encode(text);
  return `=?base64?${btoa(String.fromCharCode(...bytes))}?=`;
}

test(
  `${total} messages of all kinds never end in a 5xx or a crash`,
  async () => {
    const messages = fc.sample(fc.oneof({ weight: 5, arbitrary: regular }, odd), {
      numRuns: total,
      seed: 20261116,
    });
    const statuses = new Map<number, number>();
    const queue = messages.values();
    const worker = async (): Promise<void> => {
      for (const { text, headers } of queue) {
        const request = new Request('http://localhost/mcp', {
          method: 'POST',
          headers,
          body: text,
        });
        const response = await fetch(request);
        statuses.set(response.status, (statuses.get(response.status) ?? 0) + 1);
        remember(await response.text());
      }
    };
    await Promise.all(Array.from({ length: 8 }, worker));
    expect(failures).toEqual([]);
    expect([...statuses.keys()].filter((status) => status >= 500)).toEqual([]);
    // Most are refused, but enough get through to mean something.
    expect(statuses.get(200)).toBeGreaterThan(total / 3);
    expect(statuses.get(400)).toBeGreaterThan(total / 50);
  },
  Math.max(600_000, total * 60),
);

function remember(answer: string): void {
  const found = answer.match(/[0-9a-f-]{36}|"requestState":"[^"]+/g) ?? [];
  known.push(...found.map((text) => text.replace('"requestState":"', '')));
  if (known.length > 200) known.splice(1, known.length - 100);
}
