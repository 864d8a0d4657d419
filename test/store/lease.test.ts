import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { waymark } from '../../src/app.ts';
import { createIds } from '../../src/core/id.ts';
import { type Clock, systemClock } from '../../src/core/time.ts';
import type { Claim, Store } from '../../src/store/contract/store.ts';
import { fileStore } from '../../src/store/file/index.ts';
import { sqliteStore } from '../../src/store/sqlite/index.ts';
import { scriptedModel } from '../../src/testing/scripted-model.ts';
import { createGate } from '../agent/support/gate.ts';
import { movableClock } from '../support/movable-clock.ts';
import { failWrites } from './file-intercept.ts';
import { failCommits } from './sqlite-full.ts';

let folder: string;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'waymark-lease-'));
});
afterEach(() => rm(folder, { recursive: true, force: true }));

const hour = 3_600_000;
const ttl = 5000;
const scope = { agent: 'a' };
const newId = createIds(systemClock);

interface Kind {
  readonly open: (clock?: Clock) => Store;
  /** Lets every write fail while something runs, as on a full disk. */
  readonly whileFull: (action: () => Promise<unknown>) => Promise<void>;
}

const kinds: Record<string, Kind> = {
  SQLite: {
    open: (clock = systemClock) => sqliteStore(join(folder, 'store.db'), { clock }),
    whileFull: (action) => failCommits(action),
  },
  files: {
    open: (clock = systemClock) => fileStore(join(folder, 'files'), { clock }),
    whileFull: (action) => failWrites(action),
  },
};

async function claim(store: Store, mode: 'attached' | 'accepted' = 'attached'): Promise<Claim> {
  const request = { runId: newId(), sessionId: 's', from: 'head', mode } as const;
  const claimed = store.runs?.claim(scope, { ...request, inputs: [], ttl, worker: 'w' });
  return (await claimed) ?? expect.fail('the store has no runs');
}

for (const [name, { open, whileFull }] of Object.entries(kinds)) {
  describe(`leases on ${name}`, () => {
    test('S173: a process whose clock was an hour ahead and that died locks its session for no hour', async () => {
      const fast = movableClock();
      fast.advance(hour);
      const dead = open(fast.clock);
      await claim(dead);
      const { clock, advance } = movableClock();
      const store = open(clock);
      await expect(claim(store)).rejects.toMatchObject({ status: 'ABORTED' });
      advance(ttl - 1000);
      await expect(claim(store)).rejects.toMatchObject({ status: 'ABORTED' });
      // A process that starts now knows what the one before has seen.
      const later = open(clock);
      advance(1000);
      const held = await claim(later);
      await later.runs?.release(held);
      await Promise.all([dead, store, later].map((each) => each.close?.()));
    });

    test('S173: one that is alive keeps its session, however wrong its clock', async () => {
      const fast = movableClock();
      fast.advance(hour);
      const alive = open(fast.clock);
      const held = await claim(alive);
      const { clock, advance } = movableClock();
      const store = open(clock);
      for (let n = 0; n < 5; n++) {
        await expect(claim(store)).rejects.toMatchObject({ status: 'ABORTED' });
        advance(ttl - 1000);
        expect(await alive.runs?.heartbeat(held)).toBe('held');
      }
      await Promise.all([alive.close?.(), store.close?.()]);
    });

    test('S173: a run of such a process is taken over after its lease, or at once when it was handed over', async () => {
      const fast = movableClock();
      fast.advance(hour);
      const dead = open(fast.clock);
      const held = await claim(dead, 'accepted');
      const { clock, advance } = movableClock();
      const store = open(clock);
      const taking = { agents: ['a'], worker: 'next', ttl, limit: 10 };
      const takeOver = async () =>
        ((await store.runs?.takeOver(taking)) ?? []).map(({ run }) => run.runId);
      expect(await takeOver()).toEqual([]);
      advance(ttl);
      expect(await takeOver()).toEqual([held.runId]);
      const second = { runId: held.runId, attempt: 2 };
      expect(await dead.runs?.heartbeat(second)).toBe('held');
      await dead.runs?.handOver(second);
      expect(await takeOver()).toEqual([held.runId]);
      await Promise.all([dead.close?.(), store.close?.()]);
    });

    test('S174: a turn that could not be saved leaves its session free as soon as writes work again', async () => {
      const store = open();
      const app = waymark({ store, claimTtl: hour });
      const gate = createGate();
      const model = scriptedModel(['one', gate.giving('two'), 'three']);
      const chat = app.defineAgent({ name: 'a', model });
      const first = await chat.runText('a', { sessionId: 's' });
      const running = chat.streamText('b', { sessionId: 's' });
      await gate.reached;
      await whileFull(async () => {
        gate.open();
        expect(await running.output).toMatchObject({
          finishReason: 'failed',
          error: { status: 'RESOURCE_EXHAUSTED' },
        });
        await expect(chat.runText('c', { sessionId: 's' })).rejects.toBeDefined();
      });
      expect(await chat.restore(first.snapshotId ?? '')).toMatchObject({ orphaned: false });
      expect(await chat.runText('c', { sessionId: 's' })).toMatchObject({ finishReason: 'stop' });
      expect((await chat.getSession('s'))?.turnCount).toBe(2);
      await app.close();
    });
  });
}
