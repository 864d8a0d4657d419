import { expect, test } from 'vitest';
import type { RunEnd } from '../../src/agent/contract/spec.ts';
import type { SnapshotStore, Store } from '../../src/store/contract/store.ts';
import { memoryStore } from '../../src/store/memory/memory-store.ts';
import { scriptedModel } from '../../src/testing/scripted-model.ts';
import { eventually } from '../support/eventually.ts';
import { createGate } from './support/gate.ts';
import { all, hasText, must, openApp, refused, say, told, until } from './support/kit.ts';

test('S108 S109 a turn that is sent detached goes on as a pending snapshot, which then succeeds', async () => {
  await using app = openApp();
  const gate = createGate();
  const model = scriptedModel(['before', gate.giving('done')]);
  const chat = app.defineAgent({ name: 'chat', model });
  const first = await chat.runText('hello');
  const detached = await chat.run(
    { ...say('go on'), detach: true },
    { sessionId: first.sessionId },
  );
  expect(detached).toEqual({
    sessionId: first.sessionId,
    snapshotId: detached.snapshotId,
    snapshotIds: [],
    finishReason: 'detached',
  });
  const snapshotId = must(detached.snapshotId);
  const pending = must(await chat.getSnapshot({ snapshotId }));
  expect(pending).toMatchObject({
    status: 'pending',
    event: 'detach',
    parentId: first.snapshotId,
    turnIndex: 1,
    index: 1,
  });
  expect((await chat.getSession(first.sessionId))?.running).toBe(snapshotId);
  gate.open();
  const ended = await chat.wait(snapshotId);
  expect(ended).toMatchObject({
    status: 'succeeded',
    event: 'detach',
    finishReason: 'stop',
    parentId: first.snapshotId,
    createdAt: pending.createdAt,
    index: 1,
    turnIndex: 1,
  });
  expect(told(ended.state?.messages).slice(2)).toEqual(['user: go on', 'model: done']);
  expect(await chat.getSession(first.sessionId)).toMatchObject({ headId: snapshotId });
  expect((await chat.listSnapshots(first.sessionId)).items).toHaveLength(2);
});

test('S108 S109 in the middle of a turn, with inputs queued behind it', async () => {
  await using app = openApp();
  const gate = createGate();
  const model = scriptedModel([gate.giving('one'), 'two', 'three']);
  const chat = app.defineAgent({ name: 'chat', model });
  const connection = chat.streamBidi();
  await connection.sendText('a');
  await connection.sendText('b');
  await gate.reached;
  const output = await connection.detach(say('c'));
  expect(output).toMatchObject({ finishReason: 'detached' });
  expect(await connection.output()).toEqual(output);
  await connection.done;
  const chunks = await all(connection.receive());
  expect(chunks).toEqual([
    { turnStart: expect.objectContaining({ snapshotId: output.snapshotId }) },
  ]);
  gate.open();
  const ended = await chat.wait(must(output.snapshotId));
  expect(told(ended.state?.messages)).toEqual([
    'user: a',
    'model: one',
    'user: b',
    'model: two',
    'user: c',
    'model: three',
  ]);
  expect(ended).toMatchObject({ status: 'succeeded', turnIndex: 2, index: 0 });
  expect((await chat.listSnapshots(output.sessionId)).items).toHaveLength(1);
});

test('S108 between two turns, and with nothing queued at all', async () => {
  await using app = openApp();
  const chat = app.defineAgent({ name: 'chat', model: scriptedModel(['one', 'two']) });
  const connection = chat.streamBidi();
  await connection.sendText('a');
  await all(connection.turn());
  const output = await connection.detach();
  const ended = await chat.wait(must(output.snapshotId));
  expect(ended).toMatchObject({
    status: 'succeeded',
    event: 'detach',
    parentId: output.snapshotIds?.[0],
  });
  expect(told(ended.state?.messages)).toEqual(['user: a', 'model: one']);

  const empty = await chat.streamBidi().detach();
  expect(await chat.wait(must(empty.snapshotId))).toMatchObject({ status: 'succeeded' });
  expect(await chat.runText('b', { sessionId: empty.sessionId })).toMatchObject({
    sessionId: empty.sessionId,
    finishReason: 'stop',
  });
});

test('S38 what is sent after a detach is not taken', async () => {
  await using app = openApp();
  const chat = app.defineAgent({ name: 'chat', model: scriptedModel(['one']) });
  const connection = chat.streamBidi();
  const detached = connection.detach(say('a'));
  await refused(connection.sendText('b'), 'FAILED_PRECONDITION');
  await refused(connection.detach(), 'FAILED_PRECONDITION');
  const { snapshotId } = await detached;
  const ended = await chat.wait(must(snapshotId));
  expect(told(ended.state?.messages)).toEqual(['user: a', 'model: one']);
});

test('S110 a detached run hears neither its former caller nor its connection', async () => {
  await using app = openApp();
  const gate = createGate();
  const model = scriptedModel([gate.giving('done')]);
  const chat = app.defineAgent({ name: 'chat', model });
  const caller = new AbortController();
  const connection = chat.streamBidi({ signal: caller.signal });
  await connection.sendText('a');
  await gate.reached;
  const { snapshotId } = await connection.detach();
  connection.abort();
  caller.abort();
  gate.open();
  expect(await chat.wait(must(snapshotId))).toMatchObject({ status: 'succeeded' });
  expect(model.stops).toBe(0);
});

test('S111 without a store, or over one that cannot abort, detach is refused and nothing is run', async () => {
  const { abort: _, ...rest } = memoryStore();
  const minimal: SnapshotStore = (({ getSnapshot, saveSnapshot }: Store) => ({
    getSnapshot,
    saveSnapshot,
  }))(memoryStore());
  for (const store of [rest, minimal, false] as const) {
    await using app = openApp();
    const model = scriptedModel(['one', 'two']);
    const chat = app.defineAgent({ name: 'chat', model, store });
    expect(chat.metadata.detachable).toBe(false);
    await refused(chat.run({ ...say('a'), detach: true }), 'FAILED_PRECONDITION');
    const connection = chat.streamBidi();
    await refused(connection.detach(say('b')), 'FAILED_PRECONDITION');
    // It goes on as it was.
    await connection.sendText('c');
    expect(await connection.output()).toMatchObject({ finishReason: 'stop' });
    expect(model.requests.map(({ messages }) => told(messages))).toEqual([['user: c']]);
  }
});

test('S112 S124 abort makes the row aborted, keeps the partial state, and frees the session', async () => {
  await using app = openApp();
  const ends: RunEnd[] = [];
  const chat = app.defineAgent({
    name: 'chat',
    model: scriptedModel([{ chunks: ['half ', 'an answer'], hang: true }, 'next']),
    onFinish: (end) => void ends.push(end),
  });
  const { sessionId, snapshotId = '' } = await chat.run({ ...say('a'), detach: true });
  await until(chat.watch(snapshotId), (event) => event.type === 'chunk' && hasText(event.chunk));
  expect(await chat.abort(snapshotId)).toBe('aborted');
  expect(await chat.abort(snapshotId)).toBe('aborted');
  await eventually(() => ends.length > 0);
  const snapshot = must(await chat.getSnapshot({ snapshotId }));
  expect(snapshot).toMatchObject({ status: 'aborted', finishReason: 'aborted' });
  expect(told(snapshot.state?.messages)).toEqual(['user: a', 'model: half an answer']);
  expect(ends).toMatchObject([{ agent: 'chat', snapshot: { snapshotId, status: 'aborted' } }]);
  await refused(chat.runText('x', { snapshotId }), 'FAILED_PRECONDITION');
  const next = await chat.runText('b', { sessionId });
  expect(told((await chat.getSnapshot({ sessionId }))?.state?.messages)).toEqual([
    'user: b',
    'model: next',
  ]);
  expect(next.sessionId).toBe(sessionId);
  expect(app.errors).toEqual([]);
});

test('S112 a custom handler that was streaming leaves what it had sent', async () => {
  await using app = openApp();
  const agent = app.defineCustomAgent({ name: 'custom' }, (session, { respond, signal }) =>
    session.run(async () => {
      await respond.modelChunk({ content: [{ text: 'half' }] });
      await new Promise((resolve) => signal.addEventListener('abort', resolve));
    }),
  );
  const { snapshotId = '' } = await agent.run({ ...say('a'), detach: true });
  await until(agent.watch(snapshotId), ({ type }) => type === 'chunk');
  await agent.abort(snapshotId);
  await eventually(
    async () => told((await agent.getSnapshot({ snapshotId }))?.state?.messages).length === 2,
  );
  const { state } = must(await agent.getSnapshot({ snapshotId }));
  expect(told(state?.messages)).toEqual(['user: a', 'model: half']);
});

test('S112 an id that is unknown aborts to undefined', async () => {
  await using app = openApp();
  const chat = app.defineAgent({ name: 'chat', model: scriptedModel(['one']) });
  expect(await chat.abort('01890000-0000-7000-8000-000000000000')).toBeUndefined();
  expect(await chat.abort('no such id')).toBeUndefined();
  const { snapshotId = '' } = await chat.runText('a');
  expect(await chat.abort(snapshotId)).toBe('succeeded');
});

test('S124 onFinish hears of every end; what it throws is reported and changes nothing', async () => {
  await using app = openApp();
  const ends: string[] = [];
  const chat = app.defineAgent({
    name: 'chat',
    model: scriptedModel(['fine', { error: new Error('broken') }, 'again']),
    onFinish: ({ snapshot, owner }) => {
      ends.push(`${owner} ${snapshot.status}`);
      if (snapshot.status === 'failed') throw new Error('hook');
    },
  });
  const owner = 'me';
  for (const text of ['a', 'b']) {
    const { snapshotId = '' } = await chat.run({ ...say(text), detach: true }, { owner });
    await chat.wait(snapshotId, { owner });
    // The hook is called after the end was saved.
    await eventually(() => ends.length === (text === 'a' ? 1 : 2));
  }
  await eventually(() => app.errors.length === 2);
  expect(ends).toEqual(['me succeeded', 'me failed']);
  expect(app.errors).toMatchObject([{ cause: { message: 'broken' } }, { message: 'hook' }]);
  await chat.runText('attached', { owner });
  expect(ends).toHaveLength(2);
});

test('S109 a detached run that fails keeps its error, and the session goes on from before', async () => {
  await using app = openApp();
  const model = scriptedModel(['one', 'two', { error: new Error('secret') }, 'after']);
  const chat = app.defineAgent({ name: 'chat', model });
  const first = await chat.runText('a');
  const connection = chat.streamBidi({ sessionId: first.sessionId });
  await connection.sendText('b');
  await connection.sendText('c');
  const { snapshotId = '' } = await connection.detach();
  const failed = await chat.wait(snapshotId);
  expect(failed).toMatchObject({
    status: 'failed',
    finishReason: 'failed',
    error: { status: 'INTERNAL' },
    parentId: first.snapshotId,
  });
  expect(JSON.stringify(failed.error)).not.toContain('secret');
  expect(await chat.getSession(first.sessionId)).toMatchObject({ headId: first.snapshotId });
  await chat.runText('d', { sessionId: first.sessionId });
  expect(told(model.requests.at(-1)?.messages)).toEqual(['user: a', 'model: one', 'user: d']);
});

test('S109 an input that is refused when its time comes ends the run as failed', async () => {
  await using app = openApp();
  const chat = app.defineAgent({ name: 'chat', model: scriptedModel(['one']) });
  const connection = chat.streamBidi();
  await connection.sendText('a');
  const sent = connection.sendResume({ respond: [{ toolResponse: { name: 'none', output: 1 } }] });
  const { snapshotId = '' } = await connection.detach();
  // The run has it now, and ends by it.
  await sent;
  expect(await chat.wait(snapshotId)).toMatchObject({
    status: 'failed',
    error: { status: 'INVALID_ARGUMENT' },
  });
  // One that is refused at once is told to whoever detaches.
  await refused(
    chat.run({
      resume: { respond: [{ toolResponse: { name: 'none', output: 1 } }] },
      detach: true,
    }),
    'INVALID_ARGUMENT',
  );
});

test('S88 S108 a bad init is told to whoever detaches', async () => {
  await using app = openApp();
  const chat = app.defineAgent({ name: 'chat', model: scriptedModel([]) });
  const snapshotId = '01890000-0000-7000-8000-000000000000';
  await refused(chat.run({ ...say('a'), detach: true }, { snapshotId }), 'NOT_FOUND');
  await refused(chat.streamBidi({ snapshotId }).detach(say('a')), 'NOT_FOUND');
});
