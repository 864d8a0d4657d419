import { expect, test } from 'vitest';
import { fakeClock } from '../../src/testing/fake-clock.ts';
import { scriptedModel } from '../../src/testing/scripted-model.ts';
import { all, hasText, must, openApp, refused, say, told, until } from './support/kit.ts';

test('S35 S136 run, runText, stream, streamText and a connection are the same turn', async () => {
  await using app = openApp();
  const usage = { inputTokens: 1, outputTokens: 1, totalTokens: 2 };
  const chat = app.defineAgent({
    name: 'chat',
    model: scriptedModel(Array(5).fill({ text: 'Hi.', usage })),
  });
  const shapes = [
    await chat.run(say('hello')),
    await chat.runText('hello'),
    await chat.stream(say('hello')).output,
    await chat.streamText('hello').output,
  ];
  const connection = chat.streamBidi();
  await connection.sendText('hello');
  const chunks = await all(connection.turn());
  shapes.push(await connection.output());
  expect(chunks.map((chunk) => Object.keys(chunk))).toEqual([
    ['turnStart'],
    ['modelChunk'],
    ['snapshotCreated', 'turnEnd'],
  ]);
  for (const { sessionId, snapshotId, snapshotIds, ...rest } of shapes) {
    expect(rest).toEqual({
      finishReason: 'stop',
      message: { role: 'model', content: [{ text: 'Hi.' }], metadata: { snapshotId } },
      output: 'Hi.',
      usage,
    });
    expect(snapshotIds).toEqual([snapshotId]);
    expect(sessionId).toBeTypeOf('string');
  }
});

test('S36 leaving receive early ends nothing, and the next loop goes on where it was left', async () => {
  await using app = openApp();
  const model = scriptedModel([{ chunks: ['a', 'b', 'c'] }, 'second']);
  const chat = app.defineAgent({ name: 'chat', model });
  const connection = chat.streamBidi();
  await connection.sendText('one');
  await until(connection.receive(), hasText);
  const rest = await all(connection.turn());
  expect(rest.map(({ modelChunk }) => modelChunk?.content[0])).toEqual([
    { text: 'b' },
    { text: 'c' },
    undefined,
  ]);
  await connection.sendText('two');
  expect(await all(connection.turn())).toHaveLength(3);
  expect(await connection.output()).toMatchObject({ finishReason: 'stop' });
});

test('S37 output closes the input and drains what nobody read', async () => {
  await using app = openApp();
  const chunks = Array.from({ length: 500 }, (_, n) => `${n} `);
  const chat = app.defineAgent({ name: 'chat', model: scriptedModel([{ chunks }]) });
  const connection = chat.streamBidi();
  await connection.sendText('count');
  const output = await connection.output();
  expect(told([must(output.message)])).toEqual([`model: ${chunks.join('')}`]);
  await refused(connection.sendText('more'), 'FAILED_PRECONDITION');
});

test('S37 a turn whose chunks nobody reads goes on to its end without a reader, and frees its session', async () => {
  const clock = fakeClock();
  await using app = openApp({ clock });
  const chunks = Array.from({ length: 2000 }, (_, n) => `${n} `);
  const chat = app.defineAgent({ name: 'chat', model: scriptedModel([{ chunks }, 'Next.']) });
  const { stream } = chat.streamText('count', { sessionId: 'unread' });
  const reading = stream[Symbol.asyncIterator]();
  const { value: first } = await reading.next();
  const snapshotId = must(first?.turnStart?.snapshotId);
  // A slow reader is waited for, as long as it reads.
  for (let read = 0; read < 3; read++) {
    await clock.advance(4 * 60_000);
    await reading.next();
  }
  expect((await chat.getSnapshot({ snapshotId }))?.status).toBe('pending');

  await clock.advance(6 * 60_000);
  const { state } = await chat.wait(snapshotId);
  expect(told(state?.messages).at(-1)).toBe(`model: ${chunks.join('')}`);
  expect(await chat.runText('next', { sessionId: 'unread' })).toMatchObject({
    finishReason: 'stop',
  });
  const late = all({ [Symbol.asyncIterator]: () => reading });
  await expect(late).rejects.toMatchObject({ status: 'OUT_OF_RANGE' });
});

test('S38 sending or detaching when the connection has ended is FAILED_PRECONDITION, however it ended', async () => {
  await using app = openApp();
  const chat = app.defineAgent({ name: 'chat', model: scriptedModel(['a', 'b']) });
  const closed = chat.streamBidi();
  closed.close();
  await refused(closed.sendText('late'), 'FAILED_PRECONDITION');

  const ended = chat.streamBidi();
  await ended.sendText('one');
  const { sessionId } = await ended.output();
  await refused(ended.sendText('late'), 'FAILED_PRECONDITION');
  await refused(ended.detach(), 'FAILED_PRECONDITION');
  await refused(ended.detach(say('late')), 'FAILED_PRECONDITION');
  expect((await chat.listSnapshots(sessionId)).items).toHaveLength(1);

  const aborted = chat.streamBidi();
  aborted.abort();
  await aborted.done;
  await refused(aborted.sendText('late'), 'FAILED_PRECONDITION');

  const early = app.defineCustomAgent({ name: 'early' }, async () => {});
  const left = early.streamBidi();
  await left.sendText('one');
  await left.done;
  await refused(left.sendText('late'), 'FAILED_PRECONDITION');
});

test('S39 an invalid input is refused where it is sent, and the connection goes on', async () => {
  await using app = openApp();
  const chat = app.defineAgent({ name: 'chat', model: scriptedModel(['fine']) });
  const connection = chat.streamBidi();
  await refused(connection.send({}), 'INVALID_ARGUMENT');
  await refused(
    connection.sendMessage({ role: 'model', content: [{ text: 'x' }] }),
    'INVALID_ARGUMENT',
  );
  await connection.sendText('good');
  expect(await connection.output()).toMatchObject({ finishReason: 'stop' });
});

test('S40 two hundred queued inputs are worked on in their order', async () => {
  await using app = openApp();
  const model = scriptedModel({ patterns: [[/.*/s, ([text]) => `re ${text}`]], otherwise: '' });
  const chat = app.defineAgent({ name: 'chat', model });
  const connection = chat.streamBidi();
  const sent = Array.from({ length: 200 }, (_, n) => `input ${n}`);
  await Promise.all(sent.map((text) => connection.sendText(text)));
  const output = await connection.output();
  expect(output.snapshotIds).toHaveLength(200);
  const { state } = must(await chat.getSession(output.sessionId));
  expect(told(state?.messages)).toEqual(
    sent.flatMap((text) => [`user: ${text}`, `model: re ${text}`]),
  );
});

test('S40 more than a thousand waiting inputs are RESOURCE_EXHAUSTED', async () => {
  await using app = openApp();
  const chat = app.defineAgent({ name: 'chat', model: scriptedModel([{ hang: true }]) });
  const connection = chat.streamBidi();
  await connection.sendText('first');
  await until(connection.receive(), ({ turnStart }) => turnStart !== undefined);
  for (let n = 0; n < 1_000; n++) await connection.sendText('x');
  await refused(connection.sendText('one more'), 'RESOURCE_EXHAUSTED');
  connection.abort();
  expect(await connection.output()).toMatchObject({ finishReason: 'aborted' });
});

test('S41 a chat follows its session, or the state that its client holds', async () => {
  await using app = openApp();
  const model = scriptedModel(['1', '2', '3', '4']);
  const kept = app.defineAgent({ name: 'kept', model }).chat();
  const held = app.defineAgent({ name: 'held', model, store: false }).chat();
  for (const chat of [kept, held]) {
    const first = await chat.send('a');
    const { stream, output } = chat.stream('b');
    await all(stream);
    expect((await output).sessionId).toBe(first.sessionId);
    expect(chat.sessionId).toBe(first.sessionId);
  }
  expect(kept.snapshotId).toBeDefined();
  expect(told(held.state?.messages)).toEqual(['user: a', 'model: 3', 'user: b', 'model: 4']);
  expect(model.requests.map(({ messages }) => messages.length)).toEqual([1, 3, 1, 3]);
});

test('S34 S137 a connection that gets no input claims and saves nothing', async () => {
  await using app = openApp();
  const chat = app.defineAgent({ name: 'chat', model: scriptedModel(['one']) });
  const nothing = await chat.streamBidi().output();
  expect(nothing).toEqual({ sessionId: nothing.sessionId });
  expect((await chat.listSessions()).items).toEqual([]);
  const first = await chat.runText('hello');
  const before = await chat.getSession(first.sessionId);
  for (const init of [{ sessionId: first.sessionId }, { snapshotId: must(first.snapshotId) }]) {
    expect(await chat.streamBidi(init).output()).toMatchObject({ sessionId: first.sessionId });
  }
  expect(await chat.getSession(first.sessionId)).toEqual(before);
});
