import { expect, test } from 'vitest';
import { memoryStore } from '../../src/store/memory/memory-store.ts';
import { scriptedModel } from '../../src/testing/scripted-model.ts';
import { createGate } from './support/gate.ts';
import { all, must, openApp, refused, say, told } from './support/kit.ts';

test('S91 with reject the second turn is ABORTED, in this app and in another', async () => {
  const store = memoryStore();
  await using app = openApp({ store });
  await using other = openApp({ store });
  const gate = createGate();
  const model = scriptedModel([gate.giving('one'), 'two']);
  const [chat, remote] = [app, other].map((each) => each.defineAgent({ name: 'chat', model }));
  const first = must(chat).runText('a', { sessionId: 's' });
  await gate.reached;
  for (const agent of [must(chat), must(remote)]) {
    const error = await refused(agent.runText('b', { sessionId: 's' }), 'ABORTED');
    expect(error.details).toMatchObject({ running: expect.any(String) });
    expect(error.message).toContain(Object(error.details).running);
  }
  gate.open();
  await first;
  await must(remote).runText('c', { sessionId: 's' });
  expect(told((await must(chat).getSession('s'))?.state?.messages)).toEqual([
    'user: a',
    'model: one',
    'user: c',
    'model: two',
  ]);
});

test('S92 with wait turns run one after the other, each on what the one before left', async () => {
  const store = memoryStore();
  await using app = openApp({ store });
  await using other = openApp({ store });
  const model = scriptedModel({ patterns: [[/.*/, ([text]) => `re ${text}`]], otherwise: '' });
  const agents = [app, other].map((each) =>
    each.defineAgent({ name: 'chat', model, concurrency: 'wait' }),
  );
  const outputs = await Promise.all(
    Array.from({ length: 10 }, (_, n) => must(agents[n % 2]).runText(`${n}`, { sessionId: 's' })),
  );
  expect(outputs.map(({ finishReason }) => finishReason)).toEqual(Array(10).fill('stop'));
  const { state, turnCount } = must(await must(agents[0]).getSession('s'));
  expect(turnCount).toBe(10);
  const said = told(state?.messages);
  expect(said.filter((_, at) => at % 2 === 0).toSorted()).toEqual(
    Array.from({ length: 10 }, (_, n) => `user: ${n}`),
  );
  for (let at = 0; at < 20; at += 2)
    expect(said[at + 1]).toBe(said[at]?.replace('user: ', 'model: re '));
  const { items } = await must(agents[0]).listSnapshots('s');
  items.forEach(({ index, turnIndex, parentId }, at) => {
    expect([index, turnIndex, parentId]).toEqual([at, at, items[at - 1]?.snapshotId]);
  });
});

test('S93 with fork the second turn runs in a session of its own, also in a fresh session', async () => {
  await using app = openApp();
  const gate = createGate();
  const chat = app.defineAgent({
    name: 'chat',
    concurrency: 'fork',
    model: scriptedModel([gate.giving('one'), 'two']),
  });
  const first = chat.runText('a', { sessionId: 's' });
  await gate.reached;
  const second = await chat.runText('b', { sessionId: 's' });
  expect(second.sessionId).not.toBe('s');
  expect(told((await chat.getSession(second.sessionId))?.state?.messages)).toEqual([
    'user: b',
    'model: two',
  ]);
  gate.open();
  expect((await first).sessionId).toBe('s');
});

test('S93 an answer to an interrupt is never forked: nothing is paid twice', async () => {
  await using app = openApp();
  const gate = createGate();
  let paid = 0;
  const pay = app.defineTool(
    { name: 'pay', description: 'Pays.' },
    async (_, { resumed, interrupt }) => {
      if (resumed === undefined) interrupt();
      paid++;
      await gate.wait();
      return 'paid';
    },
  );
  const chat = app.defineAgent({
    name: 'chat',
    concurrency: 'fork',
    tools: [pay],
    model: scriptedModel([{ toolCalls: [{ name: 'pay', ref: 'r' }] }, 'done']),
  });
  const { snapshotId = '' } = await chat.runText('pay');
  const resume = { restart: [{ toolRequest: { name: 'pay', ref: 'r', input: {} } }] };
  const first = chat.run({ resume }, { snapshotId });
  await gate.reached;
  await refused(chat.run({ resume }, { snapshotId }), 'ABORTED');
  gate.open();
  expect(await first).toMatchObject({ finishReason: 'stop' });
  await refused(chat.run({ resume }, { snapshotId }), 'FAILED_PRECONDITION');
  expect(paid).toBe(1);
});

test('S94 a connection whose session was moved on is told so, follows, or forks from where it was', async () => {
  for (const concurrency of ['reject', 'wait', 'fork'] as const) {
    await using app = openApp();
    const model = scriptedModel({ patterns: [[/.*/, ([text]) => `re ${text}`]], otherwise: '' });
    const chat = app.defineAgent({ name: 'chat', model, concurrency });
    const connection = chat.streamBidi({ sessionId: 's' });
    await connection.sendText('a');
    await all(connection.turn());
    await chat.runText('b', { sessionId: 's' });
    await connection.sendText('c');
    if (concurrency === 'reject') {
      await refused(connection.output(), 'ABORTED');
      expect((await chat.getSession('s'))?.turnCount).toBe(2);
      continue;
    }
    const { sessionId } = await connection.output();
    const said = told((await chat.getSession(sessionId))?.state?.messages);
    if (concurrency === 'wait') {
      expect(sessionId).toBe('s');
      expect(said).toEqual([
        'user: a',
        'model: re a',
        'user: b',
        'model: re b',
        'user: c',
        'model: re c',
      ]);
    } else {
      expect(sessionId).not.toBe('s');
      expect(said).toEqual(['user: a', 'model: re a', 'user: c', 'model: re c']);
      expect((await chat.getSession('s'))?.turnCount).toBe(2);
    }
  }
});

test('S94 where there is nothing left to fork from, the turn is refused', async () => {
  await using app = openApp();
  const model = scriptedModel({ patterns: [], otherwise: 'ok' });
  const chat = app.defineAgent({ name: 'chat', model, concurrency: 'fork', snapshot: 'never' });
  const connection = chat.streamBidi({ sessionId: 's' });
  await connection.sendText('a');
  await all(connection.turn());
  // What the connection stands on is not a snapshot, and is replaced by the next state.
  await chat.runText('b', { sessionId: 's' });
  await connection.sendText('c');
  await refused(connection.output(), 'ABORTED');
});

test('S89 another agent’s and another owner’s ids are unknown', async () => {
  await using app = openApp();
  const model = scriptedModel({ patterns: [], otherwise: 'ok' });
  const chat = app.defineAgent({ name: 'chat', model });
  const other = app.defineAgent({ name: 'other', model });
  const mine = { owner: 'me' };
  const { sessionId, snapshotId = '' } = await chat.runText('a', mine);
  const strangers: [typeof chat, { owner?: string }][] = [
    [other, mine],
    [chat, { owner: 'you' }],
    [chat, {}],
  ];
  for (const [agent, who] of strangers) {
    expect(await agent.getSnapshot({ snapshotId }, who)).toBeUndefined();
    expect(await agent.getSnapshot({ sessionId }, who)).toBeUndefined();
    expect(await agent.getSession(sessionId, who)).toBeUndefined();
    expect((await agent.listSnapshots(sessionId, who)).items).toEqual([]);
    expect((await agent.listSessions(who)).items).toEqual([]);
    expect(await agent.abort(snapshotId, who)).toBeUndefined();
    expect(await agent.deleteSession(sessionId, who)).toBe(false);
    await refused(agent.runText('b', { ...who, snapshotId }), 'NOT_FOUND');
    await refused(agent.restore(snapshotId, who), 'NOT_FOUND');
    await refused(agent.fork(snapshotId, who), 'NOT_FOUND');
    await refused(agent.label(snapshotId, 'x', who), 'NOT_FOUND');
    await refused(agent.diff(snapshotId, snapshotId, who), 'NOT_FOUND');
    await refused(agent.wait(snapshotId, who), 'NOT_FOUND');
    await refused(all(agent.watch(snapshotId, who)), 'NOT_FOUND');
  }
  // The same session id is another session for somebody else.
  expect(await chat.run(say('b'), { owner: 'you', sessionId })).toMatchObject({ sessionId });
  expect((await chat.getSession(sessionId, mine))?.turnCount).toBe(1);
});
