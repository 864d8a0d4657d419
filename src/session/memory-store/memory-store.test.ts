import { describe, expect, test } from 'vitest';
import { systemClock } from '../../core/clock.ts';
import { createIds } from '../../core/id.ts';
import { toJson } from '../../core/json.ts';
import type { Message } from '../../protocol/message.ts';
import { fakeClock } from '../../testing/fake-clock.ts';
import { emptyState, hashState } from '../session-state.ts';
import type { Claim, StateBase, Store } from '../store.ts';
import { memoryStore } from './memory-store.ts';

const id = createIds(systemClock);
const scope = { agent: 'a' };

function claim(store: Store): Promise<Claim | undefined> | undefined {
  return store.runs?.claim(scope, {
    runId: id(),
    sessionId: 's',
    from: 'head',
    mode: 'accepted',
    inputs: [],
    ttl: 1000,
    worker: 'w',
  });
}

describe('the memory store', () => {
  test('forgets the events of a run some time after its end', async () => {
    const clock = fakeClock();
    const store = memoryStore({ clock, eventsTtl: 500 });
    const held = await claim(store);
    if (held === undefined) expect.fail('not claimed');
    await store.events?.append(held, [{ attempt: 1, seq: 0, chunk: {} }]);
    await clock.advance(10_000);
    const read = () => store.events?.read(scope, held.runId, { limit: 1 });
    expect(await read()).toMatchObject({ ended: false });
    await store.runs?.release(held);
    await clock.advance(499);
    expect(await read()).toMatchObject({ ended: true });
    await clock.advance(1);
    expect(await read()).toBeUndefined();
  });

  test('holds one log for all snapshots of a branch', async () => {
    const store = memoryStore();
    let base: StateBase | undefined;
    const ids: string[] = [];
    for (let n = 0; n < 3; n++) {
      const held = await claim(store);
      if (held === undefined) expect.fail('not claimed');
      const message = toJson({ role: 'user', content: [{ text: `${n}` }] }, 'm');
      const before = base?.state ?? emptyState;
      const state = { ...before, history: before.history.append([message as unknown as Message]) };
      const committed = await store.runs?.commit(held, {
        ...(base && { base, parentId: base.snapshotId }),
        snapshotId: held.runId,
        state,
        stateHash: hashState(state),
        turnIndex: n,
        event: 'turnEnd',
        status: 'succeeded',
        end: true,
      });
      base = committed?.base;
      ids.push(held.runId);
    }
    const loaded = await Promise.all(
      ids.map((snapshotId) => store.runs?.load(scope, { snapshotId })),
    );
    expect(loaded.map((each) => each?.state.history.length)).toEqual([1, 2, 3]);
    expect(loaded[0]?.state.history.at(0)).toBe(loaded[2]?.state.history.at(0));
    expect(loaded[2]?.state).toBe(base?.state);
  });
});
