import { expect, test } from 'vitest';
import { textInput } from '../../src/agent/connection/connection.ts';
import { waymark } from '../../src/app.ts';
import { WaymarkError } from '../../src/core/error.ts';
import { localEngine } from '../../src/engine/local-engine.ts';
import type { Snapshot } from '../../src/protocol/snapshot.ts';
import type { CommitWrite } from '../../src/store/contract/store.ts';
import { memoryStore } from '../../src/store/memory/memory-store.ts';
import { scriptedModel } from '../../src/testing/scripted-model.ts';
import { mortalStore } from '../agent/support/mortal-store.ts';
import { eventually } from '../support/eventually.ts';
import { movableClock } from '../support/movable-clock.ts';

// Pauses between attempts are multiples of it, up to a minute.
const claimTtl = 5_000;

/** An app over a store that refuses some commits, as one does whose disk is full. */
function openApp(isRefused: (write: CommitWrite, asked: number) => boolean) {
  const { clock, advance } = movableClock();
  const store = memoryStore({ clock });
  const { runs } = store;
  if (runs === undefined) return expect.fail('a memory store has runs');
  const ends: number[] = [];
  let asked = 0;
  const commit: typeof runs.commit = async (ref, write) => {
    ends.push(clock.now());
    if (isRefused(write, asked)) {
      throw new WaymarkError('RESOURCE_EXHAUSTED', 'There is no room left.');
    }
    return await runs.commit(ref, write);
  };
  const app = waymark({
    store: { ...store, runs: { ...runs, commit } },
    clock,
    claimTtl,
    onError: () => {},
    model: scriptedModel({
      patterns: [],
      otherwise: () => {
        asked++;
        return 'answer';
      },
    }),
  });
  const agent = app.defineAgent({ name: 'a' });
  return {
    app,
    agent,
    /** How often the model was asked. */
    asked: () => asked,
    /** When each attempt came to its end. */
    ends,
    /** Lets time pass whenever nothing runs, until a run has ended. */
    async wait(runId: string): Promise<Snapshot> {
      const ended = agent.wait(runId);
      let isOver = false;
      const over = (): void => {
        isOver = true;
      };
      ended.then(over, over);
      await eventually(async () => {
        // In steps: a run that pauses, or is being taken over at this moment, must not lose its claim.
        if ((await app.engine.status()).running === 0) advance(claimTtl / 5);
        return isOver;
      });
      return await ended;
    },
  };
}

test('a run whose end cannot be saved is tried less and less often, then ends with the error', async () => {
  const { app, agent, asked, ends, wait } = openApp(({ status }) => status === 'succeeded');
  const { snapshotId = '' } = await agent.streamBidi().detach(textInput('go'));
  const { status, error } = await wait(snapshotId);
  expect(status).toBe('failed');
  expect(error).toMatchObject({
    status: 'RESOURCE_EXHAUSTED',
    message: expect.stringMatching(/failed after 5 attempts.*no room left/),
  });
  // Once where it was accepted, five times more, and then nobody is asked any more.
  expect(asked()).toBe(6);
  const pauses = ends.slice(1).map((at, place) => at - (ends[place] ?? 0));
  expect(pauses.at(-1)).toBeGreaterThan(8 * claimTtl);
  await app.close();
});

test('a run whose end can be saved after all succeeds', async () => {
  const { app, agent, asked, wait } = openApp((_write, times) => times < 4);
  const { snapshotId = '' } = await agent.streamBidi().detach(textInput('go'));
  const { status } = await wait(snapshotId);
  expect([status, asked()]).toEqual(['succeeded', 4]);
  await app.close();
});

test('S222: a run in memory that loses its app three times is given up by the fourth', async () => {
  const { clock, advance } = movableClock();
  const store = memoryStore({ clock });
  let begun = 0;
  const open = () => {
    // An app that dies hears and says nothing any more.
    const line = mortalStore({ ...store, close: async () => {} });
    const app = waymark({ store: line, clock, claimTtl, onError: () => {} });
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
    advance(2 * claimTtl);
    open();
  }
  await expect.poll(() => begun).toBe(3);
  advance(2 * claimTtl);
  const last = open();
  const { status, error } = await last.agent.wait(snapshotId);
  expect([status, begun]).toEqual(['failed', 3]);
  expect(error).toMatchObject({
    details: { deadLetter: true, attempts: [{ attempt: 1 }, { attempt: 2 }, { attempt: 3 }] },
  });
  expect(await last.agent.listDeadRuns()).toMatchObject({ items: [{ snapshotId }] });
});

test('S222: a number of attempts that is none is refused', () => {
  for (const attempts of [0, -1, 1.5, Number.NaN]) {
    expect(() => waymark({ engine: localEngine({ attempts }) })).toThrow('positive integer');
  }
});
