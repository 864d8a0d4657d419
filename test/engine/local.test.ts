import { expect, test } from 'vitest';
import { textInput } from '../../src/agent/connection.ts';
import { waymark } from '../../src/app.ts';
import { WaymarkError } from '../../src/core/error.ts';
import { localEngine } from '../../src/engine/local-engine.ts';
import { memoryStore } from '../../src/session/memory-store/memory-store.ts';
import type { CommitWrite, Store } from '../../src/session/store.ts';
import { scriptedModel } from '../../src/testing/scripted-model.ts';
import { mortalStore } from '../agent/support/mortal-store.ts';

/** A store that refuses some commits, as one does whose disk is full, and notes when each attempt came to its end. */
function refusing(isRefused: (write: CommitWrite, count: number) => boolean): {
  readonly store: Store;
  readonly ends: readonly number[];
} {
  const store = memoryStore();
  const { runs } = store;
  if (runs === undefined) return expect.fail('a memory store has runs');
  const ends: number[] = [];
  const commit: typeof runs.commit = async (ref, write) => {
    ends.push(performance.now());
    if (isRefused(write, ends.length)) {
      throw new WaymarkError('RESOURCE_EXHAUSTED', 'There is no room left.');
    }
    return await runs.commit(ref, write);
  };
  return { store: { ...store, runs: { ...runs, commit } }, ends };
}

function openApp(store: Store) {
  let asked = 0;
  const app = waymark({
    store,
    claimTtl: 40,
    onError: () => {},
    model: scriptedModel({
      patterns: [],
      otherwise: () => {
        asked++;
        return 'answer';
      },
    }),
  });
  return { app, agent: app.defineAgent({ name: 'a' }), asked: () => asked };
}

test('a run whose end cannot be saved is tried less and less often, then ends with the error', async () => {
  const { store, ends } = refusing(({ status }) => status === 'succeeded');
  const { app, agent, asked } = openApp(store);
  const { snapshotId = '' } = await agent.streamBidi().detach(textInput('go'));
  const { status, error } = await agent.wait(snapshotId);
  expect(status).toBe('failed');
  expect(error).toMatchObject({
    status: 'RESOURCE_EXHAUSTED',
    message: expect.stringMatching(/given up after 5 attempts.*no room left/),
  });
  // Once where it was accepted, five times more, and then nobody is asked any more.
  expect(asked()).toBe(6);
  const pauses = ends.slice(1).map((at, place) => at - (ends[place] ?? 0));
  expect(pauses.at(-1)).toBeGreaterThan(8 * 40);
  await app.close();
});

test('a run whose end can be saved after all succeeds', async () => {
  const { store } = refusing((_write, count) => count < 4);
  const { app, agent, asked } = openApp(store);
  const { snapshotId = '' } = await agent.streamBidi().detach(textInput('go'));
  const { status } = await agent.wait(snapshotId);
  expect([status, asked()]).toEqual(['succeeded', 4]);
  await app.close();
});

test('S222: a run in memory that loses its app three times is given up by the fourth', async () => {
  const store = memoryStore();
  let begun = 0;
  const open = () => {
    // An app that dies hears and says nothing any more.
    const line = mortalStore({ ...store, close: async () => {} });
    const app = waymark({ store: line, claimTtl: 40, onError: () => {} });
    const agent = app.defineCustomAgent({ name: 'a' }, async (session) => {
      await session.run(async () => {
        begun++;
        line.cut();
        await new Promise(() => {});
      });
    });
    return { agent, line };
  };
  const { agent } = open();
  const { snapshotId = '' } = await agent.run({ ...textInput('go'), detach: true });
  for (let lives = 1; lives < 3; lives++) {
    await expect.poll(() => begun).toBe(lives);
    open();
  }
  await expect.poll(() => begun).toBe(3);
  const last = open();
  const { status, error } = await last.agent.wait(snapshotId);
  expect([status, begun]).toEqual(['failed', 3]);
  expect(error).toMatchObject({
    details: { deadLetter: true, attempts: [{ attempt: 1 }, { attempt: 2 }, { attempt: 3 }] },
  });
  expect(await last.agent.listDeadRuns()).toMatchObject([{ snapshotId }]);
});

test('S222: a number of attempts that is none is refused', () => {
  for (const attempts of [0, -1, 1.5, Number.NaN]) {
    expect(() => waymark({ engine: localEngine({ attempts }) })).toThrow('positive integer');
  }
});
