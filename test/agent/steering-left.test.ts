import { describe, expect, test } from 'vitest';
import { createClient } from '../../src/client/index.ts';
import { serve } from '../../src/server/index.ts';
import type { Store } from '../../src/store/contract/store.ts';
import { memoryStore } from '../../src/store/memory/memory-store.ts';
import { scriptedModel } from '../../src/testing/scripted-model.ts';
import { movableClock } from '../support/movable-clock.ts';
import { createGate, type Gate } from './support/gate.ts';
import {
  all,
  modelSays,
  must,
  openApp,
  refused,
  type TestApp,
  told,
  until,
} from './support/kit.ts';
import { localStores, withLocalStore } from './support/local-stores.ts';
import { mortalStore } from './support/mortal-store.ts';

type Concurrency = 'reject' | 'wait' | 'fork';
type Agent = ReturnType<TestApp['defineAgent']>;

/** An agent whose turns are stopped, fail or ask, each while its gate is closed. */
function define(app: TestApp, gate: Gate, concurrency: Concurrency): Agent {
  const fail = app.defineTool({ name: 'fail', description: 'Fails.' }, () => gate.giving('done')());
  const ask = app.defineTool({ name: 'ask', description: 'Asks.' }, async (_, tool) => {
    await gate.wait();
    return tool.interrupt();
  });
  const model = scriptedModel({
    patterns: [
      [/^stop/, { chunks: ['half'], hang: true }],
      [/^fail/, { toolCalls: [{ name: 'fail' }] }],
      [/^ask/, { toolCalls: [{ name: 'ask' }] }],
      [/^bad/, { error: new Error('on purpose') }],
    ],
    afterTools: () => ({ error: new Error('on purpose') }),
    otherwise: 'ok',
  });
  return app.defineAgent({ name: 'chat', model, tools: [fail, ask], concurrency });
}

const conversation = async (agent: Agent, sessionId: string) =>
  told((await agent.getSession(sessionId))?.state?.messages);

describe.each(localStores)('with the %s store', (name) => {
  const withStore = (work: (store: Store) => Promise<void>) => withLocalStore(name, work);

  test('S530 what a stopped turn has not taken is input of the next turn, in another process as well', async () => {
    await withStore(async (store) => {
      await using app = openApp({ store });
      await using other = openApp({ store });
      const chat = define(app, createGate(), 'wait');
      const remote = define(other, createGate(), 'wait');
      const turn = chat.streamBidi({ sessionId: 's' });
      await turn.sendText('stop');
      const { turnStart } = await until(turn.receive(), ({ turnStart: start }) => !!start);
      const run = must(turnStart?.snapshotId);
      await until(turn.receive(), ({ modelChunk }) => modelChunk !== undefined);
      for (const id of ['one', 'two']) await remote.steer(run, id, { requestId: id });
      turn.abort();
      await turn.output();
      expect(await remote.steer(run, 'one', { requestId: 'one' })).toEqual({
        id: 'one',
        status: 'next',
      });
      await refused(remote.steer(run, 'three'), 'FAILED_PRECONDITION');
      const next = remote.streamText('go on', { sessionId: 's' });
      const chunks = await all(next.stream);
      expect(told(chunks.flatMap(({ steered }) => steered ?? []))).toEqual([
        'user: one',
        'user: two',
      ]);
      expect(await conversation(remote, 's')).toEqual([
        'user: stop',
        'model: half',
        'user: one',
        'user: two',
        'user: go on',
        'model: ok',
      ]);
      expect(await chat.steer(run, 'one', { requestId: 'one' })).toMatchObject({ status: 'taken' });
      await chat.run('and on', { sessionId: 's' });
      expect((await conversation(chat, 's')).filter((line) => line === 'user: one')).toHaveLength(
        1,
      );
    });
  });

  test('S530 a turn that answers an interrupt takes them after its tools', async () => {
    await withStore(async (store) => {
      await using app = openApp({ store });
      const gate = createGate();
      const chat = define(app, gate, 'wait');
      const asking = chat.streamText('ask', { sessionId: 's' });
      await gate.reached;
      await asking.steer('later');
      gate.open();
      const asked = await asking.output;
      expect(asked.finishReason).toBe('interrupted');
      await chat.resume(asked, (request) => request.respond('answered'));
      expect(await conversation(chat, 's')).toEqual([
        'user: ask',
        'model: [ask?]',
        'tool: [ask!]',
        'user: later',
        'model: ok',
      ]);
    });
  });

  test('S531 a failed turn keeps what it has taken, and leaves the rest', async () => {
    await withStore(async (store) => {
      await using app = openApp({ store });
      const gate = createGate();
      const chat = define(app, gate, 'wait');
      const { id } = await chat.start('fail', { sessionId: 's' });
      await gate.reached;
      await chat.steer(id, 'bad', { requestId: 'bad' });
      gate.open();
      await chat.wait(id);
      // The failed turn has taken it: it does not make the next one fail as well.
      expect(await chat.steer(id, 'bad', { requestId: 'bad' })).toMatchObject({ status: 'taken' });
      await chat.run('go on', { sessionId: 's' });
      expect(await conversation(chat, 's')).toEqual(['user: go on', 'model: ok']);
    });
  });

  test('S531 an aborted background run leaves all its messages', async () => {
    await withStore(async (store) => {
      await using app = openApp({ store });
      const gate = createGate();
      const chat = define(app, gate, 'wait');
      const { id } = await chat.start('fail', { sessionId: 's' });
      await gate.reached;
      await chat.steer(id, 'later', { requestId: 'later' });
      expect(await chat.abort(id)).toBe('aborted');
      gate.open();
      expect(await chat.steer(id, 'later', { requestId: 'later' })).toMatchObject({
        status: 'next',
      });
      await chat.run('go on', { sessionId: 's' });
      expect(await conversation(chat, 's')).toEqual(['user: later', 'user: go on', 'model: ok']);
    });
  });
});

test('S404 S530 with reject and fork, what a turn has not taken is refused', async () => {
  for (const concurrency of ['reject', 'fork'] as const) {
    await using app = openApp();
    const gate = createGate();
    const chat = define(app, gate, concurrency);
    const asking = chat.streamText('ask', { sessionId: 's' });
    await gate.reached;
    await asking.steer('later', { requestId: 'later' });
    gate.open();
    const { snapshotId } = await asking.output;
    await refused(
      chat.steer(must(snapshotId), 'later', { requestId: 'later' }),
      'FAILED_PRECONDITION',
    );
    await chat.run('go on', { sessionId: 's' });
    expect(await conversation(chat, 's')).not.toContain('user: later');
  }
});

test('S530 a client learns over HTTP that its message is for the next turn', async () => {
  await using app = openApp();
  const gate = createGate();
  define(app, gate, 'wait');
  const server = await serve(app, { port: 0, log: () => {} });
  try {
    const chat = createClient({ url: server.url }).agent('chat');
    const asking = chat.streamText('ask', { sessionId: 's' });
    await gate.reached;
    await asking.steer('later', { requestId: 'later' });
    gate.open();
    const { snapshotId } = await asking.output;
    const run = must(snapshotId);
    const steer = () => chat.steer(run, 'later', { requestId: 'later' });
    expect(await steer()).toEqual({ id: 'later', status: 'next' });
    await chat.run('go on', { sessionId: 's' });
    expect(await steer()).toEqual({ id: 'later', status: 'taken' });
  } finally {
    await server.close();
  }
});

test('S531 a worker that takes over the next turn has each message once', async () => {
  const { clock, advance } = movableClock();
  const claimTtl = 60_000;
  const store = memoryStore({ clock });
  const line = mortalStore(store);
  await using first = openApp({ store: line, claimTtl, clock });
  await using second = openApp({ store, claimTtl, clock });
  const gate = createGate();
  const work = createGate();
  const wait = first.defineTool({ name: 'wait', description: 'Waits.' }, () => work.giving('')());
  const asks = first.defineTool({ name: 'ask', description: 'Asks.' }, async (_, tool) => {
    await gate.wait();
    return tool.interrupt();
  });
  const chat = first.defineAgent({
    name: 'chat',
    model: scriptedModel([{ toolCalls: [{ name: 'ask' }] }, { toolCalls: [{ name: 'wait' }] }]),
    tools: [wait, asks],
    concurrency: 'wait',
  });
  const remote = second.defineAgent({
    name: 'chat',
    model: scriptedModel(['taken over']),
    concurrency: 'wait',
  });
  const asking = chat.streamText('ask', { sessionId: 's' });
  await gate.reached;
  await asking.steer('later');
  gate.open();
  await asking.output;
  const { id } = await chat.start('go on', { sessionId: 's' });
  await work.reached;
  line.cut();
  advance(2 * claimTtl);
  await second.engine.recover();
  await remote.wait(id);
  await line.heal();
  work.open();
  const lines = await conversation(remote as Agent, 's');
  expect(lines.filter((each) => each === 'user: later')).toHaveLength(1);
  expect(lines.at(-1)).toBe('model: taken over');
});

describe.each(localStores)('a custom agent with the %s store', (name) => {
  test('S532 takes messages with its session, and leaves the others to the next turn', async () => {
    await withLocalStore(name, async (store) => {
      await using app = openApp({ store });
      const [before, after] = [createGate(), createGate()];
      const own = app.defineCustomAgent({ name: 'own', concurrency: 'wait' }, (session) =>
        session.run(async () => {
          expect(await session.takeSteering()).toEqual([]);
          await before.wait();
          const taken = await session.takeSteering();
          session.addMessages(modelSays(`${taken.length} taken`));
          await after.wait();
        }),
      );
      const turn = own.streamText('start', { sessionId: 's' });
      const chunks = all(turn.stream);
      await before.reached;
      for (const id of ['one', 'two']) await turn.steer(id, { requestId: id });
      before.open();
      await after.reached;
      await turn.steer('three', { requestId: 'three' });
      after.open();
      const { snapshotId } = await turn.output;
      expect(told((await chunks).flatMap(({ steered }) => steered ?? []))).toEqual([
        'user: one',
        'user: two',
      ]);
      const fate = (id: string) => own.steer(must(snapshotId), id, { requestId: id });
      expect(await fate('two')).toMatchObject({ status: 'taken' });
      expect(await fate('three')).toMatchObject({ status: 'next' });
      await own.run('go on', { sessionId: 's' });
      expect(await conversation(own as Agent, 's')).toEqual([
        'user: start',
        'user: one',
        'user: two',
        'model: 2 taken',
        'user: three',
        'user: go on',
        'model: 0 taken',
      ]);
      expect(app.errors).toEqual([]);
    });
  });
});

test('S404 S532 what a custom agent never takes is refused, unless it waits', async () => {
  await using app = openApp();
  const gate = createGate();
  const own = app.defineCustomAgent({ name: 'own' }, (session) =>
    session.run(async () => {
      session.addMessages(modelSays('done'));
      await gate.wait();
    }),
  );
  const turn = own.streamText('start', { sessionId: 's' });
  await gate.reached;
  expect(await turn.steer('never', { requestId: 'a' })).toMatchObject({ status: 'queued' });
  gate.open();
  const { snapshotId } = await turn.output;
  await refused(own.steer(must(snapshotId), 'never', { requestId: 'a' }), 'FAILED_PRECONDITION');
  await own.run('go on', { sessionId: 's' });
  expect(await conversation(own as Agent, 's')).not.toContain('user: never');
});

test('S532 a custom turn that starts over after a takeover takes each message once', async () => {
  const { clock, advance } = movableClock();
  const claimTtl = 60_000;
  const store = memoryStore({ clock });
  const line = mortalStore(store);
  await using first = openApp({ store: line, claimTtl, clock });
  await using second = openApp({ store, claimTtl, clock });
  const gate = createGate();
  const define = (app: TestApp, work: () => Promise<void>) =>
    app.defineCustomAgent({ name: 'own' }, (session) =>
      session.run(async () => {
        await work();
        const taken = await session.takeSteering();
        session.addMessages(modelSays(`${taken.length} taken`));
        if (app === first) await gate.wait();
      }),
    );
  const begun = createGate();
  const own = define(first, () => begun.wait());
  const remote = define(second, async () => {});
  const { id } = await own.start('start', { sessionId: 's' });
  await begun.reached;
  await own.steer(id, 'one');
  begun.open();
  await gate.reached;
  line.cut();
  advance(2 * claimTtl);
  await second.engine.recover();
  await remote.wait(id);
  await line.heal();
  gate.open();
  expect(await conversation(remote as Agent, 's')).toEqual([
    'user: start',
    'user: one',
    'model: 1 taken',
  ]);
});
