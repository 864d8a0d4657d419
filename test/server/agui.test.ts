import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type Message, waymark } from '../../src/index.ts';
import { handler } from '../../src/server/index.ts';
import { memoryStore } from '../../src/store/memory/memory-store.ts';
import { scriptedModel } from '../../src/testing/scripted-model.ts';
import { createGate } from '../agent/support/gate.ts';
import { mortalStore } from '../agent/support/mortal-store.ts';
import { eventually } from '../support/eventually.ts';
import { movableClock } from '../support/movable-clock.ts';
import { createAguiApp, showMap } from './agui-app.ts';
import { allEvents, get, post, readEvents, startServer } from './kit.ts';

// biome-ignore lint/suspicious/noExplicitAny: tests look into whatever came
type Any = any;

let server: Awaited<ReturnType<typeof startServer>>;
beforeAll(async () => {
  server = await startServer({ app: createAguiApp(), agui: true });
});
afterAll(() => server.close());

let count = 0;

/** A thread of a client that keeps every message it sees; written by hand, so that the tests do not trust a client. */
class Thread {
  readonly id = `t${++count}`;
  messages: Any[] = [];
  events: Any[] = [];

  async run(more: object = {}, path = '/agui/chat', url = server.url): Promise<Any[]> {
    const response = await this.post(more, path, url);
    const events = (await allEvents(response)).map(({ data }) => data);
    this.events = events;
    this.#apply(events);
    return events;
  }

  post(more: object = {}, path = '/agui/chat', url = server.url): Promise<Response> {
    const body = {
      threadId: this.id,
      runId: `run-${++count}`,
      protocolVersion: '1.0',
      messages: this.messages,
      ...more,
    };
    return post(`${url}${path}`, body, { accept: 'text/event-stream' });
  }

  say(content: unknown, more: object = {}, url = server.url): Promise<Any[]> {
    this.messages.push({ id: `u${++count}`, role: 'user', content });
    return this.run(more, '/agui/chat', url);
  }

  get text(): string {
    return this.messages.at(-1)?.content;
  }

  #apply(events: Any[]): void {
    for (const event of events) {
      const { type, messageId, delta } = event;
      if (type === 'MESSAGES_SNAPSHOT') this.messages = [...event.messages];
      if (type === 'TEXT_MESSAGE_START') {
        this.messages.push({ id: messageId, role: event.role, content: '' });
      }
      const message = this.messages.find(({ id }) => id === messageId);
      if (type === 'TEXT_MESSAGE_CONTENT') message.content += delta;
      if (type === 'TOOL_CALL_START') {
        const parent = this.messages.find(({ id }) => id === event.parentMessageId);
        const call = { id: event.toolCallId, function: { name: event.toolCallName } };
        if (parent) parent.toolCalls = [call];
        else
          this.messages.push({ id: event.parentMessageId, role: 'assistant', toolCalls: [call] });
      }
      if (type === 'TOOL_CALL_RESULT') {
        const { toolCallId, content } = event;
        this.messages.push({ id: messageId, role: 'tool', toolCallId, content });
      }
    }
  }
}

const types = (events: readonly Any[]): string[] => events.map(({ type }) => type);
const chat = () => {
  const found = server.app.agents().find(({ name }) => name === 'chat');
  if (!found) throw new Error('There is no agent "chat".');
  return found;
};

describe('runs', () => {
  test('S365 a run has the events of its turn, between RUN_STARTED and RUN_FINISHED', async () => {
    const thread = new Thread();
    const events = await thread.say('weather in Oslo');
    expect(types(events)).toEqual([
      'RUN_STARTED',
      'STATE_SNAPSHOT',
      'STEP_STARTED',
      'TEXT_MESSAGE_START',
      'TEXT_MESSAGE_CONTENT',
      'TEXT_MESSAGE_END',
      'TOOL_CALL_START',
      'TOOL_CALL_ARGS',
      'TOOL_CALL_END',
      'TOOL_CALL_RESULT',
      'STEP_FINISHED',
      'STEP_STARTED',
      'TEXT_MESSAGE_START',
      'TEXT_MESSAGE_CONTENT',
      'TEXT_MESSAGE_END',
      'STEP_FINISHED',
      'RUN_FINISHED',
    ]);
    const { snapshotId } = events.at(-1).metadata;
    expect(await chat().getSnapshot(snapshotId)).toMatchObject({ sessionId: thread.id });
    expect(events.at(-1).usage).toMatchObject([{ inputTokens: expect.any(Number) }]);
  });

  test('S366 a client that shows other messages gets those of the server', async () => {
    const thread = new Thread();
    await thread.say('one');
    await thread.say('two');
    // A page that was loaded again and has forgotten everything.
    thread.messages = [];
    const events = await thread.say('three');
    const shown = events.find(({ type }) => type === 'MESSAGES_SNAPSHOT');
    expect(shown.messages.map(({ role }: Any) => role)).toEqual([
      'user',
      'assistant',
      'user',
      'assistant',
      'user',
    ]);
    expect(thread.text).toBe('You said 3 things.');
    // The client and the server agree from here on.
    expect(types(await thread.say('four'))).not.toContain('MESSAGES_SNAPSHOT');
    expect(thread.text).toBe('You said 4 things.');
  });

  test('S366 a message in the place of a later one branches; the other branch is kept', async () => {
    const thread = new Thread();
    await thread.say('one');
    const after = [...thread.messages];
    await thread.say('two');
    await thread.say('three');
    thread.messages = after;
    await thread.say('other');
    expect(thread.text).toBe('You said 2 things.');
    const { items } = await chat().listSnapshots(thread.id, { includeOrphaned: true });
    expect(items).toHaveLength(4);
  });

  test('S366 parentRunId branches from the end of that run', async () => {
    const thread = new Thread();
    await thread.say('one', { runId: `${thread.id}-first` });
    await thread.say('two');
    await thread.say('again', { parentRunId: `${thread.id}-first` });
    expect(thread.text).toBe('You said 2 things.');
    // A run of another thread says nothing about this one.
    await thread.say('more', { parentRunId: 'unknown' });
    expect(thread.text).toBe('You said 3 things.');
  });

  test('S366 the last message of the user can be answered again', async () => {
    const thread = new Thread();
    await thread.say('one');
    const first = [...thread.messages];
    await thread.say('two');
    thread.messages = thread.messages.slice(0, -1);
    await thread.run();
    expect(thread.text).toBe('You said 2 things.');
    thread.messages = first.slice(0, 1);
    await thread.run();
    expect(thread.text).toBe('You said 1 things.');
  });

  test('S720 the first message can be answered again, and edited under its id', async () => {
    const thread = new Thread();
    await thread.say('one');
    const [first] = thread.messages;
    await thread.say('two');
    thread.messages = [{ ...first, content: 'think' } as (typeof thread.messages)[number]];
    await thread.run();
    expect(thread.text).toBe('Thought well.');
    await thread.say('next');
    expect(thread.text).toBe('You said 2 things.');
  });

  test('S365 a run that is posted again joins its first one', async () => {
    const thread = new Thread();
    thread.messages.push({ id: 'u', role: 'user', content: 'note milk' });
    const before = [...thread.messages];
    const runId = `${thread.id}-once`;
    await thread.run({ runId });
    thread.messages = before;
    const again = await thread.run({ runId });
    expect(types(again).at(-1)).toBe('RUN_FINISHED');
    expect((await chat().getSession(thread.id))?.state?.custom).toEqual({
      notes: ['milk'],
      last: 'milk',
    });
  });

  test('parts, and the context of the application', async () => {
    const thread = new Thread();
    const image = { type: 'data', value: 'AAAA', mimeType: 'image/png' };
    await thread.say(
      [
        { type: 'text', text: 'look' },
        { type: 'image', source: image },
        { type: 'binary', mimeType: 'image/jpeg', url: 'https://example.com/a.jpg' },
      ],
      { context: [{ description: 'Page', value: 'checkout' }] },
    );
    const [message] = (await chat().getSession(thread.id))?.state?.messages ?? [];
    expect(message?.content).toMatchObject([
      { text: 'Context of the application:\nPage: checkout' },
      { text: 'look' },
      { media: { url: 'data:image/png;base64,AAAA', contentType: 'image/png' } },
      { media: { url: 'https://example.com/a.jpg' } },
    ]);
    // The context is not part of what the user said.
    const events = await allEvents(await fetch(`${server.url}/agui/chat/${thread.id}`));
    const shown = events.find(({ data }) => data.type === 'MESSAGES_SNAPSHOT')?.data.messages;
    expect(shown[0].content).toMatchObject([
      { type: 'text', text: 'look' },
      { type: 'image', source: image },
      { type: 'image', source: { type: 'url', value: 'https://example.com/a.jpg' } },
    ]);
  });
});

describe('answers', () => {
  test('S367 an approval without a clear yes runs nothing', async () => {
    for (const payload of [{ approved: false, reason: 'no' }, false, 'sure', { ok: true }]) {
      const thread = new Thread();
      const asked = await thread.say('delete notes');
      const { interrupts } = asked.at(-1).outcome;
      await thread.run({
        resume: [{ interruptId: interrupts[0].id, status: 'resolved', payload }],
      });
      expect(thread.text).not.toContain('deleted notes');
    }
    const thread = new Thread();
    const asked = await thread.say('delete notes');
    const interruptId = asked.at(-1).outcome.interrupts[0].id;
    for (const more of [{}, { payload: null }]) {
      const response = await thread.post({
        resume: [{ interruptId, status: 'resolved', ...more }],
      });
      expect(response.status).toBe(400);
    }
    await thread.run({ resume: [{ interruptId, status: 'resolved', payload: true }] });
    expect(thread.text).toContain('deleted notes');
  });

  test('S367 answers may come under the id of the run that asked, as those of CopilotKit', async () => {
    const thread = new Thread();
    const runId = `${thread.id}-same`;
    const asked = await thread.say('delete notes', { runId });
    const { id } = asked.at(-1).outcome.interrupts[0];
    await thread.run({ runId, resume: [{ interruptId: id, status: 'resolved', payload: true }] });
    expect(thread.text).toContain('deleted notes');
    // The same run id in another thread is another run.
    const other = new Thread();
    await other.say('hello', { runId });
    expect(other.text).toBe('You said 1 things.');
  });

  test('S367 an interrupt of the agent and a call of a page tool are answered together', async () => {
    const thread = new Thread();
    const tools = [showMap];
    const asked = await thread.say('delete it and map', { tools });
    const { outcome } = asked.at(-1);
    expect(outcome.interrupts).toHaveLength(1);
    const call = asked.find(({ toolCallName }) => toolCallName === 'show_map');
    const entry = { interruptId: outcome.interrupts[0].id, status: 'resolved', payload: true };
    const early = await thread.post({ tools, resume: [entry] });
    expect(early.status).toBe(400);
    thread.messages.push({ id: 'r', role: 'tool', toolCallId: call.toolCallId, content: 'shown' });
    await thread.run({ tools, resume: [entry] });
    expect(thread.text).toContain('deleted b');
    expect(thread.text).toContain('shown');
  });

  test('S367 answers to unknown interrupts are refused', async () => {
    const thread = new Thread();
    await thread.say('hello');
    const answer = (interruptId: string) =>
      thread.post({ resume: [{ interruptId, status: 'resolved', payload: true }] });
    expect((await answer('nothing')).status).toBe(400);
    const other = new Thread();
    const asked = await other.say('delete notes');
    expect((await answer(asked.at(-1).outcome.interrupts[0].id)).status).toBe(400);
  });

  test('a tool of the page that failed says so to the model', async () => {
    const thread = new Thread();
    const asked = await thread.say('map of Rome', { tools: [showMap] });
    const [toolCallId] = asked.at(-1).outcome.pendingToolCallIds;
    thread.messages.push({ id: 'r', role: 'tool', toolCallId, content: '', error: 'no map' });
    await thread.run();
    expect(thread.text).toContain('no map');
  });

  test('a message without results declines what waits', async () => {
    const thread = new Thread();
    await thread.say('map of Rome', { tools: [showMap] });
    await thread.say('never mind');
    expect(thread.text).toBe('You said 2 things.');
  });
});

describe('connect', () => {
  test('S368 a thread that waits is shown with its interrupts', async () => {
    const thread = new Thread();
    const asked = await thread.say('delete notes');
    const events = await allEvents(
      await fetch(`${server.url}/agui/chat/${thread.id}?protocolVersion=1.0`),
    );
    expect(events.at(-1)?.data.outcome).toEqual(asked.at(-1).outcome);
  });

  test('S368 a thread that has not begun is empty', async () => {
    const events = await allEvents(await fetch(`${server.url}/agui/chat/fresh`));
    expect(events.map(({ data }) => data.type)).toEqual([
      'RUN_STARTED',
      'MESSAGES_SNAPSHOT',
      'STATE_SNAPSHOT',
      'RUN_FINISHED',
    ]);
    const cancel = await post(`${server.url}/agui/chat/fresh/cancel`, {});
    expect(cancel.status).toBe(404);
  });

  test('S368 a run with finished tools is told once to a client that connects', async () => {
    const app = createAguiApp();
    const model = scriptedModel([
      { text: 'First.', toolCalls: [{ name: 'weather', ref: 'w', input: { city: 'Oslo' } }] },
      { chunks: ['Then'], hang: true },
    ]);
    const weather = app.defineTool({ name: 'sun', description: 'Sun' }, () => 'sun');
    const slow = app.defineAgent({ name: 'slow', model, tools: [weather, 'weather'] });
    const served = handler(app, { agui: true });
    const run = await slow.start('go', {});
    const { sessionId } = run;
    await eventually(async () => expect(model.requests).toHaveLength(2));
    const response = await served(new Request(`http://localhost/agui/slow/${sessionId}`));
    const seen: Any[] = [];
    for await (const { data } of readEvents(response)) {
      seen.push(data);
      if (data.delta === 'Then') break;
    }
    expect(seen.filter(({ delta }) => delta === 'First.')).toHaveLength(1);
    const shown = seen.find(({ type }) => type === 'MESSAGES_SNAPSHOT').messages;
    expect(shown.map(({ role }: Any) => role)).toEqual(['user']);
    await run.abort();
    await app.close({ grace: 0 });
  });
});

test('S733 a steered message is in the stream, with the ids that the thread has after a reload', async () => {
  const app = waymark({ store: memoryStore(), onError: () => {} });
  const [asked, answered] = [createGate(), createGate()];
  const note = app.defineTool({ name: 'note', description: 'Notes' }, asked.giving('noted'));
  const chat = app.defineAgent({
    name: 'chat',
    model: scriptedModel([
      { text: 'Wait.', toolCalls: [{ name: 'note', ref: 'n' }] },
      answered.giving('First.'),
      'Second.',
    ]),
    tools: [note],
  });
  const local = await startServer({ app, agui: true });
  const thread = new Thread();
  const running = thread.say('go', {}, local.url);
  await asked.reached;
  const snapshotId = (await chat.listRuns()).items[0]?.snapshotId ?? '';
  const picture = { media: { url: 'data:image/png;base64,aGk=' } };
  const more: Message = { role: 'user', content: [{ text: 'And this?' }, picture] };
  await chat.steer(snapshotId, more, { requestId: 'mine' });
  asked.open();
  await answered.reached;
  await chat.steer(snapshotId, 'And that?', { requestId: 'other' });
  answered.open();
  const events = await running;
  const said = thread.messages.map(({ id, role, content = '' }) => `${id}: ${role}: ${content}`);
  expect(said.slice(1)).toEqual([
    `${snapshotId}:0: assistant: Wait.`,
    `${snapshotId}:1:n: tool: noted`,
    'mine: user: And this?',
    `${snapshotId}:3: assistant: First.`,
    'other: user: And that?',
    `${snapshotId}:5: assistant: Second.`,
  ]);
  expect(events).toContainEqual({
    type: 'CUSTOM',
    name: 'part',
    value: { messageId: 'mine', ...picture },
  });
  // The reloaded thread has the same messages, and the next turn finds the client in sync.
  const response = await fetch(`${local.url}/agui/chat/${thread.id}`);
  const reloaded = (await allEvents(response)).find(({ data }) => data.messages)?.data.messages;
  expect(reloaded.map(({ id }: Any) => id)).toEqual(thread.messages.map(({ id }) => id));
  const next = await thread.say('next', {}, local.url);
  expect(types(next)).not.toContain('MESSAGES_SNAPSHOT');
  await local.close();
});

test('S369 after a takeover the client gets what stands, and the rest once', async () => {
  const claimTtl = 60_000;
  const { clock, advance } = movableClock();
  const store = memoryStore({ clock });
  const line = mortalStore(store);
  const define = (with_: typeof store, script: Parameters<typeof scriptedModel>[0]) => {
    const app = waymark({ store: with_, claimTtl, clock, onError: () => {} });
    const note = app.defineTool({ name: 'note', description: 'Notes' }, (_, { session }) => {
      session.setCustom({ noted: true });
      return 'noted';
    });
    return {
      app,
      chat: app.defineAgent({ name: 'chat', model: scriptedModel(script), tools: [note] }),
    };
  };
  const first = define(line, [
    { text: 'Wait.', toolCalls: [{ name: 'note', ref: 'n' }] },
    { chunks: ['lost'], hang: true },
  ]);
  const run = await first.chat.start('go');
  const second = define(store, [{ chunks: ['kept'] }]);
  const served = handler(second.app, { agui: true });
  const response = await served(new Request(`http://localhost/agui/chat/${run.sessionId}`));
  const seen: Any[] = [];
  for await (const { data } of readEvents(response)) {
    seen.push(data);
    if (data.delta !== 'lost') continue;
    line.cut();
    advance(2 * claimTtl);
  }
  const after = seen.slice(seen.findIndex(({ delta }) => delta === 'lost') + 1);
  // What the lost worker said is taken back, and nothing of the turn is told twice.
  expect(after.filter(({ type }) => type.startsWith('TEXT_MESSAGE'))).toMatchObject([
    { type: 'TEXT_MESSAGE_END' },
  ]);
  const stands = after.findLast(({ type }) => type === 'MESSAGES_SNAPSHOT').messages;
  expect(stands.map(({ role, content }: Any) => `${role}: ${content}`)).toEqual([
    'user: go',
    'assistant: Wait.',
    'tool: noted',
    'assistant: kept',
  ]);
  expect(after.findLast(({ type }) => type === 'STATE_SNAPSHOT').snapshot).toEqual({ noted: true });
  expect(types(after).at(-1)).toBe('RUN_FINISHED');
  await line.heal();
  await first.app.close({ grace: 0 });
  await second.app.close({ grace: 0 });
});

describe('requests that are refused', () => {
  test.each([
    ['no body', {}],
    ['no messages', { threadId: 't', runId: 'r' }],
    ['an empty thread id', { threadId: '', runId: 'r', messages: [] }],
    ['a long run id', { threadId: 't', runId: 'r'.repeat(300), messages: [] }],
    ['nothing to answer', { threadId: 'n', runId: 'r', messages: [] }],
    [
      'a part that cannot be read',
      {
        threadId: 'p',
        runId: 'r',
        messages: [{ id: 'u', role: 'user', content: [{ type: 'hologram' }] }],
      },
    ],
    [
      'a tool with the name of one of the agent',
      {
        threadId: 'c',
        runId: 'r1',
        messages: [{ id: 'u', role: 'user', content: 'hi' }],
        tools: [{ name: 'weather', description: '' }],
      },
    ],
    [
      'a tool with a bad schema',
      {
        threadId: 'c',
        runId: 'r2',
        messages: [{ id: 'u', role: 'user', content: 'hi' }],
        tools: [{ name: 'x', description: '', parameters: { type: 7 } }],
      },
    ],
  ])('%s', async (_, body) => {
    const response = await post(`${server.url}/agui/chat`, body);
    expect(response.status).toBe(400);
    expect(await response.json()).toMatchObject({ status: 'INVALID_ARGUMENT' });
  });

  test('agents without a store, and unknown ones', async () => {
    const body = { threadId: 't', runId: 'r', messages: [{ id: 'u', role: 'user', content: 'x' }] };
    expect((await post(`${server.url}/agui/held`, body)).status).toBe(400);
    expect((await post(`${server.url}/agui/nobody`, body)).status).toBe(404);
  });

  test('agents that are not offered; options that cannot be meant', async () => {
    const app = createAguiApp();
    const served = handler(app, { agui: { agents: ['researcher'] } });
    expect((await served(new Request('http://localhost/agui/chat'))).status).toBe(404);
    expect((await served(new Request('http://localhost/agui/researcher'))).status).toBe(200);
    expect((await handler(app)(new Request('http://localhost/agui/chat'))).status).toBe(404);
    for (const agents of [['held'], ['nobody']]) {
      expect(() => handler(app, { agui: { agents } })).toThrow(/agui\.agents/);
    }
    await app.close({ grace: 0 });
  });
});

test('capabilities', async () => {
  expect(await get(`${server.url}/agui/chat`)).toMatchObject({
    identity: { name: 'chat', type: 'waymark' },
    tools: { clientProvided: true },
    humanInTheLoop: { interrupts: true, approveWithEdits: true },
  });
});

test('S365 by default a client that leaves stops its turn; with onDisconnect: continue it goes on', async () => {
  const app = createAguiApp();
  const served = await startServer({ app, agui: { onDisconnect: 'continue' } });
  const leave = async (url: string, threadId: string): Promise<string | undefined> => {
    const abort = new AbortController();
    const response = await fetch(`${url}/agui/chat`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({
        threadId,
        runId: threadId,
        messages: [{ id: 'u', role: 'user', content: 'hang' }],
      }),
      signal: abort.signal,
    });
    for await (const { data } of readEvents(response)) if (data.delta === 'hangs') break;
    abort.abort();
    const agent = url === served.url ? app.agents().find(({ name }) => name === 'chat') : chat();
    return (await agent?.getSession(threadId))?.running;
  };
  expect(await leave(served.url, 'goes-on')).toBeDefined();
  await leave(server.url, 'stops');
  await eventually(async () => {
    expect((await chat().getSession('stops'))?.running).toBeUndefined();
  });
  expect((await chat().getSession('stops'))?.text).toBe('It hangs');
  await served.close();
});

test('S366 the stream and the stored thread have the same ids, through tools, answers and declined calls', async () => {
  const thread = new Thread();
  const tools = [showMap];
  const inputs = [
    'weather in Oslo',
    'think',
    'map of Rome',
    'never mind',
    'note milk',
    'research X',
  ];
  for (const text of inputs) await thread.say(text, { tools });
  const asked = await thread.say('delete notes');
  const { id } = asked.at(-1).outcome.interrupts[0];
  await thread.run({ resume: [{ interruptId: id, status: 'resolved', payload: true }] });
  const stored = await allEvents(await fetch(`${server.url}/agui/chat/${thread.id}`));
  const shown = stored.find(({ data }) => data.type === 'MESSAGES_SNAPSHOT')?.data.messages;
  const compared = (messages: Any[]): string[] =>
    messages
      .filter(
        ({ role, id: each }) => ['user', 'assistant'].includes(role) && !each.includes('call-'),
      )
      .map(({ id: each, content = '' }) => `${each} ${content}`);
  // Messages of sub-agents are not part of the thread.
  expect(compared(shown)).toEqual(
    compared(thread.messages.filter(({ id: each }) => !/:call-\d+:\d+$/.test(each))),
  );
});
