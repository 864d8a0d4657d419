import { expect, test } from 'vitest';
import type { Agent } from '../../src/agent/contract/agent.ts';
import type { Chunk, Output } from '../../src/protocol/turn.ts';
import {
  type RunSupport,
  requestTtl,
  type SnapshotStore,
  type Store,
} from '../../src/store/contract/store.ts';
import { memoryStore } from '../../src/store/memory/memory-store.ts';
import { scriptedModel } from '../../src/testing/scripted-model.ts';
import { movableClock } from '../support/movable-clock.ts';
import { createGate } from './support/gate.ts';
import { all, modelSays, must, openApp, refused, say, type TestApp, told } from './support/kit.ts';
import { mortalStore } from './support/mortal-store.ts';

const requestId = 'order-17';

test('S210: the same id returns the same output, and the model is not asked again', async () => {
  await using app = openApp();
  const model = scriptedModel([{ chunks: ['on', 'ce'], usage: { totalTokens: 3 } }, 'more']);
  const agent = app.defineAgent({ name: 'agent', model });
  const first = await agent.runText('a', { requestId });
  await agent.runText('b', { sessionId: first.sessionId });
  const again = await agent.runText('a', { requestId });
  expect(again).toEqual(first);
  expect(await agent.run({ ...say('a'), requestId })).toEqual(first);
  expect(model.requests).toHaveLength(2);
});

test('S210: structured output, artifacts and what a handler gives back are part of it, with and without snapshots', async () => {
  await using app = openApp();
  let calls = 0;
  const define = (name: string, snapshot: 'always' | 'never'): Agent =>
    app.defineCustomAgent({ name, snapshot }, async (session) => {
      await session.run(async () => {
        calls++;
        session.addArtifacts({ name: 'report', parts: [{ text: 'found' }] });
        session.addMessages(modelSays('in the turn'));
        return { output: { n: calls } };
      });
      session.setCustom({ after: calls });
      return { message: modelSays('from the handler'), output: { total: calls } };
    }) as unknown as Agent;
  const always = define('always', 'always');
  const first = await always.runText('a', { requestId });
  expect(await always.runText('a', { requestId })).toEqual(first);
  expect(first.snapshotIds).toHaveLength(2);
  const never = define('never', 'never');
  const unlisted = await never.runText('a', { requestId });
  await never.runText('b', { sessionId: unlisted.sessionId });
  expect(await never.runText('a', { requestId })).toEqual(unlisted);
  expect(calls).toBe(3);
});

test('S210: the artifacts of a session are part of it', async () => {
  await using app = openApp();
  const agent = app.defineCustomAgent({ name: 'agent' }, (session) =>
    session.run(async () => {
      session.addArtifacts({ name: 'report', parts: [{ text: 'found' }] });
    }),
  );
  const first = await agent.runText('a', { requestId });
  expect(first.artifacts).toHaveLength(1);
  await agent.runText('b', { sessionId: first.sessionId });
  expect(await agent.runText('a', { requestId })).toEqual(first);
});

test('S210: a failed turn returns its failure again', async () => {
  await using app = openApp();
  let calls = 0;
  const agent = app.defineCustomAgent({ name: 'agent' }, (session) =>
    session.run(() => {
      calls++;
      throw new Error('broken');
    }),
  );
  const first = await agent.runText('a', { requestId, throwOnError: false });
  expect(first).toMatchObject({ finishReason: 'failed', error: { status: 'INTERNAL' } });
  // Stored without the cause, which only the process has in which it happened.
  const again = await agent.runText('a', { requestId, throwOnError: false });
  expect(again).toEqual(JSON.parse(JSON.stringify(first)));
  expect(calls).toBe(1);
});

test('S210 S215: a request for a turn that runs joins it, from the same and from another process', async () => {
  const store = memoryStore();
  await using one = openApp({ store });
  await using two = openApp({ store, work: false });
  const gate = createGate();
  const model = scriptedModel([gate.giving('the answer')]);
  const agent = one.defineAgent({ name: 'agent', model });
  const other = two.defineAgent({ name: 'agent', model: scriptedModel([]) });
  const turn = agent.stream(say('a'), { requestId, accept: true });
  const chunks = all(turn.stream);
  await gate.reached;
  const joined = [agent, other].map((each) => each.stream(say('a'), { requestId, accept: true }));
  const seen = joined.map(({ stream }) => all(stream));
  gate.open();
  const output = await turn.output;
  for (const each of joined) expect(await each.output).toEqual(output);
  for (const each of seen) expect(await each).toEqual(await chunks);
  expect(model.requests).toHaveLength(1);
});

test('S215: a stream replays a turn that has ended, also when its events are gone', async () => {
  const store = memoryStore({ eventsTtl: 0 });
  await using app = openApp({ store });
  await using other = openApp({ store, work: false });
  const agent = app.defineAgent({ name: 'agent', model: scriptedModel(['one', 'two']) });
  const late = other.defineAgent({ name: 'agent', model: scriptedModel([]) });
  const { sessionId } = await agent.runText('a', { accept: true });
  const first = agent.stream(say('b'), { sessionId, requestId });
  const chunks = await all(first.stream);
  const output = await first.output;
  const again = late.stream(say('b'), { sessionId, requestId });
  expect(await all(again.stream)).toEqual(
    chunks.map((chunk: Chunk) =>
      chunk.modelChunk ? { modelChunk: { role: 'model', content: [{ text: 'two' }] } } : chunk,
    ),
  );
  expect(await again.output).toEqual(output);
});

test('S211: another input, or another session, under the same id is INVALID_ARGUMENT', async () => {
  await using app = openApp();
  const agent = app.defineAgent({ name: 'agent', model: scriptedModel(['one', 'two', 'three']) });
  const { sessionId, snapshotId } = await agent.runText('a', { requestId });
  const error = await refused(agent.runText('b', { requestId }), 'INVALID_ARGUMENT');
  expect(error.details).toEqual({ snapshotId });
  await refused(agent.runText('a', { requestId, sessionId: 'other' }), 'INVALID_ARGUMENT');
  await refused(agent.runText('a', { requestId: '' }), 'INVALID_ARGUMENT');
  await refused(agent.runText('a', { requestId: 'x'.repeat(257) }), 'INVALID_ARGUMENT');
  expect((await agent.runText('a', { requestId, sessionId })).snapshotId).toBe(snapshotId);
  // Ids live under owner and agent.
  const other = app.defineAgent({ name: 'other', model: scriptedModel(['x']) });
  expect((await other.runText('b', { requestId })).error).toBeUndefined();
  expect((await agent.runText('b', { requestId, owner: 'ann' })).error).toBeUndefined();
});

test('S212: a refused turn does not consume its id', async () => {
  await using app = openApp();
  const gate = createGate();
  const agent = app.defineAgent({
    name: 'agent',
    model: scriptedModel([gate.giving('slow'), 'quick']),
  });
  const slow = agent.runText('slow', { sessionId: 's' });
  await gate.reached;
  await refused(agent.runText('a', { sessionId: 's', requestId }), 'ABORTED');
  const resume = { respond: [{ toolResponse: { name: 'none', ref: 'r', output: 1 } }] };
  gate.open();
  await slow;
  await refused(agent.run({ resume }, { sessionId: 's', requestId }), 'INVALID_ARGUMENT');
  const done = await agent.runText('b', { sessionId: 's', requestId });
  expect(told([must(done.message)])).toEqual(['model: quick']);
});

test('S213: a retry runs the turn of a process that died, once', async () => {
  const store = memoryStore();
  const line = mortalStore(store);
  const dead = openApp({ store: line, claimTtl: 80 });
  await using app = openApp({ store, claimTtl: 80 });
  const gate = createGate();
  const define = (on: TestApp, model: ReturnType<typeof scriptedModel>): Agent =>
    on.defineAgent({ name: 'agent', model }) as unknown as Agent;
  const lost = define(dead, scriptedModel([gate.giving('from the dead')]));
  const never = lost.runText('a', { requestId, throwOnError: false });
  await gate.reached;
  line.cut();
  const agent = define(app, scriptedModel(['from the living']));
  const output = (await agent.runText('a', { requestId })) as Output;
  expect(told([must(output.message)])).toEqual(['model: from the living']);
  gate.open();
  await line.heal();
  expect((await never).error).toMatchObject({ status: 'ABORTED' });
  expect(await agent.runText('a', { requestId })).toEqual(output);
  const { items } = await agent.listSessions();
  expect(items.filter(({ turnCount }) => turnCount > 0)).toHaveLength(1);
  await dead.close({ grace: 0 });
});

test('S210 S213: a detached start is told the same run again, and an attached call waits for it', async () => {
  await using app = openApp();
  const gate = createGate();
  const model = scriptedModel([gate.giving('done')]);
  const agent = app.defineAgent({ name: 'agent', model });
  const start = { ...say('a'), detach: true };
  const first = await agent.run(start, { requestId });
  expect(await agent.run(start, { requestId })).toEqual(first);
  const connection = agent.streamBidi();
  await refused(connection.detach({ ...say('b'), requestId }), 'INVALID_ARGUMENT');
  gate.open();
  await agent.wait(must(first.snapshotId));
  expect(await agent.run(start, { requestId })).toEqual(first);
  expect(model.requests).toHaveLength(1);
});

/** The store with some calls of its runs replaced. */
function withRuns(store: Store, replace: (runs: RunSupport) => Partial<RunSupport>): Store {
  const runs = must(store.runs);
  return { ...store, runs: { ...runs, ...replace(runs) } };
}

test('S670: a message is accepted in one write, an answer in the write that detaches its run', async () => {
  const writes: string[] = [];
  const store = memoryStore();
  const counted = withRuns(store, (runs) => ({
    claim(scope, request) {
      writes.push(`claim ${request.mode}`);
      return runs.claim(scope, request);
    },
    detach(...args) {
      writes.push('detach');
      return runs.detach(...args);
    },
  }));
  await using app = openApp({ store: counted });
  const ask = app.defineInterrupt({ name: 'ask', description: 'Asks.' });
  const model = scriptedModel([{ toolCalls: [{ name: 'ask' }] }, 'done', 'more']);
  const agent = app.defineAgent({ name: 'agent', model, tools: [ask] });
  const { id, sessionId } = await agent.start('a', { requestId });
  expect(writes.splice(0)).toEqual(['claim detached']);
  const { interrupts } = await agent.wait(id);
  const answer = must(interrupts[0]).respond('yes');
  await (await agent.start({ resume: answer }, { sessionId })).wait();
  expect(writes.splice(0)).toEqual(['claim attached', 'detach']);
  // A session that the process has in its cache, and one that another process has to read.
  await (await agent.start('b', { sessionId })).wait();
  expect(writes.splice(0)).toEqual(['claim detached']);
  await using other = openApp({ store });
  const there = other.defineAgent({ name: 'agent', model: scriptedModel(['there']), tools: [ask] });
  const { text } = await (await there.start('c', { sessionId })).wait();
  expect(text).toBe('there');
});

/** A caller's tool is checked against those of the agent, under the claim. */
const tools = [{ name: 'locate', inputSchema: { type: 'object' } }] as const;

test('S670: while a process accepts a run, nobody else is told that it was accepted', async () => {
  const { clock, advance } = movableClock();
  const store = memoryStore({ clock });
  const reserved = Promise.withResolvers<void>();
  const seen = Promise.withResolvers<void>();
  const dying = withRuns(store, () => ({
    heartbeat: async () => 'held',
    detach() {
      reserved.resolve();
      return new Promise(() => {});
    },
  }));
  const watched = withRuns(store, (runs) => ({
    async getRun(scope, runId) {
      const run = await runs.getRun(scope, runId);
      if (run?.mode === 'attached') seen.resolve();
      return run;
    },
  }));
  const dead = openApp({ store: dying, clock, claimTtl: 1_000 });
  await using app = openApp({ store: watched, clock, claimTtl: 1_000 });
  const define = (on: TestApp) => on.defineAgent({ name: 'agent', model: scriptedModel(['done']) });
  const options = { requestId, sessionId: 's', tools };
  void define(dead).start('a', options);
  await reserved.promise;
  const agent = define(app);
  const retry = agent.start('a', options);
  await Promise.race([seen.promise, retry]);
  advance(2_000);
  const run = await retry;
  expect((await run.wait()).text).toBe('done');
  expect((await agent.start('a', options)).id).toBe(run.id);
  await dead.close({ grace: 0 });
});

test('S670: a retry that waits while a run is accepted is told its id', async () => {
  const store = memoryStore();
  const gate = createGate();
  const slow = withRuns(store, (runs) => ({
    async detach(...args) {
      await gate.wait();
      return await runs.detach(...args);
    },
  }));
  await using first = openApp({ store: slow });
  await using second = openApp({ store });
  const define = (on: TestApp) => on.defineAgent({ name: 'agent', model: scriptedModel(['done']) });
  const accepted = define(first).start('a', { requestId, tools });
  await gate.reached;
  const retry = define(second).start('a', { requestId, tools });
  gate.open();
  expect((await retry).id).toBe((await accepted).id);
});

test('S210: on a connection and in a chat, a turn that was done is replayed and the next one goes on behind it', async () => {
  await using app = openApp();
  const model = scriptedModel(['one', 'two', 'three']);
  const agent = app.defineAgent({ name: 'agent', model });
  const first = await agent.runText('a', { requestId: 'a', sessionId: 's' });
  const connection = agent.streamBidi({ sessionId: 's' });
  await connection.sendText('a', { requestId: 'a' });
  await connection.sendText('b', { requestId: 'b' });
  await connection.sendText('a', { requestId: 'a' });
  connection.close();
  const chunks = await all(connection.receive());
  expect(chunks.flatMap(({ turnStart }) => turnStart?.turnIndex ?? [])).toEqual([0, 1, 0]);
  expect(await connection.output()).toEqual(first);
  const chat = agent.chat({ sessionId: 's' });
  const { message } = await chat.send('b', { requestId: 'b' });
  expect(told([must(message)])).toEqual(['model: two']);
  await chat.send('c', { requestId: 'c' });
  const { state } = must(await agent.getSession('s'));
  expect(told(state?.messages)).toEqual([
    'user: a',
    'model: one',
    'user: b',
    'model: two',
    'user: c',
    'model: three',
  ]);
});

test('S215: stopping a joined turn stops the run', async () => {
  await using app = openApp();
  const gate = createGate();
  const agent = app.defineAgent({
    name: 'agent',
    model: scriptedModel([{ chunks: ['half'], hang: true }]),
  });
  const turn = agent.stream(say('a'), { requestId });
  const first = turn.stream[Symbol.asyncIterator]();
  await first.next();
  const control = new AbortController();
  const joined = agent.stream(say('a'), { requestId, signal: control.signal });
  await joined.stream[Symbol.asyncIterator]().next();
  control.abort();
  expect(await joined.output).toMatchObject({ finishReason: 'aborted' });
  expect(await turn.output).toEqual(await joined.output);
  gate.open();
});

test('S216: a store without claims, or no store, is FAILED_PRECONDITION', async () => {
  const { getSnapshot, saveSnapshot } = memoryStore();
  const plain: SnapshotStore = { getSnapshot, saveSnapshot };
  await using app = openApp({ storeless: true });
  const model = scriptedModel({ patterns: [], otherwise: 'x' });
  const saved = app.defineAgent({ name: 'saved', model, store: plain });
  await refused(saved.runText('a', { requestId }), 'FAILED_PRECONDITION');
  const held = app.defineAgent({ name: 'held', model });
  await refused(held.runText('a', { requestId }), 'FAILED_PRECONDITION');
});

test('S95 S210: what is returned again goes through the transforms again, and once', async () => {
  await using app = openApp();
  const agent = app.defineAgent({
    name: 'agent',
    model: scriptedModel(['secret']),
    transform: {
      state: (state) => ({
        ...state,
        messages: (state.messages ?? []).map((message) => ({
          ...message,
          content: [{ text: `(${message.content.length})` }],
        })),
      }),
    },
  });
  const first = await agent.runText('a', { requestId });
  expect(told([must(first.message)])).toEqual(['model: (1)']);
  expect(await agent.runText('a', { requestId })).toEqual(first);
});

test('S214: an id is kept for a day after the end of its run, and goes with its session', async () => {
  const { clock, advance } = movableClock();
  await using app = openApp({ store: memoryStore({ clock }), clock });
  const model = scriptedModel(['one', 'two', 'three']);
  const agent = app.defineAgent({ name: 'agent', model });
  const first = await agent.runText('a', { requestId });
  advance(requestTtl - 60_000);
  expect(await agent.runText('a', { requestId })).toEqual(first);
  advance(120_000);
  const second = await agent.runText('a', { requestId });
  expect(second.snapshotId).not.toBe(first.snapshotId);
  await agent.deleteSession(second.sessionId);
  expect((await agent.runText('a', { requestId })).snapshotId).not.toBe(second.snapshotId);
  expect(model.requests).toHaveLength(3);
});
