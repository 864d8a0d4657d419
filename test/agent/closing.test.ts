import { expect, test } from 'vitest';
import { waymark } from '../../src/app.ts';
import { localEngine } from '../../src/engine/local-engine.ts';
import type { Store } from '../../src/store/contract/store.ts';
import { memoryStore } from '../../src/store/memory/memory-store.ts';
import { scriptedModel } from '../../src/testing/scripted-model.ts';
import { createGate } from './support/gate.ts';
import { must, refused, say, told } from './support/kit.ts';

/** A store that says when it was closed, and is slow to save. */
function slowStore(): Store & { readonly log: string[] } {
  const store = memoryStore();
  const runs = must(store.runs);
  const log: string[] = [];
  return {
    ...store,
    log,
    runs: {
      ...runs,
      async commit(...args) {
        await new Promise((resolve) => setTimeout(resolve, 30));
        const committed = await runs.commit(...args);
        log.push('committed');
        return committed;
      },
    },
    async close() {
      log.push('closed');
    },
  };
}

test('S18 close takes no new turns, lets running ones finish, and closes the store after the last write', async () => {
  const store = slowStore();
  const app = waymark({ store });
  const gate = createGate();
  const chat = app.defineAgent({
    name: 'chat',
    model: scriptedModel([gate.giving('done'), 'never']),
  });
  const running = chat.runText('a');
  const idle = chat.streamBidi();
  await gate.reached;
  const closing = app.close();
  await refused(chat.runText('b'), 'UNAVAILABLE');
  await refused(chat.streamBidi().detach(say('c')), 'UNAVAILABLE');
  gate.open();
  expect(await running).toMatchObject({ finishReason: 'stop' });
  await closing;
  expect(store.log).toEqual(['committed', 'closed']);
  // A connection that waited for an input has ended, as if its caller had closed it.
  await refused(idle.sendText('late'), 'FAILED_PRECONDITION');
  expect(Object.keys(await idle.output())).toEqual(['sessionId']);
});

test('S18 close waits for a look for runs of dead processes, which uses the store', async () => {
  const store = memoryStore();
  const runs = must(store.runs);
  const gate = createGate();
  const log: string[] = [];
  const app = waymark({
    store: {
      ...store,
      runs: {
        ...runs,
        async takeOver(...args) {
          await gate.wait();
          log.push('looked');
          return await runs.takeOver(...args);
        },
      },
      async close() {
        log.push('closed');
      },
    },
  });
  app.defineAgent({ name: 'chat', model: scriptedModel(['hi']) });
  await gate.reached;
  const closing = app.close();
  await new Promise((resolve) => setTimeout(resolve, 50));
  gate.open();
  await closing;
  expect(log).toContain('looked');
  expect(log.indexOf('closed')).toBe(log.length - 1);
});

test('S18 what has not finished in time is stopped, and keeps its partial answer', async () => {
  const store = slowStore();
  const app = waymark({ store });
  const chat = app.defineAgent({
    name: 'chat',
    model: scriptedModel([{ chunks: ['half'], hang: true }]),
  });
  const { stream, output } = chat.streamText('a', { sessionId: 's' });
  for await (const { modelChunk } of stream) if (modelChunk) break;
  await app.close({ grace: 10 });
  expect(await output).toMatchObject({ finishReason: 'aborted' });
  expect(store.log).toEqual(['committed', 'closed']);
  const snapshot = await store.getSnapshot({ agent: 'chat' }, { sessionId: 's' });
  expect(told(snapshot?.state?.messages)).toEqual(['user: a', 'model: half']);
});

test('S18 S125 a detached run that has not finished is handed over to the next process', async () => {
  const store = memoryStore();
  const app = waymark({ store });
  const chat = app.defineAgent({
    name: 'chat',
    model: scriptedModel([{ chunks: ['half'], hang: true }]),
  });
  const { snapshotId = '' } = await chat.run({ ...say('a'), detach: true });
  await app.close({ grace: 10 });
  expect(await store.getSnapshot({ agent: 'chat' }, { snapshotId })).toMatchObject({
    status: 'expired',
  });
  const next = waymark({ store });
  const again = next.defineAgent({ name: 'chat', model: scriptedModel(['whole']) });
  const ended = await again.wait(snapshotId);
  expect(ended).toMatchObject({ status: 'succeeded' });
  expect(told(ended.state?.messages)).toEqual(['user: a', 'model: whole']);
  await next.close();
});

test('S167: an app that is closed again closes nothing twice, and a shorter deadline ends the wait', async () => {
  const store = slowStore();
  const engine = localEngine();
  let engineEnds = 0;
  const app = waymark({
    store,
    engine: {
      ...engine,
      async close() {
        engineEnds++;
        await engine.close?.();
      },
    },
  });
  const chat = app.defineAgent({ name: 'chat', model: scriptedModel([{ hang: true }]) });
  const stream = chat.streamText('a');
  await stream.stream[Symbol.asyncIterator]().next();
  const patient = app.close({ grace: 600_000 });
  await app.close({ grace: 0 });
  await patient;
  await app.close();
  expect(await stream.output).toMatchObject({ finishReason: 'aborted' });
  expect(store.log).toEqual(['committed', 'closed']);
  expect(engineEnds).toBe(1);
});
