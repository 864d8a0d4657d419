import { expect, test } from 'vitest';
import { systemClock } from '../../src/core/time.ts';
import { memoryStore } from '../../src/store/memory/memory-store.ts';
import { scriptedModel } from '../../src/testing/scripted-model.ts';
import { eventually } from '../support/eventually.ts';
import { createGate } from './support/gate.ts';
import { all, hasText, must, openApp, refused, say, told, until } from './support/kit.ts';
import { expectValid } from './support/valid.ts';

test('S53 S54 S55 the caller’s signal stops a turn; its output is a result', async () => {
  await using app = openApp();
  const model = scriptedModel([{ chunks: ['half'], hang: true }]);
  const chat = app.defineAgent({ name: 'chat', model });
  const caller = new AbortController();
  const { stream, output } = chat.streamText('a', { signal: caller.signal });
  await until(stream, hasText);
  caller.abort();
  const ended = await output;
  expect(ended).toMatchObject({
    finishReason: 'aborted',
    message: { content: [{ text: 'half' }] },
  });
  expect(ended.error).toBeUndefined();
  expect(model.stops).toBe(1);
});

test('S53 the reserved id stops a turn that another app runs', async () => {
  const store = memoryStore();
  await using app = openApp({ store });
  await using other = openApp({ store });
  const model = scriptedModel([{ chunks: ['half'], hang: true }]);
  const chat = app.defineAgent({ name: 'chat', model });
  const remote = other.defineAgent({ name: 'chat', model });
  const connection = chat.streamBidi();
  await connection.sendText('a');
  const { turnStart } = await until(connection.receive(), (chunk) => chunk.turnStart !== undefined);
  await until(connection.receive(), hasText);
  const snapshotId = must(turnStart?.snapshotId);
  expect(await remote.getSnapshot({ snapshotId })).toMatchObject({ status: 'pending' });
  expect(await remote.abort(snapshotId)).toBe('pending');
  expect(await connection.output()).toMatchObject({ finishReason: 'aborted' });
  expect(await remote.wait(snapshotId)).toMatchObject({
    status: 'succeeded',
    finishReason: 'aborted',
  });
});

test('S57 a stop before anything was accepted leaves nothing behind', async () => {
  await using app = openApp();
  const model = scriptedModel(['one']);
  const chat = app.defineAgent({ name: 'chat', model });
  const signal = AbortSignal.abort();
  for (const output of [
    await chat.runText('a', { signal }),
    await chat.streamText('a', { signal }).output,
    await chat.streamBidi({ signal }).output(),
  ]) {
    expect(output).toEqual({ sessionId: output.sessionId, finishReason: 'aborted' });
  }
  expect(await all(chat.streamText('a', { signal }).stream)).toEqual([]);
  const first = await chat.runText('b');
  const again = await chat.runText('c', { signal, sessionId: first.sessionId });
  expect(again).toMatchObject({ finishReason: 'aborted' });
  expect(await chat.getSession(first.sessionId)).toMatchObject({
    turnCount: 1,
    headId: first.snapshotId,
  });
  expect((await chat.listSessions()).items).toHaveLength(1);
  expect(model.requests).toHaveLength(1);
});

test('S57 S92 a stop while a turn waits for its session leaves the session alone', async () => {
  await using app = openApp();
  const gate = createGate();
  const chat = app.defineAgent({
    name: 'chat',
    concurrency: 'wait',
    model: scriptedModel([gate.giving('one')]),
  });
  const sessionId = 's';
  const first = chat.runText('a', { sessionId });
  await gate.reached;
  const caller = new AbortController();
  const second = chat.runText('b', { sessionId, signal: caller.signal });
  await new Promise((resolve) => setTimeout(resolve, 10));
  caller.abort();
  expect(await second).toEqual({ sessionId, finishReason: 'aborted' });
  gate.open();
  await first;
  expect(told((await chat.getSession(sessionId))?.state?.messages)).toEqual([
    'user: a',
    'model: one',
  ]);
});

test('S55 a stop at any await of the beginning keeps the message of an accepted turn', async () => {
  await using app = openApp();
  const chat = app.defineAgent({
    name: 'chat',
    model: scriptedModel({ patterns: [], otherwise: 'ok' }),
  });
  for (let awaits = 0; awaits < 40; awaits++) {
    const caller = new AbortController();
    const stream = chat.streamText(`stop after ${awaits}`, { signal: caller.signal });
    const output = stream.output;
    for (let n = 0; n < awaits; n++) await null;
    caller.abort();
    const { sessionId, finishReason, error } = await output;
    expect(error).toBeUndefined();
    const session = await chat.getSession(sessionId);
    const messages = session?.state?.messages ?? [];
    expectValid(messages);
    if (finishReason === 'stop') expect(messages).toHaveLength(2);
    else if (session !== undefined) expect(told(messages)[0]).toBe(`user: stop after ${awaits}`);
    expect(session?.running).toBeUndefined();
  }
});

test('S56 a handler that is deaf to its signal is left behind, and the partial answer is kept', async () => {
  const clock = {
    ...systemClock,
    sleep: (ms: number, signal?: AbortSignal) => systemClock.sleep(ms / 100, signal),
  };
  await using app = openApp({ clock });
  const gate = createGate();
  let late: unknown;
  const agent = app.defineCustomAgent({ name: 'deaf' }, (session, { respond }) =>
    session.run(async () => {
      await respond.modelChunk({ role: 'model', content: [{ text: 'half' }] });
      await gate.wait();
      try {
        session.setCustom('too late');
      } catch (error) {
        late = error;
      }
      await respond.status('dropped');
    }),
  );
  const connection = agent.streamBidi();
  await connection.sendText('a');
  await until(connection.receive(), hasText);
  connection.abort();
  const { turnEnd } = await until(connection.receive(), (chunk) => chunk.turnEnd !== undefined);
  expect(turnEnd).toMatchObject({ finishReason: 'aborted', snapshotId: expect.any(String) });
  const output = await connection.output();
  expect(output).toMatchObject({
    finishReason: 'aborted',
    message: { content: [{ text: 'half' }] },
  });
  gate.open();
  await eventually(() => late !== undefined);
  expect(late).toMatchObject({ status: 'FAILED_PRECONDITION' });
  const { state } = must(await agent.getSession(output.sessionId));
  expect(state?.custom).toBeUndefined();
  expect(told(state?.messages)).toEqual(['user: a', 'model: half']);
});

test('S31 after a stop a send is dropped and returns at once, however full the line', async () => {
  await using app = openApp();
  let sent = 0;
  const agent = app.defineCustomAgent({ name: 'chatty' }, (session, { respond, signal }) =>
    session.run(async () => {
      while (!signal.aborted) {
        await respond.status(sent);
        sent++;
      }
      for (let n = 0; n < 1_000; n++) await respond.status('dropped');
    }),
  );
  const connection = agent.streamBidi();
  await connection.sendText('a');
  await until(connection.receive(), ({ status }) => status !== undefined);
  await new Promise((resolve) => setTimeout(resolve, 20));
  // The line is full: the handler waits for its reader.
  expect(sent).toBeLessThan(200);
  connection.abort();
  const rest = await all(connection.receive());
  expect(rest.filter(({ status }) => status === 'dropped')).toEqual([]);
  expect(rest.at(-1)).toMatchObject({ turnEnd: { finishReason: 'aborted' } });
});

test('S31 on a normal end nothing is dropped, however slow the reader', async () => {
  await using app = openApp();
  const agent = app.defineCustomAgent({ name: 'chatty' }, (session, { respond }) =>
    session.run(async () => {
      for (let n = 0; n < 300; n++) await respond.status(n);
    }),
  );
  const seen: unknown[] = [];
  for await (const chunk of agent.streamText('a').stream) {
    if (seen.length % 50 === 0) await new Promise((resolve) => setTimeout(resolve, 2));
    if (chunk.status !== undefined) seen.push(chunk.status);
  }
  expect(seen).toEqual(Array.from({ length: 300 }, (_, n) => n));
});

test('S58 a stop that comes too late changes nothing', async () => {
  await using app = openApp();
  const chat = app.defineAgent({ name: 'chat', model: scriptedModel(['one', 'two']) });
  const connection = chat.streamBidi();
  await connection.sendText('a');
  const end = await until(connection.receive(), ({ turnEnd }) => turnEnd !== undefined);
  expect(await chat.abort(must(end.snapshotCreated))).toBe('succeeded');
  await connection.sendText('b');
  expect(await connection.output()).toMatchObject({ finishReason: 'stop' });
  connection.abort();
  expect(await connection.output()).toMatchObject({ finishReason: 'stop' });
});

test('S33 S58 what a handler does after a stop and before its end is saved', async () => {
  await using app = openApp();
  const agent = app.defineCustomAgent({ name: 'tidy' }, async (session) => {
    await session.run(() => {});
    session.setCustom('tidied up');
  });
  const connection = agent.streamBidi();
  await connection.sendText('a');
  await until(connection.receive(), ({ turnEnd }) => turnEnd !== undefined);
  connection.abort();
  const { sessionId } = await connection.output();
  expect((await agent.getSession(sessionId))?.state?.custom).toBe('tidied up');
});

test('S55 a stop during a resumed turn closes what was open', async () => {
  await using app = openApp();
  const ask = app.defineTool(
    { name: 'ask', description: 'Asks.' },
    async (_, { resumed, interrupt }) => {
      if (resumed === undefined) interrupt();
      await new Promise(() => {});
    },
  );
  const chat = app.defineAgent({
    name: 'chat',
    model: scriptedModel([{ toolCalls: [{ name: 'ask', ref: 'r' }] }, 'next']),
    tools: [ask],
  });
  const { sessionId } = await chat.runText('a');
  const connection = chat.streamBidi({ sessionId });
  await connection.sendResume({ restart: [{ toolRequest: { name: 'ask', ref: 'r', input: {} } }] });
  await until(connection.receive(), ({ turnStart }) => turnStart !== undefined);
  connection.abort();
  expect(await connection.output()).toMatchObject({ finishReason: 'aborted' });
  expectValid((await chat.getSession(sessionId))?.state?.messages ?? []);
  expect(await chat.run(say('b'), { sessionId })).toMatchObject({ finishReason: 'stop' });
});

test('S38 a client-managed turn that is stopped gives back its partial state', async () => {
  await using app = openApp({ storeless: true });
  const chat = app.defineAgent({
    name: 'chat',
    model: scriptedModel([{ chunks: ['half'], hang: true }, 'next']),
  });
  const connection = chat.streamBidi();
  await connection.sendText('a');
  await until(connection.receive(), hasText);
  connection.abort();
  const { state } = await connection.output();
  expect(told(state?.messages)).toEqual(['user: a', 'model: half']);
  await refused(connection.detach(), 'FAILED_PRECONDITION');
  expect(told((await chat.runText('b', { state: must(state) })).state?.messages)).toHaveLength(4);
});

test('S53 a handler that sends and sends, and waits for nothing, can be stopped', async () => {
  await using app = openApp();
  const chatter = app.defineCustomAgent(
    { name: 'chatter' },
    async (session, { respond, signal }) => {
      await session.run(async () => {
        for (let sent = 0; sent < 500_000 && !signal.aborted; sent++) {
          await respond.modelChunk({ content: [{ text: '.' }] });
        }
      });
    },
  );
  const { snapshotId = '' } = await chatter.run({ ...say('a'), detach: true });
  // By a timer, which a process has no time for whose promises follow each other without end.
  await systemClock.sleep(1);
  expect(await chatter.abort(snapshotId)).toBe('aborted');
  expect((await chatter.wait(snapshotId)).status).toBe('aborted');
});
