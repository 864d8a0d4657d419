import fc from 'fast-check';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type FetchHandler, handler } from '../../src/server/index.ts';
import { createAguiApp, showMap } from './agui-app.ts';

const total = process.env.LONG === '1' ? 2_000 : 500;

const app = createAguiApp();
const failures: string[] = [];
const secret = 'what only ann has said';
let fetch: FetchHandler;

beforeAll(async () => {
  fetch = handler(app, {
    agui: true,
    auth: (request) => ({ principal: request.headers.get('authorization') ?? 'bob' }),
    limits: { bodyBytes: 20_000 },
    log: (entry) => {
      // A model that fails is reported too, with its phase; of a request nothing may fail.
      if (entry.msg === 'failed' && entry.phase === undefined) failures.push(JSON.stringify(entry));
    },
  });
  const chat = app.agents().find(({ name }) => name === 'chat');
  const { snapshotId = '' } = (await chat?.run(secret, { owner: 'ann', sessionId: 's1' })) ?? {};
  known.push(snapshotId, `${snapshotId}:call-1`);
});
afterAll(() => app.close({ grace: 0 }));

const oddText = fc.oneof(
  fc.string({ unit: 'binary', maxLength: 30 }),
  fc.constantFrom('', '..', '__proto__', 'constructor', '\0', '\ud800', '🙂', 'a'.repeat(300)),
);
const rarely = <T>(usual: fc.Arbitrary<T>, odd: fc.Arbitrary<unknown>): fc.Arbitrary<unknown> =>
  fc.oneof({ weight: 24, arbitrary: usual }, { weight: 1, arbitrary: odd });

/** Ids of messages, calls, snapshots and interrupts that were answered before. */
const known: string[] = ['0193b7a0-0000-7000-8000-000000000000'];
const id = fc.oneof(
  fc.nat().map((at) => known[at % known.length] ?? ''),
  fc.constantFrom('s1', 's2', 's3', 'call-1', 'call-2', 'call-9'),
  oddText,
);
const said = fc.constantFrom(
  ...['hello', 'note milk', 'map of Rome', 'delete a', 'ask me', 'think', 'fail', 'research X'],
  ...['delete it and map', 'weather in Oslo'],
);
const content = fc.oneof(
  { weight: 8, arbitrary: said },
  {
    weight: 1,
    arbitrary: fc.array(
      fc.record(
        {
          type: fc.constantFrom('text', 'image', 'binary', 'x'),
          text: said,
          source: fc.anything(),
        },
        { requiredKeys: ['type'] },
      ),
      { maxLength: 3 },
    ),
  },
  { weight: 1, arbitrary: rarely(said, fc.anything()) },
);
const message = fc.record(
  {
    id: rarely(fc.oneof(id, fc.uuid()), fc.anything()),
    role: rarely(fc.constantFrom('user', 'user', 'user', 'assistant', 'tool'), oddText),
    content,
    toolCallId: id,
    error: oddText,
  },
  { requiredKeys: ['id', 'role', 'content'] },
);
const entry = fc.record({
  interruptId: rarely(
    fc.oneof(
      id,
      fc.tuple(id, id).map(([a, b]) => `${a}:${b}`),
    ),
    fc.anything(),
  ),
  status: rarely(fc.constantFrom('resolved', 'cancelled'), oddText),
  payload: fc.oneof(fc.constantFrom(true, { approved: true }, 'blue'), fc.anything()),
});
const body = fc.record(
  {
    threadId: rarely(id, fc.anything()),
    runId: rarely(fc.oneof(fc.uuid(), fc.uuid(), id), fc.anything()),
    parentRunId: rarely(id, fc.anything()),
    protocolVersion: rarely(fc.constant('1.0'), fc.anything()),
    messages: rarely(fc.array(message, { minLength: 1, maxLength: 4 }), fc.anything()),
    tools: rarely(fc.constant([showMap]), fc.anything()),
    context: rarely(fc.constant([{ description: 'a', value: 'b' }]), fc.anything()),
    resume: fc.oneof(
      { weight: 8, arbitrary: fc.constant(undefined) },
      { weight: 3, arbitrary: fc.array(entry, { maxLength: 2 }) },
      fc.anything(),
    ),
    state: fc.anything(),
    forwardedProps: fc.anything(),
  },
  { requiredKeys: ['threadId', 'runId', 'messages'] },
);

interface Sent {
  readonly method: string;
  readonly path: string;
  readonly text?: string;
}

const run: fc.Arbitrary<Sent> = fc
  .oneof({ weight: 9, arbitrary: body.map(toText) }, fc.string({ maxLength: 200 }), fc.json())
  .map((text) => ({ method: 'POST', path: '/agui/chat', text }));
const other: fc.Arbitrary<Sent> = fc
  .tuple(fc.constantFrom('GET', 'POST', 'HEAD'), rarely(fc.constant('chat'), oddText), id)
  .map(([method, agent, thread]) => ({
    method,
    path: `/agui/${encode(agent)}/${encode(thread)}${method === 'POST' ? '/cancel' : ''}`,
  }));

function encode(text: unknown): string {
  return encodeURIComponent(String(text).toWellFormed());
}

function toText(value: unknown): string {
  try {
    return JSON.stringify(value, (_, each) => (typeof each === 'bigint' ? `${each}` : each)) ?? '';
  } catch {
    return '{';
  }
}

test(
  `${total} requests of all kinds never end in a 5xx, a crash or the words of another owner`,
  async () => {
    const requests = fc.sample(fc.oneof({ weight: 5, arbitrary: run }, other), {
      numRuns: total,
      seed: 20261116,
    });
    const statuses = new Map<number, number>();
    let finished = 0;
    const queue = requests.values();
    const worker = async (): Promise<void> => {
      for (const { method, path, text } of queue) {
        const response = await fetch(
          new Request(`http://localhost${path}`, {
            method,
            headers: { 'content-type': 'application/json', authorization: 'bob' },
            ...(text !== undefined && { body: text }),
          }),
        );
        statuses.set(response.status, (statuses.get(response.status) ?? 0) + 1);
        const answer = await response.text();
        expect(answer).not.toContain(secret);
        if (/"type":"RUN_(FINISHED|ERROR)"/.test(answer)) finished++;
        else expect(answer).not.toContain('RUN_STARTED');
        remember(answer);
      }
    };
    await Promise.all(Array.from({ length: 8 }, worker));
    expect(failures).toEqual([]);
    expect([...statuses.keys()].filter((status) => status >= 500)).toEqual([]);
    // Most are refused, but enough get through to mean something.
    expect(finished).toBeGreaterThan(total / 4);
    expect(statuses.get(400)).toBeGreaterThan(total / 50);
  },
  Math.max(600_000, total * 60),
);

function remember(answer: string): void {
  known.push(...(answer.match(/[0-9a-f]{8}-[0-9a-f-]{27}(:[\w-]+)*|call-\d+/g) ?? []).slice(-6));
  if (known.length > 200) known.splice(3, known.length - 100);
}
