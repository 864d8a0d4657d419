import fc from 'fast-check';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { httpRoutes } from '../../src/server/a2a/http-routes.ts';
import { type FetchHandler, handler } from '../../src/server/index.ts';
import { createTestApp } from './kit.ts';

const total = process.env.LONG === '1' ? 2_000 : 600;

const app = createTestApp({
  // Nothing is sent: only public addresses are allowed, and there are none in the messages.
  webhooks: { secret: `whsec_${btoa('a secret for the webhooks of tests')}`, attempts: 1 },
});
const failures: string[] = [];
let fetch: FetchHandler;
const secret = 'the secret of ann';

beforeAll(async () => {
  fetch = handler(app, {
    a2a: true,
    auth: (request) => ({ principal: request.headers.get('x-user') ?? 'bob' }),
    limits: { bodyBytes: 20_000, backgroundRunsPerPrincipal: 1_000_000 },
    log: (entry) => {
      // A model that fails is reported too, with its phase; of a request nothing may fail.
      if (entry.msg === 'failed' && entry.phase === undefined) failures.push(JSON.stringify(entry));
    },
  });
  // What nobody but Ann may see, under ids that the others try.
  for (const contextId of ['s1', 's2']) {
    const message = {
      messageId: contextId,
      contextId,
      role: 'ROLE_USER',
      parts: [{ text: secret }],
    };
    const params = { message, configuration: { returnImmediately: false } };
    const answer = await post({ jsonrpc: '2.0', id: 1, method: 'SendMessage', params }, 'ann');
    known.push((await answer.json()).result.task.id);
  }
});
afterAll(() => app.close({ grace: 0 }));

function post(body: unknown, user: string, path = '/a2a/chat', method = 'POST'): Promise<Response> {
  const text = typeof body === 'string' ? body : JSON.stringify(body);
  const headers = { 'content-type': 'application/json', 'x-user': user };
  const content = method === 'POST' ? { body: text } : {};
  return fetch(new Request(`http://localhost${path}`, { method, headers, ...content }));
}

/** Every third message by the HTTP+JSON binding, if it is one of its methods; some to no agent. */
function toHttp(message: string, at: number): [path: string, body: string, method: string] {
  const { method = '', params = {} } = parsed(message);
  const route = Object.hasOwn(httpRoutes, method) ? httpRoutes[method] : undefined;
  if (!route || at % 3 > 0) return [at % 50 === 7 ? '/a2a/none' : '/a2a/chat', message, 'POST'];
  const { id, taskId, ...query } = Object(params) as Record<string, unknown>;
  const segment = (value: unknown): string =>
    encodeURIComponent(String(value).toWellFormed()) || '%20';
  const path = route.path
    .replace(':task', () => segment(route.path.includes('Push') ? taskId : id))
    .replace(':config', () => segment(id));
  const search = new URLSearchParams(
    Object.entries(query).map(([key, value]) => [key, String(value).toWellFormed()]),
  );
  const verb = route.http[at % route.http.length] ?? 'POST';
  return [`/a2a/chat${path}${verb === 'GET' ? `?${search}` : ''}`, toText(params), verb];
}

function parsed(message: string): { method?: string; params?: unknown } {
  try {
    const { method, params } = Object(JSON.parse(message)) as Record<string, unknown>;
    return { method: typeof method === 'string' ? method : '', params };
  } catch {
    return {};
  }
}

const oddText = fc.oneof(
  fc.string({ unit: 'binary', maxLength: 30 }),
  fc.constantFrom('', '..', '__proto__', 'constructor', '\0', '\ud800', '🙂', 'a'.repeat(300)),
);
const rarely = <T>(usual: fc.Arbitrary<T>, odd: fc.Arbitrary<unknown>): fc.Arbitrary<unknown> =>
  fc.oneof({ weight: 9, arbitrary: usual }, { weight: 1, arbitrary: odd });

/** Ids that were answered before, to Ann or to Bob. */
const known: string[] = ['0193b7a0-0000-7000-8000-000000000000'];
const id = fc.oneof(
  // Replaced when the message is sent: most ids are known only then.
  fc.nat(1000).map((at) => `#${at}#`),
  fc.nat(1000).map((at) => `#${at}#`),
  fc.constantFrom('s1', 's2', 's3'),
  oddText,
);

const text = fc.constantFrom(
  'hello',
  'count 3',
  'transfer 7',
  'ask',
  'remember rain',
  'fail',
  'yes',
  'no',
);
const part = fc.oneof(
  text.map((each) => ({ text: each })),
  text.map((each) => ({ kind: 'text', text: each })),
  fc.record({ data: fc.anything() }),
  fc.record({ kind: fc.constant('data'), data: fc.dictionary(id, fc.anything()) }),
  fc.record({ data: fc.record({ answers: fc.dictionary(id, fc.anything()) }) }),
  fc.record({ raw: oddText, mediaType: oddText }),
  fc.record({ url: fc.oneof(oddText, fc.webUrl()) }),
  fc.record({ kind: fc.constant('file'), file: fc.record({ bytes: oddText, uri: oddText }) }),
);
const push = fc.record({
  id: rarely(fc.constantFrom('c1', 'c2'), fc.anything()),
  url: fc.oneof(
    fc.constantFrom('http://127.0.0.1/', 'https://[::1]/', 'https://localhost/'),
    oddText,
  ),
  token: rarely(fc.constant('t'), fc.anything()),
  authentication: rarely(
    fc.constant({ scheme: 'Bearer', schemes: ['Bearer'], credentials: 'x' }),
    fc.anything(),
  ),
});
const sendAs = (role: string): fc.Arbitrary<unknown> =>
  fc.record({
    message: rarely(
      fc.record(
        {
          messageId: rarely(fc.uuid(), oddText),
          role: rarely(fc.constant(role), fc.constantFrom('ROLE_AGENT', 'agent', 'x')),
          parts: rarely(
            fc.array(rarely(part, fc.anything()), { minLength: 1, maxLength: 2 }),
            fc.anything(),
          ),
          contextId: id,
          taskId: fc.oneof(id, fc.constant('')),
        },
        { requiredKeys: ['messageId', 'role', 'parts'] },
      ),
      fc.anything(),
    ),
    configuration: rarely(
      fc.record({
        historyLength: rarely(fc.nat(5), fc.anything()),
        returnImmediately: fc.constant(true),
        blocking: fc.constant(false),
        taskPushNotificationConfig: fc.option(push, { freq: 1 }),
      }),
      fc.anything(),
    ),
  });
const byTask = fc.record({ id, taskId: id, historyLength: rarely(fc.nat(3), fc.anything()) });
const methods: Readonly<Record<string, fc.Arbitrary<unknown>>> = {
  SendMessage: sendAs('ROLE_USER'),
  'message/send': sendAs('user'),
  SendStreamingMessage: sendAs('ROLE_USER'),
  'message/stream': sendAs('user'),
  GetTask: byTask,
  'tasks/get': byTask,
  CancelTask: byTask,
  'tasks/cancel': byTask,
  SubscribeToTask: byTask,
  'tasks/resubscribe': byTask,
  ListTasks: fc.record({
    contextId: fc.option(id),
    pageSize: rarely(fc.nat(120), fc.anything()),
    pageToken: fc.option(oddText),
    status: fc.option(fc.oneof(fc.nat(9), fc.constant('TASK_STATE_COMPLETED'), oddText)),
  }),
  CreateTaskPushNotificationConfig: fc.tuple(byTask, push).map(([a, b]) => ({ ...a, ...b })),
  'tasks/pushNotificationConfig/set': fc
    .tuple(byTask, push)
    .map(([a, b]) => ({ ...a, pushNotificationConfig: b })),
  GetTaskPushNotificationConfig: byTask,
  ListTaskPushNotificationConfigs: byTask,
  DeleteTaskPushNotificationConfig: byTask,
  'tasks/pushNotificationConfig/list': byTask,
  GetExtendedAgentCard: fc.anything(),
};

const regular = fc
  .constantFrom(...Object.keys(methods), ...Array(8).fill(['SendMessage', 'message/send']).flat())
  .chain((method) =>
    fc
      .record({
        jsonrpc: fc.constant('2.0'),
        id: rarely(fc.integer(), fc.anything()),
        method: fc.constant(method),
        params: rarely(methods[method] ?? fc.anything(), fc.anything()),
      })
      .map(toText),
  );
const odd = fc.oneof(fc.anything().map(toText), fc.string({ maxLength: 200 }), fc.json());

function toText(value: unknown): string {
  try {
    return JSON.stringify(value, (_, each) => (typeof each === 'bigint' ? `${each}` : each)) ?? '';
  } catch {
    return '{';
  }
}

test(
  `${total} messages of all kinds never end in a 5xx, a crash or what another owner has`,
  async () => {
    const messages = fc.sample(fc.oneof({ weight: 6, arbitrary: regular }, odd), {
      numRuns: total,
      seed: 20261116,
    });
    const statuses = new Map<number, number>();
    const answered = { results: 0, leaks: 0 };
    const queue = messages.values();
    let sent = 0;
    const worker = async (): Promise<void> => {
      for (const template of queue) {
        const message = template.replaceAll(/#(\d+)#/g, (_, at) => known[at % known.length] ?? '');
        const [path, body, verb] = toHttp(message, sent++);
        const response = await post(body, 'bob', path, verb);
        statuses.set(response.status, (statuses.get(response.status) ?? 0) + 1);
        const answer = await response.text();
        // HTTP+JSON answers with the result itself, JSON-RPC with an object that has one.
        const isRpc = path === '/a2a/chat';
        if (response.ok && (!isRpc || answer.includes('"result"'))) answered.results++;
        if (answer.includes(secret) && !message.includes(secret)) answered.leaks++;
        remember(answer);
      }
    };
    await Promise.all(Array.from({ length: 8 }, worker));
    expect(failures).toEqual([]);
    expect([...statuses.keys()].filter((status) => status >= 500)).toEqual([]);
    expect(answered.leaks).toBe(0);
    // Many are refused, but enough get through to mean something.
    expect(answered.results).toBeGreaterThan(total / 25);
    expect(statuses.get(400)).toBeGreaterThan(total / 50);
  },
  Math.max(600_000, total * 60),
);

function remember(answer: string): void {
  known.push(...(answer.match(/[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}/g) ?? []));
  // The first ones are Ann's.
  if (known.length > 200) known.splice(3, known.length - 100);
}
