import { afterEach, expect, test, vi } from 'vitest';
import { type App, memoryStore, tool, waymark } from 'waymark';
import { scriptedModel } from 'waymark/testing';
import { z } from 'zod';

const trip = z.object({ likes: z.array(z.string()) });
const closers: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const close of closers.splice(0)) await close();
});

function open(): App {
  const model = scriptedModel({
    patterns: [[/like (\w+)/, ([, what]) => ({ toolCalls: [{ name: 'note', input: { what } }] })]],
    afterTools: (_, results) => JSON.stringify(results),
    otherwise: 'Hello.',
  });
  const app = waymark({ model, store: memoryStore(), onError: () => {} });
  closers.push(() => app.close());
  return app;
}

const note = tool(
  { name: 'note', description: 'Notes.', input: z.object({ what: z.string() }), state: trip },
  ({ what }, { session }) => {
    session.updateCustom((draft) => void draft.likes.push(what));
    return session.custom.likes.length;
  },
);

test('S246 a tool with a state changes the state of its session', async () => {
  const app = open();
  const state = { state: trip, initialState: { likes: [] } };
  const chat = app.defineAgent({ name: 'chat', ...state, tools: [note] });
  const { text, sessionId } = await chat.run('I like food');
  expect(text).toBe('[1]');
  expect((await chat.getSession(sessionId))?.state?.custom).toEqual({ likes: ['food'] });
  const wide = trip.extend({ city: z.string() });
  const initialState = { likes: [], city: 'Oslo' };
  const other = app.defineAgent({ name: 'other', state: wide, initialState, tools: [note] });
  expect((await other.run('I like food')).text).toBe('[1]');
});

test('S246 an agent with another state is refused at its definition', () => {
  const app = open();
  const define = (name: string, options: object): unknown =>
    app.defineAgent({ name, ...options, tools: [note as never] });
  expect(() => define('a', {})).toThrow(
    'Agent "a" cannot use tool "note", which works on another state: the agent declares no `state`.',
  );
  expect(() => define('b', { state: trip })).toThrow(
    'its sessions start without a state. Give the agent an `initialState`, or make the `state` of the tool optional.',
  );
  const numbers = z.object({ likes: z.number() });
  expect(() => define('c', { state: numbers, initialState: { likes: 1 } })).toThrow(
    'its `initialState` does not fit. The state that tool "note" works on does not fit its schema. /likes:',
  );
  const list = tool(
    { name: 'list', description: '', state: z.object({ likes: z.string().optional() }) },
    () => 1,
  );
  const optional = z.object({ likes: z.array(z.string()).optional() });
  const agent = { name: 'd', state: optional, initialState: {}, tools: [list as never] };
  expect(() => app.defineAgent(agent)).toThrow(
    `field "likes" is array in the agent's state and string in the tool's.`,
  );
  const more = tool(
    { name: 'more', description: '', state: z.object({ n: z.number().optional() }) },
    () => 1,
  );
  expect(() => app.defineAgent({ ...agent, tools: [more as never] })).toThrow(
    `the agent's state has no field "n".`,
  );
  expect(app.agents()).toEqual([]);
});

test('S246 tools that are named, and tools of a prompt, are checked at ready() and before a turn', async () => {
  const app = open();
  const agent = app.defineAgent({ name: 'late', tools: ['mark'] });
  app.defineTool({ name: 'mark', description: '', state: trip }, () => 1);
  const message =
    'Agent "late" cannot run: Agent "late" cannot use tool "mark", which works on another state';
  await expect(app.ready()).rejects.toThrow(message);
  await expect(agent.run('hi')).rejects.toThrow(message);
  const prompt = app.definePrompt({ name: 'noting', tools: [note] });
  expect(() => app.defineAgent({ name: 'prompted', prompt: prompt as never })).toThrow(
    'Agent "prompted" cannot use tool "note"',
  );
});

test('S246 a state that may be missing is that of agents without an initial one', async () => {
  const app = open();
  const first = tool(
    {
      name: 'note',
      description: '',
      input: z.object({ what: z.string() }),
      state: trip.optional(),
    },
    ({ what }, { session }) =>
      session.updateCustom((draft) => ({ likes: [...(draft?.likes ?? []), what] })),
  );
  const chat = app.defineAgent({ name: 'chat', state: trip, tools: [first] });
  const { sessionId } = await chat.run('I like food');
  expect((await chat.getSession(sessionId))?.state?.custom).toEqual({ likes: ['food'] });
});

test('S247 outside an agent, a tool with a state is refused, and the session of any other tool says so', async () => {
  const app = open();
  await expect(app.generate({ prompt: 'I like food', tools: [note] })).rejects.toMatchObject({
    status: 'FAILED_PRECONDITION',
    message:
      'Tool "note" uses its session, and there is none outside an agent. Give the tool to an agent, or call it inside a turn.',
  });
  const seen: unknown[] = [];
  const input = z.object({ what: z.string() });
  const plain = app.defineTool({ name: 'note', description: '', input }, (_, { session }) => {
    seen.push(typeof session);
    return session.id;
  });
  const { text } = await app.generate({ prompt: 'I like food', tools: [plain] });
  expect(seen).toEqual(['object']);
  expect(text).toContain('there is none outside an agent');
});

test('S247 a custom agent uses such a tool in its own generate calls', async () => {
  const app = open();
  const own = app.defineCustomAgent(
    { name: 'own', state: trip, initialState: { likes: [] } },
    (session) =>
      session.run(async ({ message }) => {
        const { text } = await app.generate({ messages: message ? [message] : [], tools: [note] });
        session.addMessages({ role: 'model', content: [{ text }] });
      }),
  );
  expect((await own.run('I like food')).text).toBe('[1]');
  const bare = app.defineCustomAgent({ name: 'bare' }, (session) =>
    session.run(async () => void (await app.generate({ prompt: 'hi', tools: [note] }))),
  );
  await expect(bare.run('hi')).rejects.toThrow('the agent declares no `state`');
});

test('S645 a recipe may return a new state, without a word on the console', async () => {
  const warn = vi.spyOn(console, 'warn').mockImplementation(() => {});
  const app = open();
  const add = tool(
    { name: 'note', description: 'Notes.', input: z.object({ what: z.string() }), state: trip },
    ({ what }, { session }) => session.updateCustom(({ likes }) => ({ likes: [...likes, what] })),
  );
  const state = { state: trip, initialState: { likes: [] } };
  const chat = app.defineAgent({ name: 'chat', ...state, tools: [add] });
  const { sessionId } = await chat.run('I like food');
  await chat.run('I like museums', { sessionId });
  const session = await chat.getSession(sessionId);
  expect(session?.state?.custom).toEqual({ likes: ['food', 'museums'] });
  expect(warn).not.toHaveBeenCalled();
  warn.mockRestore();
});
