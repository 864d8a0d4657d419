import fc from 'fast-check';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type FetchHandler, handler } from '../../src/server/index.ts';
import { openAiPath, openAiRoutes } from '../../src/server/openai/routes.ts';
import { createGate, createOpenAiApp } from './openai-app.ts';

const total = process.env.LONG === '1' ? 2_000 : 800;

const gate = createGate();
const { app } = createOpenAiApp({ gate });
const failures: string[] = [];
let fetch: FetchHandler;

beforeAll(() => {
  gate.open();
  fetch = handler(app, {
    openai: { allow: ['instructions', 'sampling', 'history'] },
    limits: { bodyBytes: 20_000, turnsPerPrincipal: 100 },
    auth: (request) => ({ principal: request.headers.get('authorization') ?? 'ann' }),
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
  fc.oneof({ weight: 12, arbitrary: usual }, { weight: 1, arbitrary: odd });

/** Ids of responses, items, calls and conversations, and states, that were answered before. */
const known: string[] = ['resp_0193b7a0-0000-7000-8000-000000000000'];
/** Chosen when the request is sent, from what is known by then. */
const idOf = (kind: string): fc.Arbitrary<string> =>
  fc.oneof({ weight: 8, arbitrary: fc.nat().map((at) => `$${kind}${at}$`) }, oddText);
const id = fc.oneof(idOf(''), idOf('resp'), idOf('msg'), idOf('call'), idOf('conv'));

const words = fc.constantFrom(
  'hello',
  'say one two',
  'think of it',
  'fail',
  'long',
  'call transfer {"sum":7}',
  'call ask {}',
  'call weather {"city":"Oslo"}',
  'call lookup {}',
);
const content = rarely(
  fc.oneof(
    words,
    fc.array(
      fc.oneof(
        fc.record({ type: fc.constantFrom('input_text', 'output_text', 'text'), text: words }),
        fc.record({ type: fc.constant('input_image'), image_url: oddText, file_id: oddText }),
        fc.record({ type: fc.constant('input_file'), file_data: oddText, file_url: fc.anything() }),
      ),
      { maxLength: 3 },
    ),
  ),
  fc.anything(),
);
const item = fc.oneof(
  { weight: 4, arbitrary: fc.record({ role: fc.constant('user'), content }) },
  fc.record({
    type: fc.constant('message'),
    role: fc.constantFrom('user', 'assistant', 'system', 'developer', 'king'),
    content,
    id,
  }),
  fc.record({ type: fc.constant('item_reference'), id }),
  fc.record({
    type: fc.constant('function_call_output'),
    call_id: id,
    output: fc.oneof(
      fc.constantFrom('{"approved":true}', '{"approved":false}', '{"colour":"blue"}', 'Rain'),
      fc.anything(),
    ),
  }),
  fc.record({ type: fc.constant('function_call'), call_id: id, name: oddText, arguments: oddText }),
  fc.record({ type: fc.constant('reasoning'), id, encrypted_content: id, summary: fc.anything() }),
  fc.record({ type: oddText, id: fc.anything() }),
);
const tool = rarely(
  fc.record({
    type: fc.constant('function'),
    name: fc.constantFrom('weather', 'transfer', 'no way'),
    parameters: rarely(fc.constant({ type: 'object' }), fc.anything()),
    strict: fc.boolean(),
  }),
  fc.anything(),
);
const usual = fc
  .record({
    model: fc.constantFrom('desk', 'desk', 'desk', 'geo', 'held', 'custom', 'gated'),
    input: fc.oneof(
      words,
      fc
        .tuple(idOf('call'), fc.constantFrom('{"approved":true}', 'Rain'))
        .map(([call_id, output]) => [{ type: 'function_call_output', call_id, output }]),
    ),
    stream: fc.boolean(),
    tools: fc.constant([{ type: 'function', name: 'weather', parameters: { type: 'object' } }]),
    place: fc.oneof(
      fc.constantFrom({}, { background: true }, { store: false }),
      idOf('resp').map((previous_response_id) => ({ previous_response_id })),
      idOf('conv').map((conversation) => ({ conversation })),
    ),
  })
  .map(({ place, ...body }) => ({ ...body, ...place }));
const wild = fc.record(
  {
    model: rarely(fc.constantFrom('desk', 'geo', 'held', 'custom', 'gated'), fc.anything()),
    input: rarely(fc.oneof(words, fc.array(item, { maxLength: 4 })), fc.anything()),
    stream: fc.boolean(),
    background: rarely(fc.constantFrom(true, false, false), fc.anything()),
    store: rarely(fc.constantFrom(true, false, null), fc.anything()),
    previous_response_id: rarely(id, fc.anything()),
    conversation: rarely(fc.oneof(id, fc.record({ id })), fc.anything()),
    instructions: rarely(oddText, fc.anything()),
    metadata: rarely(fc.dictionary(oddText, oddText, { maxKeys: 3 }), fc.anything()),
    temperature: rarely(fc.constantFrom(0, 1, 2), fc.anything()),
    max_output_tokens: rarely(fc.constantFrom(1, 50), fc.anything()),
    tools: rarely(fc.array(tool, { maxLength: 2 }), fc.anything()),
    tool_choice: rarely(fc.constant('auto'), fc.anything()),
    text: rarely(
      fc.record({
        format: fc.record({
          type: fc.constantFrom('text', 'json_schema', 'json_object'),
          name: oddText,
          schema: rarely(fc.constant({ type: 'object' }), fc.anything()),
        }),
      }),
      fc.anything(),
    ),
  },
  { requiredKeys: ['model', 'input'] },
);
/** A failed turn of this protocol is an error of the server, so `fail` is left out. */
const said = words.filter((text) => text !== 'fail');
const calls = fc.array(
  fc.record({
    id,
    type: rarely(fc.constant('function'), oddText),
    function: rarely(fc.record({ name: oddText, arguments: oddText }), fc.anything()),
  }),
  { maxLength: 2 },
);
const chatMessage = fc.oneof(
  { weight: 4, arbitrary: fc.record({ role: fc.constant('user'), content: said }) },
  fc.record({
    role: fc.constant('assistant'),
    content: said,
    tool_calls: rarely(calls, fc.anything()),
  }),
  fc.record({ role: fc.constant('tool'), content: said, tool_call_id: id }),
  fc.record({ role: oddText, content: fc.anything() }),
  fc.record({
    role: fc.constant('user'),
    content: fc.array(fc.record({ type: oddText, text: said, image_url: fc.anything() }), {
      maxLength: 2,
    }),
  }),
);
const chat = fc.record(
  {
    model: rarely(fc.constantFrom('desk', 'desk', 'geo', 'held', 'custom'), fc.anything()),
    messages: rarely(fc.array(chatMessage, { maxLength: 4 }), fc.anything()),
    stream: fc.boolean(),
    stream_options: rarely(fc.constant({ include_usage: true }), fc.anything()),
    store: rarely(fc.constantFrom(true, false, null), fc.anything()),
    user: rarely(fc.constantFrom('x', 'y'), oddText),
    metadata: rarely(fc.record({ session_id: fc.oneof(id, fc.constant('s')) }), fc.anything()),
    temperature: rarely(fc.constant(1), fc.anything()),
    tools: rarely(
      fc.array(fc.record({ type: fc.constant('function'), function: tool }), { maxLength: 2 }),
      fc.anything(),
    ),
    response_format: rarely(
      fc.record({
        type: fc.constantFrom('text', 'json_schema', 'json_object'),
        json_schema: rarely(fc.record({ schema: fc.constant({ type: 'object' }) }), fc.anything()),
      }),
      fc.anything(),
    ),
  },
  { requiredKeys: ['model', 'messages'] },
);
const create = fc.oneof({ weight: 2, arbitrary: usual }, wild);
const bodies: Readonly<Record<string, fc.Arbitrary<unknown>>> = {
  createResponse: create,
  createChatCompletion: chat,
  compactResponse: create,
  countInputTokens: create,
  createConversation: fc.record({
    items: fc.array(item, { maxLength: 3 }),
    metadata: fc.anything(),
  }),
  updateConversation: fc.record({ metadata: fc.dictionary(oddText, oddText, { maxKeys: 3 }) }),
  createItems: fc.record({ items: rarely(fc.array(item, { maxLength: 3 }), fc.anything()) }),
};

interface Sent {
  readonly method: string;
  readonly path: string;
  readonly body: string | undefined;
  readonly user: string;
}

const query = fc.oneof(
  { weight: 2, arbitrary: fc.constant('') },
  fc.constantFrom(
    '?stream=true',
    '?stream=true&starting_after=3',
    '?limit=2&order=asc',
    '?limit=x',
  ),
  id.map((after) => `?after=${encode(after)}`),
);
const names = Object.keys(openAiRoutes) as (keyof typeof openAiRoutes)[];
const sent: fc.Arbitrary<Sent> = fc
  .record({
    name: fc.oneof(
      { weight: 2, arbitrary: fc.constant('createResponse' as const) },
      { weight: 2, arbitrary: fc.constant('createChatCompletion' as const) },
      fc.constantFrom(...names),
    ),
    ids: fc.record({
      response: idOf('resp'),
      conversation: idOf('conv'),
      item: idOf('msg'),
      model: fc.constantFrom('desk', 'x'),
    }),
    anyId: fc.oneof({ weight: 5, arbitrary: fc.constant(undefined) }, id),
    query,
    odd: fc.oneof({ weight: 9, arbitrary: fc.constant(undefined) }, fc.json(), fc.string()),
    user: fc.constantFrom('ann', 'ann', 'ann', 'bob'),
    all: fc.record(bodies),
  })
  .map(({ name, ids, anyId, query: asked, odd, user, all }) => {
    const { method, path } = openAiRoutes[name];
    const filled = path.replace(/:(\w+)/g, (_, key: keyof typeof ids) => encode(anyId ?? ids[key]));
    const body = method === 'POST' ? (odd ?? toText(all[name] ?? {})) : undefined;
    return { method, path: `${openAiPath}${filled}${method === 'GET' ? asked : ''}`, body, user };
  });

function encode(text: string): string {
  return text.isWellFormed() ? encodeURIComponent(text).replaceAll('%24', '$') : 'x';
}

function toText(value: unknown): string {
  try {
    return JSON.stringify(value, (_, each) => (typeof each === 'bigint' ? `${each}` : each)) ?? '';
  } catch {
    return '{';
  }
}

test(
  `${total} requests of all kinds never end in a 5xx, a crash, or data of another owner`,
  async () => {
    const statuses = new Map<number, number>();
    const queue = fc.sample(sent, { numRuns: total, seed: 20261116 }).values();
    // Ids of one owner are tried by the other one as well.
    const owners = new Map<string, string>();
    const worker = async (): Promise<void> => {
      for (const { method, path, body, user } of queue) {
        const response = await fetch(
          new Request(`http://localhost${fill(path)}`, {
            method,
            headers: { authorization: user },
            ...(body !== undefined && { body: fill(body) }),
          }),
        );
        const text = await response.text();
        // A turn that has failed, as one of "geo" whose answer is no JSON, is not a failure of the server.
        const hasFailed = response.headers.get('x-should-retry') === 'false';
        const status = hasFailed ? 0 : response.status;
        statuses.set(status, (statuses.get(status) ?? 0) + 1);
        if (response.status === 200) remember(text, user, owners);
      }
    };
    await Promise.all(Array.from({ length: 8 }, worker));
    expect(failures).toEqual([]);
    expect([...statuses.keys()].filter((status) => status >= 500)).toEqual([]);
    // Most are refused, but enough get through to mean something.
    expect(statuses.get(200)).toBeGreaterThan(total / 20);
    expect(statuses.get(404)).toBeGreaterThan(total / 20);
    expect(statuses.get(400)).toBeGreaterThan(total / 20);
  },
  Math.max(600_000, total * 60),
);

function fill(text: string): string {
  return text.replace(/\$([a-z]*)(\d+)\$/g, (_, kind: string, at: string) => {
    const fitting = known.filter((each) => each.startsWith(kind));
    return fitting[Number(at) % Math.max(1, fitting.length)] ?? 'none';
  });
}

function remember(answer: string, user: string, owners: Map<string, string>): void {
  const found =
    answer.match(/(?:resp|msg|fc|fco|rs|call|conv)_[0-9a-f-]{36}[\w-]*|[\w-]{200,}/g) ?? [];
  for (const each of new Set(found)) {
    // What a response names belongs to its owner, and to no other.
    expect(owners.get(each) ?? user, each).toBe(user);
    owners.set(each, user);
    known.push(each);
  }
  if (known.length > 300) known.splice(1, known.length - 150);
}
