import { describe, expect, test, vi } from 'vitest';
import { WebSocket } from 'ws';
import { createClient } from '../../src/client/index.ts';
import { WaymarkError } from '../../src/core/error.ts';
import { serve } from '../../src/server/index.ts';
import type { Store } from '../../src/store/contract/store.ts';
import { memoryStore } from '../../src/store/memory/memory-store.ts';
import { scriptedModel } from '../../src/testing/scripted-model.ts';
import { movableClock } from '../support/movable-clock.ts';
import { createGate } from './support/gate.ts';
import { all, must, openApp, refused, told, until } from './support/kit.ts';
import { localStores, withLocalStore } from './support/local-stores.ts';
import { mortalStore } from './support/mortal-store.ts';

describe.each(localStores)('with the %s store', (name) => {
  const withStore = (work: (store: Store) => Promise<void>) => withLocalStore(name, work);

  test('S400 S401 a running turn takes messages after its tools, and before it would end', async () => {
    await withStore(async (store) => {
      await using app = openApp({ store });
      const [inTool, inAnswer] = [createGate(), createGate()];
      const wait = app.defineTool({ name: 'wait', description: 'Waits.' }, () =>
        inTool.giving('done')(),
      );
      const model = scriptedModel([
        { toolCalls: [{ name: 'wait' }] },
        inAnswer.giving('first answer'),
        'second answer',
      ]);
      const chat = app.defineAgent({ name: 'chat', model, tools: [wait] });
      const turn = chat.streamText('start');
      const chunks = all(turn.stream);
      await inTool.reached;
      expect(await turn.steer('in the tool', { requestId: 'one' })).toEqual({
        id: 'one',
        status: 'queued',
      });
      expect(await turn.steer('in the tool', { requestId: 'one' })).toMatchObject({ id: 'one' });
      inTool.open();
      await inAnswer.reached;
      await turn.steer('before the end');
      inAnswer.open();
      const output = await turn.output;
      expect(output).toMatchObject({ text: 'second answer', finishReason: 'stop' });
      const snapshot = must(await chat.getSnapshot(must(output.snapshotId)));
      expect(told(snapshot.state?.messages)).toEqual([
        'user: start',
        'model: [wait?]',
        'tool: [wait!]',
        'user: in the tool',
        'model: first answer',
        'user: before the end',
        'model: second answer',
      ]);
      expect(told(model.requests[1]?.messages).at(-1)).toBe('user: in the tool');
      const steered = (await chunks).flatMap((chunk) => chunk.steered ?? []);
      expect(told(steered)).toEqual(['user: in the tool', 'user: before the end']);
      expect(steered[0]?.metadata).toEqual({ steered: { id: 'one', runId: output.snapshotId } });
      // A sender that did not get its answer finds out what became of the message.
      const run = must(output.snapshotId);
      expect(await chat.steer(run, 'in the tool', { requestId: 'one' })).toEqual({
        id: 'one',
        status: 'taken',
      });
      await refused(chat.steer(run, 'too late'), 'FAILED_PRECONDITION');
      expect(app.errors).toEqual([]);
    });
  });

  test('S402 another process steers a turn, in the background as well', async () => {
    await withStore(async (store) => {
      await using app = openApp({ store });
      await using other = openApp({ store });
      const gate = createGate();
      const wait = app.defineTool({ name: 'wait', description: 'Waits.' }, () =>
        gate.giving('done')(),
      );
      const model = scriptedModel([{ toolCalls: [{ name: 'wait' }] }, 'answer']);
      const chat = app.defineAgent({ name: 'chat', model, tools: [wait] });
      const remote = other.defineAgent({ name: 'chat', model });
      const { id } = await chat.start('start');
      await gate.reached;
      const handle = remote.attach(id);
      await handle.steer('from afar');
      gate.open();
      await handle.wait();
      const { state } = must(await chat.getSnapshot(id));
      expect(told(state?.messages)).toEqual([
        'user: start',
        'model: [wait?]',
        'tool: [wait!]',
        'user: from afar',
        'model: answer',
      ]);
    });
  });
});

describe.each(['http', 'websocket'] as const)('over %s', (transport) => {
  test('S403 a client steers the turn of a stream, a connection, a chat and a run id', async () => {
    await using app = openApp();
    const gates = [createGate(), createGate(), createGate()];
    let at = 0;
    const answers = scriptedModel([
      () => must(gates[at++]).giving('one')(),
      'two',
      () => must(gates[at++]).giving('three')(),
      'four',
      () => must(gates[at++]).giving('five')(),
      'six',
    ]);
    app.defineAgent({ name: 'chat', model: answers });
    const server = await serve(app, { port: 0, log: () => {} });
    try {
      const client = createClient({ url: server.url, transport, WebSocket });
      const chat = client.agent('chat');
      const { metadata } = await chat.describe();
      expect(metadata.steerable).toBe(true);

      const turn = chat.streamText('go', { sessionId: 'a' });
      const steered = turn.steer('more', { requestId: 'm' });
      await gates[0]?.reached;
      expect(await steered).toEqual({ id: 'm', status: 'queued' });
      gates[0]?.open();
      expect((await turn.output).text).toBe('two');

      const talk = chat.chat({ sessionId: 'b' });
      await refused(talk.steer('nothing runs'), 'FAILED_PRECONDITION');
      const sent = talk.send('go');
      await gates[1]?.reached;
      await talk.steer('more');
      gates[1]?.open();
      expect((await sent).text).toBe('four');
      await refused(talk.steer('nothing runs'), 'FAILED_PRECONDITION');

      const connection = chat.streamBidi({ sessionId: 'c' });
      await connection.sendText('go');
      const { turnStart } = await until(connection.receive(), ({ turnStart: start }) => !!start);
      await gates[2]?.reached;
      await connection.steer('more');
      await chat.steer(must(turnStart?.snapshotId), {
        message: { role: 'user', content: [{ text: 'and more' }] },
      });
      gates[2]?.open();
      expect((await connection.output()).text).toBe('six');
      const session = await chat.getSession('c');
      expect(told(session?.state?.messages)).toEqual([
        'user: go',
        'model: five',
        'user: more',
        'user: and more',
        'model: six',
      ]);
      await refused(chat.steer(must(turnStart?.snapshotId), 'late'), 'FAILED_PRECONDITION');
      await refused(chat.steer(crypto.randomUUID(), 'lost'), 'NOT_FOUND');
    } finally {
      await server.close();
    }
  });
});

test('S404 a turn that is stopped, fails or waits for an answer ends without what it has not taken', async () => {
  await using app = openApp();
  const gates = { stop: createGate(), fail: createGate(), ask: createGate() };
  const model = scriptedModel({
    patterns: [
      [/stop/, { chunks: ['half'], hang: true }],
      [/fail/, { toolCalls: [{ name: 'fail' }] }],
      [/ask/, { toolCalls: [{ name: 'ask' }] }],
    ],
    afterTools: () => ({ error: new Error('on purpose') }),
    otherwise: 'never',
  });
  const fail = app.defineTool({ name: 'fail', description: 'Fails.' }, () => 'done');
  const ask = app.defineTool({ name: 'ask', description: 'Asks.' }, async (_, { interrupt }) => {
    await gates.ask.wait();
    return interrupt();
  });
  const chat = app.defineAgent({ name: 'chat', model, tools: [fail, ask] });

  const asking = chat.streamText('ask', { sessionId: 'ask' });
  await gates.ask.reached;
  await asking.steer('too early', { requestId: 'a' });
  gates.ask.open();
  const asked = await asking.output;
  expect(asked.finishReason).toBe('interrupted');
  expect(told((await chat.getSession('ask'))?.state?.messages)).toEqual([
    'user: ask',
    'model: [ask?]',
  ]);
  await refused(
    chat.steer(must(asked.snapshotId), 'too early', { requestId: 'a' }),
    'FAILED_PRECONDITION',
  );

  const stopping = chat.streamBidi({ sessionId: 'stop' });
  await stopping.sendText('stop');
  await until(stopping.receive(), ({ modelChunk }) => modelChunk !== undefined);
  await stopping.steer('never');
  stopping.abort();
  const stopped = await stopping.output();
  expect(told((await chat.getSession('stop'))?.state?.messages)).toEqual([
    'user: stop',
    'model: half',
  ]);
  await refused(chat.steer(must(stopped.snapshotId), 'never'), 'FAILED_PRECONDITION');
});

test('S405 what cannot be added to a turn is refused', async () => {
  await using app = openApp();
  const gate = createGate();
  const chat = app.defineAgent({ name: 'chat', model: scriptedModel([gate.giving('one'), 'two']) });
  const turn = chat.streamText('a');
  await gate.reached;
  await refused(turn.steer({ resume: {} }), 'INVALID_ARGUMENT');
  await refused(
    turn.steer({ message: { role: 'model', content: [{ text: 'x' }] } }),
    'INVALID_ARGUMENT',
  );
  await refused(turn.steer('x'.repeat(1_000_001)), 'RESOURCE_EXHAUSTED');
  gate.open();
  const { snapshotId } = await turn.output;
  await refused(chat.steer(must(snapshotId), ''), 'INVALID_ARGUMENT');
  await refused(chat.steer(crypto.randomUUID(), 'x'), 'NOT_FOUND');
  await using storeless = openApp({ storeless: true });
  const held = storeless.defineAgent({ name: 'held', model: scriptedModel(['a']) });
  await refused(held.steer(crypto.randomUUID(), 'x'), 'FAILED_PRECONDITION');
});

test('S401 a message that arrives while the end of a background run cannot be saved is taken after a takeover', async () => {
  const { clock, advance } = movableClock();
  const claimTtl = 60_000;
  const store = memoryStore({ clock });
  const runs = must(store.runs);
  let isDown = true;
  const failing: Store = {
    ...store,
    runs: {
      ...runs,
      async commit(ref, write) {
        if (!write.end || !isDown) return await runs.commit(ref, write);
        isDown = false;
        await remote.steer(ref.runId, 'too late?', { requestId: 'a' });
        throw new WaymarkError('UNAVAILABLE', 'The store is down.');
      },
    },
  };
  await using first = openApp({ store: failing, claimTtl, clock, onError: () => {} });
  await using second = openApp({ store, claimTtl, clock });
  const chat = first.defineAgent({ name: 'chat', model: scriptedModel(['one']) });
  const remote = second.defineAgent({ name: 'chat', model: scriptedModel(['two', 'three']) });
  const { id: runId } = await chat.start('start', { sessionId: 's' });
  await vi.waitFor(() => expect(isDown).toBe(false));
  await first.close();
  advance(2 * claimTtl);
  const ended = await remote.wait(runId);
  expect(ended).toMatchObject({ status: 'succeeded' });
  expect(told(ended.state?.messages)).toEqual([
    'user: start',
    'model: two',
    'user: too late?',
    'model: three',
  ]);
});

test('S406 a worker that takes over a run takes each message once', async () => {
  const { clock, advance } = movableClock();
  const claimTtl = 60_000;
  const store = memoryStore({ clock });
  const line = mortalStore(store);
  await using first = openApp({ store: line, claimTtl, clock });
  await using second = openApp({ store, claimTtl, clock });
  const gate = createGate();
  const define = (app: typeof first, answers: Parameters<typeof scriptedModel>[0]) => {
    const wait = app.defineTool({ name: 'wait', description: 'Waits.' }, () =>
      gate.giving('done')(),
    );
    return app.defineAgent({ name: 'chat', model: scriptedModel(answers), tools: [wait] });
  };
  const chat = define(first, [{ toolCalls: [{ name: 'wait' }] }, { chunks: ['lost'], hang: true }]);
  const remote = define(second, ['found']);
  const { id: runId } = await chat.start('start', { sessionId: 's' });
  await gate.reached;
  await remote.steer(runId, 'taken before', { requestId: 'a' });
  gate.open();
  await until(chat.watch(runId), (event) => JSON.stringify(event).includes('lost'));
  line.cut();
  await remote.steer(runId, 'taken after', { requestId: 'b' });
  advance(2 * claimTtl);
  const ended = await remote.wait(runId);
  await line.heal();
  expect(ended).toMatchObject({ status: 'succeeded' });
  expect(told(ended.state?.messages)).toEqual([
    'user: start',
    'model: [wait?]',
    'tool: [wait!]',
    'user: taken before',
    'user: taken after',
    'model: found',
  ]);
});

test('S406 a worker that loses a run while it asks for messages reports no error', async () => {
  const { clock, advance } = movableClock();
  const claimTtl = 60_000;
  const store = memoryStore({ clock });
  const runs = must(store.runs);
  const asked = createGate();
  let isFrozen = false;
  const frozen: Store = {
    ...store,
    runs: {
      ...runs,
      async heartbeat(ref) {
        if (isFrozen) return await new Promise(() => {});
        return await runs.heartbeat(ref);
      },
      async readInbox(ref) {
        isFrozen = true;
        await asked.wait();
        return await must(runs.readInbox)(ref);
      },
    },
  };
  await using first = openApp({ store: frozen, claimTtl, clock });
  await using second = openApp({ store, claimTtl, clock });
  const gate = createGate();
  const define = (app: typeof first, answers: Parameters<typeof scriptedModel>[0]) => {
    const wait = app.defineTool({ name: 'wait', description: 'Waits.' }, gate.giving('done'));
    return app.defineAgent({ name: 'chat', model: scriptedModel(answers), tools: [wait] });
  };
  const chat = define(first, [{ toolCalls: [{ name: 'wait' }] }, 'lost']);
  const remote = define(second, [{ toolCalls: [{ name: 'wait' }] }, 'found']);
  const turn = chat.streamText('start', { sessionId: 's', accept: true });
  const { turnStart } = must(await until(turn.stream, (chunk) => chunk.turnStart !== undefined));
  const runId = must(turnStart?.snapshotId);
  await gate.reached;
  await remote.steer(runId, 'more', { requestId: 'a' });
  gate.open();
  await asked.reached;
  advance(2 * claimTtl);
  await second.engine.recover();
  await remote.wait(runId);
  asked.open();
  expect(await turn.output).toMatchObject({ text: 'found' });
  expect(first.errors).toEqual([]);
});
