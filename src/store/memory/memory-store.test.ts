import { describe, expect, test } from 'vitest';
import { createIds } from '../../core/id.ts';
import { toJson } from '../../core/json/json.ts';
import { systemClock } from '../../core/time.ts';
import type { Message } from '../../protocol/message.ts';
import { emptyState, hashState, type SessionState } from '../../session/session-state.ts';
import { fakeClock } from '../../testing/fake-clock.ts';
import type { Claim, CommitWrite, Fault, StateBase, Store } from '../contract/store.ts';
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

  test('holds each message once for all snapshots of a branch and its forks', async () => {
    const store = memoryStore();
    const ids = await commitTurns(store, 3);
    const forked = await store.timeline?.fork(scope, ids[1] ?? '', {
      sessionId: 'fork',
      snapshotId: id(),
    });
    const [one, two, three, fork] = await Promise.all(
      [...ids, forked?.snapshotId ?? ''].map(async (snapshotId) => {
        const loaded = await store.runs?.load(scope, { snapshotId });
        return loaded?.state.history.rest();
      }),
    );
    expect([one?.length, two?.length, three?.length]).toEqual([1, 2, 3]);
    expect(three?.before).toBe(two);
    expect(two?.before).toBe(one);
    expect(fork).toBe(two);
  });

  test('gives the caller of a commit the state that was committed, and not one to be read again', async () => {
    const store = memoryStore();
    const state = { ...emptyState, history: emptyState.history.append([message('a')]) };
    const held = await claim(store);
    if (held === undefined) expect.fail('not claimed');
    const committed = await store.runs?.commit(held, writeOf(held.runId, state));
    expect(committed?.base.state).toBe(state);
  });

  test('finds content that does not fit what was committed', async () => {
    const store = memoryStore();
    await commitTurns(store, 2);
    expect(await store.maintenance?.verify()).toEqual([]);
    const history = emptyState.history.append([message('a')]);
    const rest = history.rest();
    // Nothing can change a frozen message: this simulates a bug of the store.
    if (rest !== undefined) Object.assign(rest, { content: 'b' });
    const held = await claim(store);
    if (held === undefined) expect.fail('not claimed');
    await store.runs?.commit(held, writeOf(held.runId, { ...emptyState, history }));
    const heard: Fault[] = [];
    const found = await store.maintenance?.verify({ onFault: (fault) => heard.push(fault) });
    expect(found).toMatchObject([{ kind: 'hash', snapshotId: held.runId }]);
    expect(heard).toEqual(found);
  });
});

function message(text: string): Message {
  return toJson({ role: 'user', content: [{ text }] }, 'm') as unknown as Message;
}

function writeOf(snapshotId: string, state: SessionState, base?: StateBase): CommitWrite {
  return {
    ...(base && { base, parentId: base.snapshotId }),
    snapshotId,
    state,
    stateHash: hashState(state),
    turnIndex: 0,
    event: 'turnEnd',
    status: 'succeeded',
    end: true,
  };
}

/** The ids of the snapshots of some turns with one message each. */
async function commitTurns(store: Store, count: number): Promise<readonly string[]> {
  let base: StateBase | undefined;
  const ids: string[] = [];
  for (let n = 0; n < count; n++) {
    const held = await claim(store);
    if (held === undefined) expect.fail('not claimed');
    const before = base?.state ?? emptyState;
    const state = { ...before, history: before.history.append([message(`${n}`)]) };
    base = (await store.runs?.commit(held, writeOf(held.runId, state, base)))?.base;
    ids.push(held.runId);
  }
  return ids;
}
