import { expect, test } from 'vitest';
import { z } from 'zod';
import type { Snapshot } from '../../src/protocol/snapshot.ts';
import type { SnapshotStore, Store } from '../../src/store/contract/store.ts';
import { memoryStore } from '../../src/store/memory/memory-store.ts';
import { scriptedModel } from '../../src/testing/scripted-model.ts';
import { all, must, openApp, refused, say, told } from './support/kit.ts';

const model = scriptedModel({ patterns: [], otherwise: 'ok' });

function minimal({ getSnapshot, saveSnapshot }: Store): SnapshotStore {
  return { getSnapshot, saveSnapshot };
}

test('S131 an agent is an action with metadata; its companions are there where the store can serve them', async () => {
  const state = z.object({ n: z.number() });
  await using app = openApp();
  app.defineAgent({ name: 'full', description: 'Does it all.', model, state });
  app.defineAgent({ name: 'least', model, store: minimal(memoryStore()) });
  app.defineAgent({ name: 'held', model, store: false });
  const keysOf = (name: string): string[] =>
    app.registry
      .keys()
      .filter((key) => key.split('/').includes(name))
      .toSorted();
  expect(keysOf('full')).toEqual([
    '/agent/full',
    '/prompt/full',
    '/session-store/full/getSession',
    '/session-store/full/getSnapshot',
    '/session-store/full/listSnapshots',
    '/snapshot-store/full/abortSnapshot',
    '/snapshot-store/full/getSnapshot',
    '/snapshot-store/full/listSnapshots',
  ]);
  expect(keysOf('least')).toEqual([
    '/agent/least',
    '/prompt/least',
    '/session-store/least/getSnapshot',
    '/snapshot-store/least/getSnapshot',
  ]);
  expect(keysOf('held')).toEqual(['/agent/held', '/prompt/held']);
  expect(app.registry.lookup('/agent/full').descriptor).toMatchObject({
    name: 'full',
    description: 'Does it all.',
    metadata: {
      agent: {
        stateManagement: 'server',
        abortable: true,
        detachable: true,
        watchable: true,
        timeline: true,
        claims: true,
        requestIds: true,
        steerable: true,
        stateSchema: { type: 'object' },
      },
    },
  });
  expect(app.registry.lookup('/agent/held').descriptor.metadata).toMatchObject({
    agent: {
      stateManagement: 'client',
      abortable: false,
      detachable: false,
      watchable: false,
      timeline: false,
    },
  });
});

test('S131 the companions answer, and an unknown id is NOT_FOUND', async () => {
  await using app = openApp();
  const chat = app.defineAgent({ name: 'chat', model });
  const { sessionId, snapshotId = '' } = await chat.runText('a');
  const run = (key: string, input: object): Promise<unknown> => app.registry.lookup(key).run(input);
  for (const store of ['snapshot-store', 'session-store']) {
    expect(await run(`/${store}/chat/getSnapshot`, { snapshotId })).toMatchObject({ snapshotId });
    expect(await run(`/${store}/chat/listSnapshots`, { sessionId })).toMatchObject([
      { snapshotId },
    ]);
  }
  expect(await run('/snapshot-store/chat/abortSnapshot', { snapshotId })).toEqual({
    snapshotId,
    status: 'succeeded',
  });
  expect(await run('/session-store/chat/getSession', { sessionId })).toMatchObject({
    sessionId,
    turnCount: 1,
  });
  const unknown = '01890000-0000-7000-8000-00000000000a';
  await refused(run('/snapshot-store/chat/getSnapshot', { snapshotId: unknown }), 'NOT_FOUND');
  await refused(run('/snapshot-store/chat/abortSnapshot', { snapshotId: unknown }), 'NOT_FOUND');
  await refused(run('/session-store/chat/getSession', { sessionId: 'nobody' }), 'NOT_FOUND');
  await refused(run('/snapshot-store/chat/getSnapshot', {}), 'INVALID_ARGUMENT');
});

test('S127 a store that can only read and save snapshots runs agents', async () => {
  const inner = memoryStore();
  await using app = openApp({ store: minimal(inner) });
  const chat = app.defineAgent({ name: 'chat', model, snapshot: 'always' });
  expect(chat.metadata).toEqual({
    stateManagement: 'server',
    abortable: false,
    detachable: false,
    watchable: false,
    timeline: false,
    claims: false,
    requestIds: false,
    steerable: false,
  });
  const { stream, output } = chat.streamText('a');
  expect((await all(stream)).at(-1)).toMatchObject({ turnEnd: { snapshotId: expect.any(String) } });
  const first = await output;
  const { sessionId, snapshotId = '' } = first;
  const connection = chat.streamBidi({ sessionId });
  await connection.sendText('b');
  await connection.sendText('c');
  const second = await connection.output();
  const head = must(await chat.getSnapshot({ sessionId }));
  expect(head).toMatchObject({ snapshotId: second.snapshotId, turnIndex: 2, index: 2 });
  expect(told(head.state?.messages)).toHaveLength(6);
  const branch = await chat.runText('d', { snapshotId });
  expect(branch.sessionId).toBe(sessionId);
  expect(await chat.getSnapshot({ snapshotId: must(branch.snapshotId) })).toMatchObject({
    parentId: snapshotId,
    turnIndex: 1,
  });
  await refused(
    chat.runText('x', { snapshotId: '01890000-0000-7000-8000-00000000000a' }),
    'NOT_FOUND',
  );
  const missing: unknown[] = [
    chat.run({ ...say('x'), detach: true }),
    chat.abort(snapshotId),
    chat.wait(snapshotId),
    all(chat.watch(snapshotId)),
    chat.listSnapshots(sessionId),
    chat.getSession(sessionId),
    chat.listSessions(),
    chat.updateSession(sessionId, { title: 'x' }),
    chat.deleteSession(sessionId),
    chat.restore(snapshotId),
    chat.fork(snapshotId),
    chat.label(snapshotId, 'x'),
  ];
  for (const call of missing) await refused(call, 'FAILED_PRECONDITION');
  expect(await inner.maintenance?.verify()).toEqual([]);
});

test('S127 S158 a store that answers with another session’s snapshot is not believed', async () => {
  const inner = memoryStore();
  let answer: Snapshot | undefined;
  const careless: SnapshotStore = {
    ...minimal(inner),
    getSnapshot: async (scope, lookup) => answer ?? (await inner.getSnapshot(scope, lookup)),
  };
  await using app = openApp({ store: careless });
  const chat = app.defineAgent({ name: 'chat', model });
  const mine = await chat.runText('mine', { sessionId: 'mine' });
  const other = await chat.runText('secret of another', { sessionId: 'other' });
  answer = must(await inner.getSnapshot({ agent: 'chat' }, { sessionId: 'other' }));
  const error = await refused(chat.runText('again', { sessionId: 'mine' }), 'DATA_LOSS');
  expect(error.message).toContain('"mine"');
  await refused(chat.runText('again', { snapshotId: must(mine.snapshotId) }), 'DATA_LOSS');
  answer = undefined;
  const { state } = must(await chat.getSnapshot({ snapshotId: must(other.snapshotId) }));
  expect(state?.messages).toHaveLength(2);
});

test('S127 S66 over such a store, policies, failures and tool iterations work', async () => {
  const inner = memoryStore();
  await using app = openApp({ store: minimal(inner) });
  const note = app.defineTool({ name: 'note', description: 'Notes.' }, (_, { session }) => {
    session?.setCustom({ noted: true });
    return 1;
  });
  const script = scriptedModel([
    { toolCalls: [{ name: 'note' }] },
    'done',
    { error: new Error('x') },
    'again',
  ]);
  const chat = app.defineAgent({ name: 'chat', model: script, tools: [note], snapshot: 'always' });
  const { sessionId, snapshotIds } = await chat.runText('a');
  expect(snapshotIds).toHaveLength(2);
  const failed = await chat.runText('b', { sessionId, throwOnError: false });
  expect(failed).toMatchObject({ finishReason: 'failed', snapshotId: snapshotIds?.[1] });
  await chat.runText('c', { sessionId });
  const { items } = must(await inner.timeline?.listSnapshots({ agent: 'chat' }, sessionId));
  expect(items.map(({ event, status, index }) => [event, status, index])).toEqual([
    ['toolIterationEnd', 'succeeded', 0],
    ['turnEnd', 'succeeded', 1],
    ['turnEnd', 'failed', 2],
    ['turnEnd', 'succeeded', 3],
  ]);
  const never = app.defineAgent({ name: 'never', model, snapshot: 'never' });
  const { sessionId: id, snapshotId } = await never.runText('a');
  expect(snapshotId).toBeUndefined();
  await never.runText('b', { sessionId: id });
  expect(told((await never.getSnapshot({ sessionId: id }))?.state?.messages)).toHaveLength(4);
});

test('S127 S162 over such a store, a turn that failed after a tool iteration is left behind', async () => {
  await using app = openApp({ store: minimal(memoryStore()) });
  const note = app.defineTool({ name: 'note', description: 'Notes.' }, () => 1);
  const call = { toolCalls: [{ name: 'note' }] };
  const broken = { error: new Error('x') };
  const script = scriptedModel([call, call, broken, 'one', call, broken, 'two']);
  const chat = app.defineAgent({ name: 'chat', model: script, tools: [note], snapshot: 'always' });
  const { sessionId } = await chat.runText('a', { throwOnError: false });
  const good = await chat.runText('b', { sessionId });
  expect(told(script.requests.at(-1)?.messages)).toEqual(['user: b']);
  const failed = await chat.runText('c', { sessionId, throwOnError: false });
  expect(failed).toMatchObject({ finishReason: 'failed', snapshotId: good.snapshotId });
  await chat.runText('d', { sessionId });
  expect(told(script.requests.at(-1)?.messages)).toEqual(['user: b', 'model: one', 'user: d']);
});

test('S111 S127 metadata says what a store with some of the parts can do', async () => {
  const { events: _, ...blind } = memoryStore();
  await using app = openApp({ store: blind });
  const chat = app.defineAgent({ name: 'chat', model });
  expect(chat.metadata).toMatchObject({ detachable: true, watchable: false });
  const { snapshotId = '' } = await chat.run({ ...say('x'), detach: true });
  expect(await chat.wait(snapshotId)).toMatchObject({ status: 'succeeded' });
});

test('S139 S79 S80 retention and labels: what is labelled, live or interrupted stays', async () => {
  const store = memoryStore();
  await using app = openApp({ store });
  const ask = app.defineInterrupt({ name: 'ask', description: 'Asks.' });
  const script = scriptedModel({
    patterns: [[/ask/, { toolCalls: [{ name: 'ask', ref: 'r' }] }]],
    afterTools: () => 'thanks',
    otherwise: 'ok',
  });
  const chat = app.defineAgent({ name: 'chat', model: script, tools: [ask] });
  const talk = chat.chat();
  const ids = [];
  for (const text of ['a', 'b', 'c', 'd']) ids.push(must((await talk.send(text)).snapshotId));
  await chat.label(must(ids[1]), 'keep this');
  const waiting = await chat.runText('ask');
  await store.maintenance?.prune({ keepLast: 1 });
  const left = await Promise.all(ids.map((snapshotId) => chat.getSnapshot({ snapshotId })));
  expect(left.map((snapshot) => snapshot?.label ?? snapshot?.status)).toEqual([
    undefined,
    'keep this',
    undefined,
    'succeeded',
  ]);
  await talk.send('e');
  const { state } = must(await chat.getSession(must(talk.sessionId)));
  expect(state?.messages).toHaveLength(10);
  const answered = await chat.run(
    { resume: { respond: [{ toolResponse: { name: 'ask', ref: 'r', output: 'yes' } }] } },
    { snapshotId: must(waiting.snapshotId) },
  );
  expect(answered).toMatchObject({ finishReason: 'stop' });
  await chat.updateSession(must(talk.sessionId), {
    title: 'A talk',
    metadata: { topic: 'letters' },
  });
  for (const query of ['talk', 'letters', must(talk.sessionId)]) {
    expect((await chat.listSessions({ query })).items).toMatchObject([
      { sessionId: talk.sessionId, title: 'A talk' },
    ]);
  }
  expect(await chat.deleteSession(must(talk.sessionId))).toBe(true);
  expect((await chat.listSessions()).items).toHaveLength(1);
});

test('S138 a template, a tool and what a tool calls see the state of the session', async () => {
  await using app = openApp();
  const seen: unknown[] = [];
  const inner = app.definePrompt({
    name: 'inner',
    system: 'Inner {{@state.name}}.',
    model: scriptedModel(['inner']),
  });
  const look = app.defineTool({ name: 'look', description: 'Looks.' }, async (_, { session }) => {
    seen.push(session?.custom);
    const rendered = await inner.render();
    seen.push(rendered.system);
    return null;
  });
  const script = scriptedModel([{ toolCalls: [{ name: 'look' }] }, 'done']);
  const chat = app.defineAgent({
    name: 'chat',
    model: script,
    tools: [look],
    system: 'Outer {{@state.name}}.',
    initialState: { name: 'Ada' },
  });
  await chat.runText('x');
  expect(seen).toEqual([{ name: 'Ada' }, [{ text: 'Inner Ada.' }]]);
  expect(told(script.requests[0]?.messages)[0]).toBe('system: Outer Ada.');
});
