import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { createTestApp, get, post, startServer, talkative, userInput } from './kit.ts';

const model = talkative();
let server: Awaited<ReturnType<typeof startServer>>;
beforeAll(async () => {
  server = await startServer({ app: createTestApp({ model }), reflection: true });
});
afterAll(() => server.close());

/** How each protocol asks for a turn of a session. */
const ways: Readonly<Record<string, (sessionId: string, text: string) => [string, object]>> = {
  native: (sessionId, text) => [
    '/agents/chat/turns',
    { init: { sessionId }, input: userInput(text) },
  ],
  genkit: (sessionId, text) => ['/genkit/chat', { init: { sessionId }, data: userInput(text) }],
  'genkit, streamed': (sessionId, text) => [
    '/genkit/chat?stream=true',
    { init: { sessionId }, data: userInput(text) },
  ],
  'AI SDK UI': (sessionId, text) => ['/ui/chat', uiRequest(sessionId, [uiMessage(text)])],
  reflection: (sessionId, text) => [
    '/api/runAction',
    { key: '/agent/chat', init: { sessionId }, input: userInput(text) },
  ],
  'reflection, streamed': (sessionId, text) => [
    '/api/runAction?stream=true',
    { key: '/agent/chat', init: { sessionId }, input: userInput(text) },
  ],
};

const uiMessage = (text: string): object => ({ role: 'user', parts: [{ type: 'text', text }] });
const uiRequest = (id: string, messages: readonly object[]): object => ({ id, messages });

async function ask([path, body]: readonly [string, object], key: string): Promise<string> {
  const response = await post(`${server.url}${path}`, body, { 'idempotency-key': key });
  return response.text();
}

/** What a stream or an answer says, without the ids of its trace. */
const said = (answer: string): readonly string[] => answer.match(/You said \d+ things/g) ?? [];

const turnsOf = async (sessionId: string): Promise<number> =>
  (await get(`${server.url}/agents/chat/sessions/${sessionId}`)).turnCount;

describe.each(Object.entries(ways))('S219: Idempotency-Key, %s', (name, way) => {
  const session = `requests-${name.replace(/\W+/g, '-')}`;

  test('a turn that is sent again runs once, and its answer is given again', async () => {
    const before = model.requests.length;
    const first = await ask(way(session, 'hello'), `key ${name}`);
    const again = await ask(way(session, 'hello'), `key ${name}`);
    expect(new Set(said(again))).toEqual(new Set(['You said 1 things']));
    expect(new Set(said(first))).toEqual(new Set(said(again)));
    expect(model.requests.length - before).toBe(1);
    expect(await turnsOf(session)).toBe(1);
    await ask(way(session, 'hello'), `key ${name} 2`);
    expect(await turnsOf(session)).toBe(2);
  });

  test('another input under the same key is refused', async () => {
    const id = `${session}-other`;
    await ask(way(id, 'hello'), `other ${name}`);
    const answer = await ask(way(id, 'good bye'), `other ${name}`);
    expect(answer).toMatch(/INVALID_ARGUMENT|request id was used before/);
    expect(await turnsOf(id)).toBe(1);
  });
});

test.each(['/genkit/chat', '/api/runAction'])('S219: %s refuses two keys', async (path) => {
  const input = { ...userInput('hello'), requestId: 'in the body' };
  const answer = await ask([path, { key: '/agent/chat', data: input, input }], 'in the header');
  expect(answer).toContain('several request ids');
});

test('S219: an approval in AI SDK UI that is sent again runs its tool once', async () => {
  const id = 'requests-approval';
  await ask(['/ui/chat', uiRequest(id, [uiMessage('transfer 9')])], 'transfer');
  const messages: { id?: string; parts: { state?: string; toolCallId: string }[] }[] = await get(
    `${server.url}/ui/chat/${id}/messages`,
  );
  const asked = messages.at(-1);
  const approved = {
    ...asked,
    parts: asked?.parts.map((part) =>
      part.state === 'approval-requested'
        ? {
            ...part,
            state: 'approval-responded',
            approval: { id: part.toolCallId, approved: true },
          }
        : part,
    ),
  };
  const approve = (): Promise<string> => ask(['/ui/chat', uiRequest(id, [approved])], 'approve');
  const first = await approve();
  expect(first).toContain('moved');
  const before = model.requests.length;
  expect(await approve()).toContain('moved');
  expect(model.requests.length).toBe(before);
  expect(await turnsOf(id)).toBe(2);
});
