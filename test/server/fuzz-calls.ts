import fc from 'fast-check';
import { routes } from '../../src/protocol/routes.ts';
import { userInput } from './kit.ts';

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
  'GET /readyz',
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
/** A request of any kind: what is right, what is nearly right, and what is neither. */
export const call = fc.record({
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

export type Call = typeof call extends fc.Arbitrary<infer T> ? T : never;

/** What a client may send over a WebSocket, in this order. */
export const frames: fc.Arbitrary<readonly string[]> = fc.array(
  fc.oneof(
    { weight: 2, arbitrary: fc.constant('{"type":"init"}') },
    {
      weight: 4,
      arbitrary: fc
        .tuple(
          fc.constantFrom('init', 'input', 'detach', 'abort', 'close', 'x'),
          fc.constantFrom(undefined, 1, 'a'),
          body,
        )
        .map(([type, ref, content]) =>
          JSON.stringify({ ...(typeof content === 'object' ? content : {}), type, ref }),
        ),
    },
    { weight: 1, arbitrary: text.map((content) => content ?? '') },
  ),
  { maxLength: 6 },
);

/** Notes the snapshots that an answer names, for later requests to use. */
export function remember(answer: string): void {
  for (const [, snapshotId] of answer.matchAll(/"snapshotId":"([0-9a-f-]{36})"/g)) {
    if (snapshotId && snapshots.length < 500) snapshots.push(snapshotId);
  }
}

// A path that fetch sends as it is.
function safe(part: string): string {
  return encodeURIComponent(part.toWellFormed()).replaceAll('.', '%2E');
}
