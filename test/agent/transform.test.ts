import { expect, test } from 'vitest';
import type { Transform } from '../../src/agent/contract/spec.ts';
import type { State } from '../../src/protocol/state.ts';
import { scriptedModel } from '../../src/testing/scripted-model.ts';
import {
  all,
  modelSays,
  must,
  openApp,
  refused,
  say,
  type TestApp,
  told,
  until,
} from './support/kit.ts';

interface Custom {
  readonly open: number;
  readonly secret: string;
}

/** An agent that changes its state, sends an artifact and says something secret. */
function define(app: TestApp, transform: Transform) {
  return app.defineCustomAgent(
    { name: 'custom', initialState: { open: 0, secret: 'the secret' }, transform },
    (session, { respond }) =>
      session.run(async () => {
        session.updateCustom((draft) => {
          (draft as { open: number }).open++;
        });
        session.updateCustom((draft) => {
          (draft as { secret: string }).secret += '!';
        });
        session.updateCustom((draft) => {
          (draft as { open: number }).open++;
        });
        await respond.artifact({ name: 'report', parts: [{ text: 'the secret report' }] });
        await respond.modelChunk({ role: 'model', content: [{ text: 'the secret answer' }] });
        session.addMessages(modelSays('the secret answer'));
        expect(JSON.stringify(session.state)).toContain('the secret!');
      }),
  );
}

const hiding: Transform = {
  state: ({ custom, messages, artifacts, ...rest }: State) => ({
    ...rest,
    messages: (messages ?? []).map(({ role }) => ({ role, content: [{ text: 'hidden' }] })),
    custom: { open: (custom as unknown as Custom | undefined)?.open ?? 0 },
    artifacts: (artifacts ?? []).map(({ name = '' }) => ({ name, parts: [] })),
  }),
  chunk: ({ modelChunk: _, ...rest }) => rest,
};

test('S95 S96 S97 what a transform hides does not leave, whichever way it is asked for', async () => {
  await using app = openApp();
  const agent = define(app, hiding);
  const { stream, output } = agent.streamText('a');
  const chunks = await all(stream);
  const out = await output;
  const { sessionId, snapshotId = '' } = out;
  const second = await agent.runText('b', { sessionId });
  const detached = await agent.run({ ...say('c'), detach: true }, { sessionId });
  const left: unknown[] = [
    chunks,
    out,
    await agent.wait(must(detached.snapshotId)),
    await all(agent.watch(must(detached.snapshotId))),
    await all(agent.watch(must(detached.snapshotId), { after: '1.0' })),
    await all(agent.watch(snapshotId)),
    await agent.getSnapshot({ snapshotId }),
    await agent.getSnapshot({ sessionId }),
    await agent.getSession(sessionId),
    await agent.listSnapshots(sessionId),
    await agent.diff(snapshotId, must(second.snapshotId)),
    await agent.label(snapshotId, 'x'),
    await agent.restore(snapshotId),
    await agent.fork(snapshotId),
  ];
  for (const each of left) expect(JSON.stringify(each)).not.toContain('secret');
  expect(chunks.map((chunk) => chunk.customPatch).filter(Boolean)).toEqual([
    [{ op: 'replace', path: '', value: { open: 1 } }],
    [{ op: 'replace', path: '/open', value: 2 }],
  ]);
  expect(chunks.map(({ artifact }) => artifact).filter(Boolean)).toEqual([
    { name: 'report', parts: [] },
  ]);
  expect(out).toMatchObject({
    message: { content: [{ text: 'hidden' }] },
    artifacts: [{ name: 'report', parts: [] }],
  });
  expect(chunks.filter(({ modelChunk }) => modelChunk)).toEqual([]);
  expect(chunks.filter(({ turnStart, turnEnd }) => turnStart ?? turnEnd)).toHaveLength(2);
  // The store has it all.
  const stored = await app.store?.getSnapshot({ agent: 'custom' }, { snapshotId });
  expect(JSON.stringify(stored)).toContain('the secret answer');
});

test('S95 S96 a state transform alone covers artifacts and patches; undefined leaves out', async () => {
  await using app = openApp();
  const agent = define(app, { state: () => undefined });
  const { stream, output } = agent.streamText('a');
  const chunks = await all(stream);
  expect(chunks.map((chunk) => Object.keys(chunk).join())).toEqual([
    'turnStart',
    'modelChunk',
    'snapshotCreated,turnEnd',
  ]);
  const { sessionId, message, artifacts } = await output;
  expect({ message, artifacts }).toEqual({});
  expect(await agent.getSnapshot({ sessionId })).not.toHaveProperty('state');
  expect(await agent.getSession(sessionId)).not.toHaveProperty('state');

  const mute = app.defineAgent({
    name: 'mute',
    model: scriptedModel(['x']),
    transform: { chunk: () => undefined },
  });
  expect(
    (await all(mute.streamText('a').stream)).map((chunk) => Object.keys(chunk).join()),
  ).toEqual(['turnStart', 'snapshotCreated,turnEnd']);
});

test('S95 a transform gets a copy: what it changes in place is nobody else’s', async () => {
  await using app = openApp();
  const agent = define(app, {
    state: (state) => {
      state.messages?.splice(0);
      (state.custom as { open: number }).open = -1;
      return state;
    },
    chunk: (chunk) => {
      if (chunk.artifact) chunk.artifact.parts.length = 0;
      return chunk;
    },
  });
  const { sessionId } = await agent.runText('a');
  const { state } = must(await agent.getSession(sessionId));
  expect([state?.messages, state?.custom]).toEqual([[], { open: -1, secret: 'the secret!' }]);
  const stored = must(await app.store?.getSnapshot({ agent: 'custom' }, { sessionId }));
  expect(told(stored.state?.messages)).toEqual(['user: a', 'model: the secret answer']);
  expect(stored.state).toMatchObject({
    custom: { open: 2 },
    artifacts: [{ parts: [{ text: 'the secret report' }] }],
  });
});

test('S98 a state transform that throws lets nothing out, and a saved turn is not reported as failed', async () => {
  await using app = openApp();
  let broken = false;
  const chat = app.defineAgent({
    name: 'chat',
    model: scriptedModel({ patterns: [], otherwise: 'the secret' }),
    transform: {
      state: (state) => {
        if (broken) throw new Error('of the secret');
        return state;
      },
    },
  });
  const { sessionId, snapshotId = '' } = await chat.runText('a');
  broken = true;
  const connection = chat.streamBidi({ sessionId });
  await connection.sendText('b');
  const end = await until(connection.receive(), ({ turnEnd }) => turnEnd !== undefined);
  expect(end.turnEnd).toMatchObject({ finishReason: 'stop', snapshotId: expect.any(String) });
  const calls = [
    () => connection.output(),
    () => chat.getSnapshot({ snapshotId }),
    () => chat.getSession(sessionId),
    () => chat.diff(snapshotId, snapshotId),
    () => chat.wait(snapshotId),
    () => all(chat.watch(snapshotId)),
  ];
  for (const call of calls) {
    const error = await refused(call(), 'INTERNAL');
    expect(JSON.stringify(error)).not.toContain('secret');
  }
  broken = false;
  // What was saved is there.
  expect((await chat.getSession(sessionId))?.turnCount).toBe(2);
});

test('S98 a chunk transform that throws fails the turn, with one turnEnd', async () => {
  await using app = openApp();
  const model = scriptedModel(['the secret', 'fine']);
  let broken = true;
  const chat = app.defineAgent({
    name: 'chat',
    model,
    transform: {
      chunk: (chunk) => {
        if (broken) throw new Error('of the secret');
        return chunk;
      },
    },
  });
  const { stream, output } = chat.streamText('a');
  const chunks = await all(stream);
  expect(chunks.map((chunk) => Object.keys(chunk).join())).toEqual(['turnStart', 'turnEnd']);
  const { error, sessionId } = await output;
  expect(error).toMatchObject({ status: 'INTERNAL' });
  expect(JSON.stringify([chunks, error])).not.toContain('secret');
  broken = false;
  expect(await chat.runText('b', { sessionId })).toMatchObject({ finishReason: 'stop' });
});

test('S98 a patch whose transform throws fails the turn, and nothing of it leaves', async () => {
  await using app = openApp();
  const agent = define(app, {
    state: ({ custom, ...rest }) => {
      if ((custom as unknown as Custom | undefined)?.secret.endsWith('!')) throw new Error('x');
      return rest;
    },
  });
  const { stream, output } = agent.streamText('a');
  expect((await all(stream)).map((chunk) => Object.keys(chunk).join())).toEqual([
    'turnStart',
    'turnEnd',
  ]);
  expect(await output).toMatchObject({ finishReason: 'failed', error: { status: 'INTERNAL' } });
});

test('S95 S99 a client-held state is signed after its transform', async () => {
  await using app = openApp();
  const chat = app.defineAgent({
    name: 'chat',
    store: false,
    clientState: { secret: 'k'.repeat(32) },
    initialState: { open: 1, secret: 'the secret' },
    model: scriptedModel(['one', 'two']),
    transform: { state: ({ custom: _, ...rest }) => rest },
  });
  const { state } = await chat.runText('a');
  expect(JSON.stringify(state)).not.toContain('secret');
  expect(await chat.runText('b', { state: must(state) })).toMatchObject({ finishReason: 'stop' });
});

function marked(
  { messages = [] }: State,
  snapshotId: string | null,
): NonNullable<State['messages']> {
  return messages.map((message) => ({ ...message, metadata: { ...message.metadata, snapshotId } }));
}

test('S687 snapshot ids that a transform adds to a client-held state are signed with it', async () => {
  await using app = openApp({ storeless: true });
  const chat = app.defineAgent({
    name: 'chat',
    clientState: { secret: 'a'.repeat(32) },
    model: scriptedModel({ patterns: [], otherwise: 'ok' }),
    transform: { state: (state) => ({ ...state, messages: marked(state, 'mine') }) },
  });
  const state = must((await chat.runText('a')).state) as State;
  await chat.runText('b', { state });
  const changed = { ...state, messages: marked(state, 'other') };
  await refused(chat.runText('b', { state: changed }), 'PERMISSION_DENIED');
});

test('S99 S687 a signature is for one agent, one secret and one content, snapshot ids included', async () => {
  await using app = openApp({ storeless: true });
  const model = scriptedModel({ patterns: [], otherwise: 'ok' });
  const define = (name: string, secret: string) =>
    app.defineAgent({ name, clientState: { secret: secret.repeat(32) }, model });
  const chat = define('chat', 'a');
  const state = must((await chat.runText('x')).state) as State;
  expect(await chat.runText('y', { state })).toMatchObject({ finishReason: 'stop' });
  const touched: State[] = [
    { ...state, sessionId: 'another' },
    { ...state, custom: { admin: true } },
    { ...state, messages: state.messages?.slice(1) ?? [] },
    { ...state, artifacts: [{ name: 'a', parts: [] }] },
    { ...state, messages: marked(state, 'x') },
    { ...state, messages: marked(state, null) },
    { ...state, seal: `${state.seal?.slice(1)}0` },
    { ...state, seal: '' },
    (({ seal: _, ...rest }) => rest)(state),
  ];
  for (const each of touched)
    await refused(chat.runText('y', { state: each }), 'PERMISSION_DENIED');
  await refused(define('other', 'a').runText('y', { state }), 'PERMISSION_DENIED');
  await using later = openApp({ storeless: true });
  const rotated = later.defineAgent({
    name: 'chat',
    clientState: { secret: 'b'.repeat(32) },
    model,
  });
  await refused(rotated.runText('y', { state }), 'PERMISSION_DENIED');
});
