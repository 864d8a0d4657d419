import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { AgentApi } from '../../src/client/index.ts';
import { client, type Message } from '../../src/client/index.ts';
import { type AgentStore, createAgentStore } from '../../src/react/index.ts';
import { serveTestApp, type TestApp } from '../client/support/served.ts';

type Types = NonNullable<TestApp['chat']['~types']>;

let served: Awaited<ReturnType<typeof serveTestApp>>;
beforeAll(async () => {
  served = await serveTestApp();
});
afterAll(() => served[Symbol.asyncDispose]());

const agents: Record<'in process' | 'over HTTP' | 'over WebSocket', () => AgentApi<Types>> = {
  'in process': () => served.chat,
  'over HTTP': () => client<TestApp['chat']>({ url: served.url, agent: 'chat' }),
  'over WebSocket': () =>
    client<TestApp['chat']>({ url: served.url, agent: 'chat', transport: 'websocket' }),
};

function texts(messages: readonly Message[]): string[] {
  return messages.map(({ content }) =>
    content.map((part) => ('text' in part ? part.text : Object.keys(part)[0])).join(''),
  );
}

async function ready(store: AgentStore<Types>): Promise<void> {
  await expect.poll(() => store.getView().phase).toBe('ready');
}

describe.each(Object.entries(agents))('%s', (transport, agentOf) => {
  test('S403 a message is added to the running turn, and shown where the turn took it', async () => {
    const store = createAgentStore({ agent: agentOf(), throttle: 0 });
    expect(await store.actions.steer('nothing runs')).toBe(false);
    expect(store.getView().error).toMatchObject({ status: 'FAILED_PRECONDITION' });
    const what = `steering-${transport.replaceAll(' ', '')}`;
    const turn = store.actions.send(`wait for ${what}`);
    await expect.poll(() => store.getView().phase).toBe('running');
    await expect.poll(() => store.getView().messages.length).toBe(2);
    expect(await store.actions.steer('say thanks')).toBe(true);
    expect(texts(store.getView().steering)).toEqual(['say thanks']);
    served.letGo(what);
    await turn;
    const view = store.getView();
    expect(view.steering).toEqual([]);
    expect(texts(view.transcript)).toEqual([
      `wait for ${what}`,
      'w0 w1 w2 toolRequest',
      'toolResponse',
      'say thanks',
      'thanks',
    ]);
  });

  test('a turn is shown from what was sent to what is saved', async () => {
    const store = createAgentStore({ agent: agentOf(), throttle: 0 });
    const phases: string[] = [];
    const seen: string[] = [];
    store.subscribe(() => {
      const { phase, text } = store.getView();
      if (phases.at(-1) !== phase) phases.push(phase);
      if (text !== '' && seen.at(-1) !== text) seen.push(text);
    });
    const output = await store.actions.send('say one two three');
    expect(phases).toEqual(['sending', 'running', 'ready']);
    expect(seen.at(-1)).toBe('one two three');
    expect(seen.every((text) => 'one two three'.startsWith(text))).toBe(true);
    const view = store.getView();
    expect(texts(view.transcript)).toEqual(['say one two three', 'one two three']);
    expect(view).toMatchObject({
      sessionId: output?.sessionId,
      snapshotId: output?.snapshotId,
      finishReason: 'stop',
      running: undefined,
      answer: undefined,
      text: '',
    });
    expect(view.messages).toMatchObject([
      { index: 0, role: 'user', text: 'say one two three', toolCalls: [], files: [] },
      { index: 1, role: 'model', text: 'one two three', reasoning: '' },
    ]);
    expect(view.messages.at(-1)?.metadata).toMatchObject({ snapshotId: output?.snapshotId });
  });

  test('what was there before a turn stays the same objects', async () => {
    const store = createAgentStore({ agent: agentOf() });
    await store.actions.send('say one');
    const before = store.getView();
    await store.actions.send('note Lisbon');
    const after = store.getView();
    // The answer of the tool is part of the message that called it: there is no row without content.
    expect(after.messages.map(({ index, role, text }) => [index, role, text])).toEqual([
      [0, 'user', 'say one'],
      [1, 'model', 'one'],
      [2, 'user', 'note Lisbon'],
      [3, 'model', ''],
      [5, 'model', 'noted'],
    ]);
    expect(after.messages[3]?.toolCalls).toMatchObject([{ name: 'note', status: 'done' }]);
    expect(after.messages.slice(0, 2)).toEqual(before.messages);
    for (const [at, message] of before.messages.entries()) expect(after.messages[at]).toBe(message);
    expect(after.custom).toEqual({ topics: ['Lisbon'] });
    expect(after.artifacts).toMatchObject([{ name: 'notes.md' }]);
    expect(texts(after.transcript)).toEqual([
      'say one',
      'one',
      'note Lisbon',
      'toolRequest',
      'toolResponse',
      'noted',
    ]);
    await store.actions.send('say three');
    expect(store.getView().custom).toBe(after.custom);
    expect(store.getView().artifacts).toBe(after.artifacts);
  });

  test('a page that comes later finds the session', async () => {
    const first = createAgentStore({ agent: agentOf() });
    await first.actions.send('note Porto');
    const { sessionId = '', transcript } = first.getView();
    const store = createAgentStore({ agent: agentOf(), sessionId });
    expect(store.getView()).toMatchObject({ phase: 'loading', messages: [] });
    const close = store.open();
    await ready(store);
    expect(texts(store.getView().transcript)).toEqual(texts(transcript));
    expect(store.getView().custom).toEqual({ topics: ['Porto'] });
    close();
  });

  test('a page that is loaded again in the middle of a turn follows it to its end', async () => {
    const first = createAgentStore({ agent: agentOf() });
    await first.actions.send('say one');
    const what = `reload-${transport.replaceAll(' ', '-')}`;
    const turn = first.actions.send(`wait for ${what}`);
    await expect.poll(() => first.getView().text).toContain('w2');
    const store = createAgentStore({
      agent: agentOf(),
      sessionId: first.getView().sessionId ?? '',
    });
    store.open();
    await expect.poll(() => store.getView().text).toContain('w2');
    expect(store.getView()).toMatchObject({ phase: 'running', running: first.getView().running });
    // Also what was asked, though nothing of the turn is saved yet.
    expect(texts(store.getView().transcript).slice(0, 3)).toEqual([
      'say one',
      'one',
      `wait for ${what}`,
    ]);
    served.letGo(what);
    await turn;
    await ready(store);
    expect(texts(store.getView().transcript)).toEqual(texts(first.getView().transcript));
  });

  test('a stop keeps the partial answer, and the session goes on', async () => {
    const store = createAgentStore({ agent: agentOf() });
    const turn = store.actions.send('hang');
    await expect.poll(() => store.getView().text).toBe('half ');
    await store.actions.stop();
    expect(await turn).toMatchObject({ finishReason: 'aborted' });
    expect(texts(store.getView().transcript)).toEqual(['hang', 'half ']);
    await store.actions.send('say on');
    expect(texts(store.getView().transcript).at(-1)).toBe('on');
  });

  test('a failed turn stays to be seen, and can be sent again', async () => {
    const store = createAgentStore({ agent: agentOf() });
    await store.actions.send('say one');
    const { snapshotId } = store.getView();
    await store.actions.send('fail');
    const failed = store.getView();
    expect(failed).toMatchObject({ phase: 'ready', finishReason: 'failed', snapshotId });
    expect(failed.error?.status).toBe('INTERNAL');
    expect(texts(failed.transcript)).toEqual(['say one', 'one', 'fail', 'half ']);
    await store.actions.retry();
    expect(store.getView().error?.status).toBe('INTERNAL');
    await store.actions.send('say two');
    expect(texts(store.getView().transcript)).toEqual(['say one', 'one', 'say two', 'two']);
    expect(store.getView().error).toBeUndefined();
  });

  test('an interrupt is approved, and only once', async () => {
    const store = createAgentStore({ agent: agentOf() });
    await store.actions.send('book a table');
    const [interrupt] = store.getView().interrupts;
    if (!interrupt) throw new Error('An interrupt was expected');
    expect(interrupt).toMatchObject({
      toolName: 'book',
      input: { what: 'a table' },
      metadata: { price: 40 },
    });
    // The call itself is where a page shows the buttons.
    const call = () => store.getView().messages.at(-1)?.toolCalls[0];
    expect(call()).toMatchObject({ name: 'book', status: 'waiting' });
    expect(call()?.interrupt).toBe(interrupt);
    const answer = interrupt.approve({ resumed: 'me' });
    const both = [store.actions.resume(answer), store.actions.resume([answer])];
    expect(store.getView().interrupts).toEqual([]);
    expect(call()).toMatchObject({ name: 'book', status: 'running' });
    const outputs = await Promise.all(both);
    expect(outputs.filter((output) => output !== undefined)).toHaveLength(1);
    expect(texts(store.getView().transcript).at(-1)).toBe('{"booked":"a table","by":"me"}');
    expect(store.getView().interrupts).toEqual([]);
  });

  test('an interrupt is answered by a result', async () => {
    const store = createAgentStore({ agent: agentOf() });
    await store.actions.send('book a table');
    const [interrupt] = store.getView().interrupts;
    if (!interrupt) throw new Error('An interrupt was expected');
    await store.actions.resume(interrupt.respond('no thanks'));
    expect(store.getView().messages.at(-1)?.text).toBe('no thanks');
    expect(store.getView().messages[1]?.toolCalls).toMatchObject([
      { name: 'book', input: { what: 'a table' }, output: 'no thanks', status: 'done' },
    ]);
  });

  test('an interrupt is declined, and the call says so', async () => {
    const store = createAgentStore({ agent: agentOf() });
    await store.actions.send('book a table');
    const [interrupt] = store.getView().interrupts;
    if (!interrupt) throw new Error('An interrupt was expected');
    await store.actions.resume(interrupt.decline('too much'));
    const { messages, interrupts } = store.getView();
    expect(interrupts).toEqual([]);
    expect(messages[1]?.toolCalls).toMatchObject([{ name: 'book', status: 'declined' }]);
    expect(messages[1]?.toolCalls[0]?.interrupt).toBeUndefined();
  });

  test('a background run is followed, and can be left and found again', async () => {
    const store = createAgentStore({ agent: agentOf() });
    store.open();
    const what = `nobody-${transport.replaceAll(' ', '-')}`;
    const output = await store.actions.send(`wait for ${what}`, { detach: true });
    expect(output?.finishReason).toBe('detached');
    await expect.poll(() => store.getView().text).toContain('w2');
    store.actions.detach();
    expect(store.getView()).toMatchObject({ phase: 'ready', running: output?.snapshotId });
    await store.actions.refresh();
    await expect.poll(() => store.getView().text).toContain('w2');
    expect(texts(store.getView().transcript)[0]).toBe(`wait for ${what}`);
    served.letGo(what);
    await ready(store);
    expect(texts(store.getView().transcript).at(-1)).toBe(what);
    expect(store.getView().running).toBeUndefined();
  });

  test('a background run is stopped', async () => {
    const store = createAgentStore({ agent: agentOf() });
    await store.actions.send('hang', { detach: true });
    await expect.poll(() => store.getView().text).toBe('half ');
    await store.actions.stop();
    await ready(store);
    expect(store.getView()).toMatchObject({ finishReason: 'aborted', running: undefined });
  });

  test('S584 a background run that was stopped leaves the view with what the session has', async () => {
    const store = createAgentStore({ agent: agentOf() });
    await store.actions.send('say one');
    await store.actions.send('hang', { detach: true });
    await expect.poll(() => store.getView().text).toBe('half ');
    await store.actions.stop();
    await ready(store);
    expect(texts(store.getView().transcript)).toEqual(['say one', 'one']);
    const { sessionId = '' } = store.getView();
    const session = await agentOf().getSession(sessionId);
    expect(texts(store.getView().transcript)).toEqual(texts(session?.state?.messages ?? []));
    await store.actions.send('say two');
    expect(texts(store.getView().transcript)).toEqual(['say one', 'one', 'say two', 'two']);
  });

  test('S584 after a background run on a branch was stopped, the next message continues on it', async () => {
    const store = createAgentStore({ agent: agentOf() });
    const one = await store.actions.send('say one');
    await store.actions.send('say two');
    await store.actions.send('hang', { detach: true, from: one?.snapshotId ?? '' });
    await expect.poll(() => store.getView().text).toBe('half ');
    await store.actions.stop();
    await ready(store);
    await store.actions.send('say three');
    expect(texts(store.getView().transcript)).toEqual(['say one', 'one', 'say three', 'three']);
  });

  test('the timeline: view, restore, fork, label', async () => {
    const store = createAgentStore({ agent: agentOf(), timeline: true });
    store.open();
    for (const text of ['say one', 'note Rome', 'say three']) await store.actions.send(text);
    await expect
      .poll(() => store.getView().timeline.map(({ status }) => status))
      .toEqual(['succeeded', 'succeeded', 'succeeded']);
    const { sessionId, timeline } = store.getView();
    const [one, two] = timeline.map(({ snapshotId }) => snapshotId);

    await store.actions.view(one);
    expect(store.getView().past).toMatchObject({
      snapshotId: one,
      state: { custom: { topics: [] } },
    });
    expect(texts(store.getView().transcript)).toHaveLength(8);
    await store.actions.view(undefined);
    expect(store.getView().past).toBeUndefined();

    expect(await store.actions.label(one ?? '', 'good')).toBe(true);
    expect(store.getView().timeline[0]).toMatchObject({ label: 'good' });

    expect(await store.actions.restore(one ?? '')).toBe(true);
    expect(texts(store.getView().transcript)).toEqual(['say one', 'one']);
    expect(store.getView()).toMatchObject({
      custom: { topics: [] },
      artifacts: [],
      snapshotId: one,
    });
    await expect
      .poll(() => store.getView().timeline.map(({ orphaned }) => orphaned))
      .toEqual([false, true, true]);

    await store.actions.send('say else');
    expect(texts(store.getView().transcript)).toEqual(['say one', 'one', 'say else', 'else']);

    const forked = await store.actions.fork(two ?? '');
    expect(forked).not.toBe(sessionId);
    expect(store.getView()).toMatchObject({ sessionId: forked, custom: { topics: ['Rome'] } });
  });

  test('S720: a message is sent in another form from where it stood: a branch, for the first one a second root', async () => {
    const store = createAgentStore({ agent: agentOf() });
    for (const text of ['say one', 'say two', 'say three']) await store.actions.send(text);
    const { sessionId } = store.getView();
    await store.actions.resend(2, 'say zwei');
    expect(texts(store.getView().transcript)).toEqual(['say one', 'one', 'say zwei', 'zwei']);
    expect(store.getView().sessionId).toBe(sessionId);
    await store.actions.loadTimeline();
    expect(store.getView().timeline.map(({ orphaned }) => orphaned)).toEqual([
      false,
      true,
      true,
      false,
    ]);
    await store.actions.send('say drei');
    expect(texts(store.getView().transcript).at(-1)).toBe('drei');
    await store.actions.resend(0, 'say new');
    expect(texts(store.getView().transcript)).toEqual(['say new', 'new']);
    expect(store.getView().sessionId).toBe(sessionId);
    await store.actions.loadTimeline();
    expect(store.getView().timeline.at(-1)).toMatchObject({ orphaned: false, turnIndex: 0 });
    await store.actions.send('say next');
    expect(texts(store.getView().transcript)).toEqual(['say new', 'new', 'say next', 'next']);
  });

  test('S341: a long conversation is loaded from its end, and earlier messages when asked for', async () => {
    const sessionId = `paged ${transport}`;
    const said = ['a', 'b', 'c', 'd', 'e', 'f'];
    for (const word of said) await served.chat.runText(`say ${word}`, { sessionId });
    const all = said.flatMap((word) => [`say ${word}`, word]);
    const store = createAgentStore({ agent: agentOf(), sessionId, messages: 4 });
    store.open();
    await ready(store);
    expect(store.getView().earlier).toBe(8);
    expect(texts(store.getView().transcript)).toEqual(all.slice(8));
    expect(store.getView().messages.map(({ index }) => index)).toEqual([8, 9, 10, 11]);
    await store.actions.send('say g');
    expect(store.getView().earlier).toBe(8);
    expect(texts(store.getView().transcript)).toEqual([...all.slice(8), 'say g', 'g']);
    await Promise.all([store.actions.loadEarlier(), store.actions.loadEarlier()]);
    expect(store.getView().earlier).toBe(4);
    await store.actions.loadEarlier();
    await store.actions.loadEarlier();
    expect(store.getView().earlier).toBe(0);
    expect(texts(store.getView().transcript)).toEqual([...all, 'say g', 'g']);
    const whole = await served.chat.getSession(sessionId);
    expect(store.getView().transcript).toEqual(whole?.state?.messages);

    const other = createAgentStore({ agent: agentOf(), sessionId, messages: 4 });
    other.open();
    await ready(other);
    await other.actions.resend(2, 'say zwei');
    expect(texts(other.getView().transcript)).toEqual(['say a', 'a', 'say zwei', 'zwei']);
    expect(other.getView().sessionId).toBe(sessionId);
  });

  test('S340: a session and a snapshot are read with a page of their messages', async () => {
    const agent = agentOf();
    const sessionId = `pages ${transport}`;
    for (const word of ['a', 'b', 'c']) await served.chat.runText(`say ${word}`, { sessionId });
    const whole = await agent.getSession(sessionId);
    const all = whole?.state?.messages ?? [];
    const pages = [{ last: 2 }, { last: 3, before: 4 }, { last: 1000 }];
    for (const messages of pages) {
      const from = Math.max(0, (messages.before ?? 6) - messages.last);
      const expected = {
        state: { messages: all.slice(from, messages.before) },
        messageRange: { from, total: 6 },
      };
      expect(await agent.getSession(sessionId, { messages })).toMatchObject(expected);
      expect(await agent.getSnapshot({ sessionId }, { messages })).toMatchObject(expected);
      const snapshotId = whole?.headId ?? '';
      const snapshot = await agent.getSnapshot(snapshotId, { messages });
      expect(snapshot).toMatchObject(expected);
      expect(snapshot?.interrupts).toEqual([]);
    }
    for (const last of [0, 1001, 1.5]) {
      const refused = { status: 'INVALID_ARGUMENT' };
      await expect(agent.getSession(sessionId, { messages: { last } })).rejects.toMatchObject(
        refused,
      );
    }
  });

  test('S169: actions take ifHead, and a stale one changes nothing', async () => {
    const store = createAgentStore({ agent: agentOf() });
    for (const text of ['say one', 'say two']) await store.actions.send(text);
    await store.actions.loadTimeline();
    const [one = '', two = ''] = store.getView().timeline.map(({ snapshotId }) => snapshotId);
    const stale = { ifHead: one };
    const aborted = { status: 'ABORTED', details: { headId: two } };
    expect(await store.actions.restore(one, stale)).toBe(false);
    expect(store.getView().error).toMatchObject(aborted);
    expect(await store.actions.fork(one, stale)).toBeUndefined();
    expect(await store.actions.label(one, 'x', stale)).toBe(false);
    expect(await store.actions.send('say three', stale)).toBeUndefined();
    expect(store.getView()).toMatchObject({ phase: 'ready', error: aborted, snapshotId: two });
    await store.actions.send('say three', { ifHead: two });
    expect(texts(store.getView().transcript).at(-1)).toBe('three');
  });

  test('what goes wrong is told in the view, not thrown', async () => {
    const store = createAgentStore({ agent: agentOf() });
    expect(await store.actions.restore('no-such')).toBe(false);
    expect(store.getView().error?.status).toBe('NOT_FOUND');
    expect(await store.actions.send('x', { from: 'no-such' })).toBeUndefined();
    expect(store.getView()).toMatchObject({ phase: 'ready', error: { status: 'NOT_FOUND' } });
    expect(await store.actions.send({})).toBeUndefined();
    expect(store.getView().error?.status).toBe('INVALID_ARGUMENT');
    const turn = store.actions.send('slow 3');
    expect(await store.actions.send('me too')).toBeUndefined();
    expect(store.getView().error?.status).toBe('FAILED_PRECONDITION');
    await turn;
  });
});

test('a page that comes after a checkpoint sees what was asked as well', async () => {
  const first = createAgentStore({ agent: agents['over HTTP']() });
  const turn = first.actions.send('weather in Waitville');
  await expect.poll(() => first.getView().text).toContain('w2');
  const store = createAgentStore({
    agent: agents['over HTTP'](),
    sessionId: first.getView().sessionId ?? '',
  });
  store.open();
  await expect.poll(() => store.getView().text).toContain('w2');
  expect(texts(store.getView().transcript).slice(0, 3)).toEqual([
    'weather in Waitville',
    'toolRequest',
    'toolResponse',
  ]);
  served.letGo('Waitville');
  await turn;
  await ready(store);
  expect(texts(store.getView().transcript)).toEqual(texts(first.getView().transcript));
});

test('two calls of one sub-agent at once are shown apart', async () => {
  const agent = client<TestApp['boss']>({ url: served.url, agent: 'boss' });
  const store = createAgentStore({ agent });
  const turn = store.actions.send('ask both wait for one and wait for two');
  const inside = () => store.getView().subAgents.map(({ agent, text }) => `${agent}: ${text}`);
  await expect.poll(inside).toEqual(['chat: w0 w1 w2 ', 'chat: w0 w1 w2 ']);
  const refs = store.getView().subAgents.map(({ ref }) => ref);
  expect(new Set(refs).size).toBe(2);
  served.letGo('one');
  served.letGo('two');
  await turn;
  const requests = store.getView().transcript[1]?.content ?? [];
  expect(requests.map((part) => 'toolRequest' in part && part.toolRequest.ref)).toEqual(refs);
});

test('a sub-agent is shown while the turn waits for it, and then stands in its tool', async () => {
  const agent = client<TestApp['boss']>({ url: served.url, agent: 'boss' });
  const store = createAgentStore({ agent });
  const turn = store.actions.send('ask wait for the-boss');
  const inside = () => store.getView().subAgents.map(({ agent, text }) => `${agent}: ${text}`);
  await expect.poll(inside).toEqual(['chat: w0 w1 w2 ']);
  expect(store.getView().text).toBe('');
  served.letGo('the-boss');
  await turn;
  expect(store.getView().subAgents).toEqual([]);
  expect(texts(store.getView().transcript)).toEqual([
    'ask wait for the-boss',
    'toolRequest',
    'toolResponse',
    'the-boss',
  ]);
});

test('the structured output of a run is there also for who only followed it', async () => {
  const agent = client<TestApp['former']>({ url: served.url, agent: 'former' });
  const store = createAgentStore({ agent });
  await store.actions.send('say {"title":"Plan"}', { detach: true });
  await expect.poll(() => store.getView().phase).toBe('ready');
  expect(store.getView().output).toEqual({ title: 'Plan' });
});

test('custom state, status and artifacts of a custom agent are live', async () => {
  const agent = client<TestApp['counter']>({ url: served.url, agent: 'counter' });
  const store = createAgentStore({ agent, throttle: 0 });
  const seen = new Set<string>();
  store.subscribe(() => {
    const { custom, status, artifacts } = store.getView();
    const [artifact] = artifacts;
    const part = artifact?.parts[0];
    seen.add(`${custom?.n} ${status?.at} ${part && 'text' in part ? part.text : ''}`);
  });
  await store.actions.send('count');
  expect([...seen]).toContain('3 3 3');
  expect(store.getView()).toMatchObject({ custom: { n: 3 }, status: { at: 3 } });
});

test('a client-managed agent is a conversation like any other', async () => {
  const agent = client<TestApp['portable']>({ url: served.url, agent: 'portable' });
  const store = createAgentStore({ agent });
  await store.actions.send('say one');
  const before = store.getView().messages;
  await store.actions.send('say two');
  expect(texts(store.getView().transcript)).toEqual(['say one', 'one', 'say two', 'two']);
  expect(store.getView().messages[0]).toBe(before[0]);
});

test('views come in steps however fast the chunks are', async () => {
  const store = createAgentStore({ agent: served.chat, throttle: 50 });
  let views = 0;
  store.subscribe(() => views++);
  await store.actions.send(`say ${'word '.repeat(500)}`);
  expect(views).toBeLessThan(25);
  expect(texts(store.getView().transcript).at(-1)).toHaveLength(2500);
});

test('nothing is sent before a store is opened or used', () => {
  const store = createAgentStore({
    agent: client({ url: 'http://127.0.0.1:1', agent: 'chat' }),
    sessionId: 's',
  });
  expect(store.getView()).toMatchObject({ phase: 'loading', sessionId: 's', error: undefined });
});

test('a server that is not there is an error of the view', async () => {
  const agent = client({ url: 'http://127.0.0.1:1', agent: 'chat', reconnect: false });
  const store = createAgentStore({ agent, sessionId: 's' });
  store.open();
  await expect.poll(() => store.getView().error?.status).toBe('UNAVAILABLE');
  expect(store.getView().phase).toBe('ready');
});

test('a turn of a long conversation costs what it adds', async () => {
  const requests: string[] = [];
  const counted: typeof fetch = (target, init) => {
    requests.push(`${init?.method} ${new URL(String(target)).pathname.split('/').at(-2)}`);
    return fetch(target, init);
  };
  const sessionId = 'long';
  for (let turn = 0; turn < 205; turn++) await served.chat.runText('say x', { sessionId });
  const agent = client<TestApp['chat']>({ url: served.url, agent: 'chat', fetch: counted });
  const store = createAgentStore({ agent, sessionId, timeline: true });
  store.open();
  await expect.poll(() => store.getView().timeline.length).toBe(205);
  requests.length = 0;
  const before = store.getView();
  await store.actions.send('say more');
  await expect.poll(() => store.getView().timeline.length).toBe(206);
  // The turn, what it changed, and the last page of the timeline at its start and its end.
  expect(requests).toEqual(['POST chat', 'GET long', 'GET diff', 'GET long']);
  const after = store.getView();
  expect(before.messages.every((message, at) => after.messages[at] === message)).toBe(true);
  expect(before.timeline.slice(0, 200).every((shot, at) => after.timeline[at] === shot)).toBe(true);
});

test('S544: the end of a long timeline is loaded first, and stays up to date; earlier snapshots on request', async () => {
  const sessionId = 'long-timeline';
  for (let turn = 0; turn < 25; turn++) await served.chat.runText('say x', { sessionId });
  const listed: string[] = [];
  const counted: typeof fetch = (target, init) => {
    if (String(target).includes('newestFirst')) listed.push(String(target));
    return fetch(target, init);
  };
  const agent = client<TestApp['chat']>({ url: served.url, agent: 'chat', fetch: counted });
  const store = createAgentStore({ agent, sessionId, timeline: 10 });
  const indexes = (): number[] => store.getView().timeline.map(({ index }) => index);
  const from = (first: number, last: number): number[] =>
    Array.from({ length: last - first + 1 }, (_, at) => first + at);
  store.open();
  await expect.poll(indexes).toEqual(from(15, 24));
  expect(store.getView().hasEarlierSnapshots).toBe(true);
  expect(listed).toHaveLength(1);

  await store.actions.send('say more');
  await expect.poll(indexes).toEqual(from(15, 25));
  await store.actions.loadEarlierSnapshots();
  expect(indexes()).toEqual(from(5, 25));
  const { snapshotId = '' } = store.getView().timeline[3] ?? {};
  await store.actions.restore(snapshotId);
  await expect
    .poll(() => store.getView().timeline.filter(({ orphaned }) => orphaned).length)
    .toBe(17);
  expect(indexes()).toEqual(from(5, 25));
  await store.actions.loadEarlierSnapshots();
  expect(indexes()).toEqual(from(0, 25));
  expect(store.getView().hasEarlierSnapshots).toBe(false);
  await store.actions.loadEarlierSnapshots();
  expect(indexes()).toEqual(from(0, 25));
});

test('a server that lists snapshots only oldest first is read to the end', async () => {
  const sessionId = 'old-server';
  for (let turn = 0; turn < 5; turn++) await served.chat.runText('say x', { sessionId });
  const old: typeof fetch = (target, init) => {
    const url = new URL(String(target));
    url.searchParams.delete('newestFirst');
    return fetch(url, init);
  };
  const agent = client<TestApp['chat']>({ url: served.url, agent: 'chat', fetch: old });
  const store = createAgentStore({ agent, sessionId, timeline: 2 });
  store.open();
  await expect
    .poll(() => store.getView().timeline.map(({ index }) => index))
    .toEqual([0, 1, 2, 3, 4]);
  expect(store.getView().hasEarlierSnapshots).toBe(false);
  await store.actions.send('say more');
  await expect.poll(() => store.getView().timeline.length).toBe(6);
});
