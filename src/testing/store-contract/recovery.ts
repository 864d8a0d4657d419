import { describe, expect, test } from 'vitest';
import { emptyState, hashState, type SessionState } from '../../session/session-state.ts';
import type { Kit, TurnWrite, UseKit } from './kit.ts';
import { exchange, refused, say, texts } from './kit.ts';

function checkpointOf(state: SessionState, inputsDone = 0, midTurn = true) {
  return { state, stateHash: hashState(state), inputsDone, midTurn };
}

/** Takes over what has expired, of the kit's agent. */
function takeOver(
  { runs, scope }: Kit,
  change: { runIds?: readonly string[]; limit?: number } = {},
) {
  return runs.takeOver({
    agents: [scope.agent],
    worker: 'another worker',
    ttl: 60_000,
    limit: 10,
    ...change,
  });
}

const inputs = [{ message: say('user', 'one') }, { message: say('user', 'two') }];

/** What happens to runs whose process has died. */
export function recoveryContract(useKit: UseKit): void {
  describe('recovery', () => {
    test('an expired attached run reads as expired and gives way; the session goes on from the last good snapshot', async () => {
      const kit = useKit();
      const { turn, claim, commit, expire, store, scope, runs, ttl } = kit;
      const good = (await turn('s', { text: 'good' })).snapshot;
      const dead = await claim('s', { ttl });
      await expire();
      const read = await store.getSnapshot(scope, { snapshotId: dead.runId });
      expect(read).toMatchObject({ status: 'expired', parentId: good.snapshotId });
      expect(await runs.getRun(scope, dead.runId)).toMatchObject({ expired: true });
      expect(await takeOver(kit)).toEqual([]);
      const held = await claim('s');
      expect(held).toMatchObject({ parent: { snapshotId: good.snapshotId }, nextIndex: 2 });
      const left = await store.getSnapshot(scope, { snapshotId: dead.runId });
      expect(left).toMatchObject({ status: 'expired', index: 1, parentId: good.snapshotId });
      expect(texts(left?.state)).toEqual(['good', 'GOOD']);
      expect(left?.stateHash).toBe(good.stateHash);
      expect(await runs.heartbeat(dead)).toBe('lost');
      await refused(commit(dead), 'ABORTED');
      expect((await commit(held)).snapshot).toMatchObject({ index: 2, turnIndex: 1 });
      expect(await store.getSnapshot(scope, { snapshotId: dead.runId })).toMatchObject({
        status: 'expired',
      });
    });

    test('a run that was only slow goes on as long as nobody has taken its place', async () => {
      const { claim, expire, runs, commit, ttl } = useKit();
      const slow = await claim('s', { ttl });
      await expire();
      expect(await runs.heartbeat(slow)).toBe('held');
      expect((await commit(slow)).snapshot).toMatchObject({ status: 'succeeded' });
    });

    test('heartbeats keep a claim', async () => {
      const { claim, runs, store, scope, opened, ttl } = useKit();
      const long = opened.advance === undefined ? 1000 : ttl;
      const held = await claim('s', { ttl: long });
      const step = async (): Promise<void> => {
        if (opened.advance !== undefined) await opened.advance(long / 2);
        else await new Promise((resolve) => setTimeout(resolve, long / 3));
      };
      for (let n = 0; n < 4; n++) {
        await step();
        expect(await runs.heartbeat(held)).toBe('held');
      }
      expect(await store.getSnapshot(scope, { snapshotId: held.runId })).toMatchObject({
        status: 'pending',
      });
      await refused(claim('s'), 'ABORTED', { running: held.runId });
    });

    test('an expired accepted or detached run holds its session until it is taken over', async () => {
      const kit = useKit();
      const { claim, expire, runs, ttl, store, scope } = kit;
      const accepted = await claim('a', { mode: 'accepted', ttl });
      const detached = await claim('d', { ttl });
      await runs.detach(detached, { mode: 'detached', inputs });
      await expire();
      await refused(claim('a'), 'ABORTED', { running: accepted.runId });
      await refused(claim('d'), 'ABORTED', { running: detached.runId });
      expect(await store.getSnapshot(scope, { snapshotId: detached.runId })).toMatchObject({
        status: 'expired',
      });
      const taken = await takeOver(kit);
      expect(taken.map(({ run }) => [run.runId, run.attempt])).toEqual([
        [accepted.runId, 2],
        [detached.runId, 2],
      ]);
      expect(await store.getSnapshot(scope, { snapshotId: detached.runId })).toMatchObject({
        status: 'pending',
      });
    });

    test('taking over fences the worker before', async () => {
      const kit = useKit();
      const { claim, expire, runs, commit, ttl, turn } = kit;
      await turn('s', { text: 'before' });
      const zombie = await claim('s', { mode: 'accepted', ttl, inputs, context: { user: 'u' } });
      await expire();
      const [taken] = await takeOver(kit);
      expect(taken?.run).toMatchObject({
        worker: 'another worker',
        mode: 'accepted',
        inputs,
        context: { user: 'u' },
        expired: false,
        attempt: 2,
      });
      expect(taken?.claim).toMatchObject({ attempt: 2, fresh: false, parent: { turnIndex: 0 } });
      expect(taken?.checkpoint).toBeUndefined();
      expect(taken?.base?.state.history.length).toBe(2);
      expect(await runs.heartbeat(zombie)).toBe('lost');
      const state = exchange(emptyState, 'zombie');
      await refused(runs.checkpoint(zombie, checkpointOf(state)), 'ABORTED');
      await refused(commit(zombie), 'ABORTED');
      await refused(runs.saveStep(zombie, 'k', 1), 'ABORTED');
      await refused(runs.release(zombie), 'ABORTED');
      expect(await takeOver(kit)).toEqual([]);
      if (taken) expect((await commit(taken.claim)).snapshot).toMatchObject({ turnIndex: 1 });
    });

    test('of many workers exactly one takes a run over', async () => {
      const kit = useKit();
      const { claim, expire, ttl } = kit;
      await claim('s', { mode: 'accepted', ttl });
      await expire();
      const taken = await Promise.all(Array.from({ length: 8 }, () => takeOver(kit)));
      expect(taken.flat()).toHaveLength(1);
    });

    test('who is asked for takes over what, and how much', async () => {
      const kit = useKit();
      const { claim, expire, ttl, runs, scope } = kit;
      const held = [];
      for (const name of ['a', 'b', 'c']) held.push(await claim(name, { mode: 'accepted', ttl }));
      const owned = await claim('o', { mode: 'accepted', ttl }, { ...scope, owner: 'o' });
      await claim('still held', { mode: 'accepted' });
      await expire();
      const others = { agents: ['another agent'], worker: 'w', ttl: 60_000, limit: 10 };
      expect(await runs.takeOver(others)).toEqual([]);
      expect(await runs.takeOver({ ...others, agents: [] })).toEqual([]);
      const one = await takeOver(kit, { runIds: [held[1]?.runId ?? ''] });
      expect(one.map(({ run }) => run.runId)).toEqual([held[1]?.runId]);
      expect(await takeOver(kit, { limit: 1 })).toHaveLength(1);
      const rest = await takeOver(kit);
      expect(rest.map(({ run }) => run.runId)).toContain(owned.runId);
      expect(rest.find(({ run }) => run.runId === owned.runId)?.run.scope).toEqual({
        ...scope,
        owner: 'o',
      });
      expect(rest).toHaveLength(2);
    });

    test('a run goes on from its last checkpoint', async () => {
      const kit = useKit();
      const { claim, runs, turn, store, scope } = kit;
      const good = (await turn('s', { text: 'good' })).snapshot;
      const held = await claim('s', { mode: 'accepted', inputs });
      const base = await runs.load(scope, { snapshotId: good.snapshotId });
      const first = exchange(base?.state ?? emptyState, 'first');
      const saved = await runs.checkpoint(held, {
        ...checkpointOf(first),
        ...(base && { base }),
      });
      const second = { ...exchange(first, 'second'), custom: { step: 2 } };
      await runs.checkpoint(held, { ...checkpointOf(second, 1, false), base: saved });
      const read = await store.getSnapshot(scope, { snapshotId: held.runId });
      expect(read).toMatchObject({ status: 'pending', stateHash: hashState(second) });
      expect(await store.getSnapshot(scope, { sessionId: 's' })).toMatchObject(good);
      await runs.handOver(held);
      const [taken] = await takeOver(kit);
      expect(taken?.run).toMatchObject({ inputsDone: 1, midTurn: false });
      expect(hashState(taken?.checkpoint ?? emptyState)).toBe(hashState(second));
      expect(taken?.base?.snapshotId).toBe(good.snapshotId);
      const end: TurnWrite = {
        state: exchange(second, 'end'),
        ...(taken?.base && { base: taken.base }),
      };
      if (taken) await kit.commit(taken.claim, end);
      expect(await kit.textsOf({ sessionId: 's' })).toEqual(
        ['good', 'first', 'second', 'end'].flatMap((text) => [text, text.toUpperCase()]),
      );
    });

    test('a snapshot in the middle of a run is a checkpoint too', async () => {
      const kit = useKit();
      const { claim, commit, runs, id } = kit;
      const asked = (await kit.turn('s', { finishReason: 'interrupted' })).snapshot;
      const held = await claim('s', { mode: 'accepted' });
      const middle = { snapshotId: id(), event: 'toolIterationEnd', end: false } as const;
      const { base } = await commit(held, { ...middle, text: 'middle' });
      await runs.handOver(held);
      const [taken] = await takeOver(kit);
      expect(taken?.run).toMatchObject({ inputsDone: 0, midTurn: true });
      expect(taken?.base?.snapshotId).toBe(base.snapshotId);
      expect(hashState(taken?.checkpoint ?? emptyState)).toBe(hashState(base.state));
      expect(taken?.claim.parent).toMatchObject({
        snapshotId: asked.snapshotId,
        turnIndex: 0,
        answered: false,
      });
    });

    test('S221: what a run has used comes back with its takeover', async () => {
      const kit = useKit();
      const { claim, runs, commit, id, turn } = kit;
      const used = {
        turn: { usage: { inputTokens: 3, totalTokens: 30 }, toolCalls: 2 },
        before: { totalTokens: 12, cachedInputTokens: 1 },
        totals: { tokens: 40, toolCalls: 4 },
      };
      await turn('s', { totals: { tokens: 28, toolCalls: 4 } });
      const held = await claim('s', { mode: 'accepted' });
      const first = exchange(emptyState, 'first');
      const base = await runs.checkpoint(held, checkpointOf(first));
      await runs.handOver(held);
      const [bare] = await takeOver(kit);
      expect(bare?.used ?? { before: {} }).toMatchObject({ before: {} });
      const second = exchange(first, 'second');
      const ref = bare?.claim ?? held;
      await runs.checkpoint(ref, { ...checkpointOf(second), base, used });
      await runs.handOver(ref);
      const [taken] = await takeOver(kit);
      expect(taken?.used).toEqual(used);
      expect(taken?.claim.parent?.totals).toEqual({ tokens: 28, toolCalls: 4 });

      const other = await claim('t', { mode: 'accepted' });
      const spent = { usage: { totalTokens: 7 }, toolCalls: 3 };
      await commit(other, { snapshotId: id(), event: 'toolIterationEnd', end: false, ...spent });
      await runs.handOver(other);
      const [middle] = (await takeOver(kit)).filter(({ run }) => run.runId === other.runId);
      expect(middle?.used).toEqual({ turn: spent, before: {} });
      expect(await kit.store.getSnapshot(kit.scope, { sessionId: 't' })).toMatchObject({
        usage: { totalTokens: 7 },
      });
    });

    test('recorded steps are there for the next attempt', async () => {
      const kit = useKit();
      const { claim, commit, runs } = kit;
      const held = await claim('s', { mode: 'accepted' });
      const values = { zero: 0, none: undefined, nothing: null, __proto__x: { a: [1] }, '': '' };
      for (const [key, value] of Object.entries(values)) await runs.saveStep(held, key, value);
      await runs.saveStep(held, '__proto__', 'odd');
      await runs.saveStep(held, 'zero', 'a second result');
      expect(await runs.getStep(held, 'zero')).toEqual({ value: 0 });
      await runs.handOver(held);
      const [taken] = await takeOver(kit);
      const next = taken?.claim ?? held;
      for (const [key, value] of Object.entries(values)) {
        expect(await runs.getStep(next, key)).toEqual({ value });
      }
      expect(await runs.getStep(next, '__proto__')).toEqual({ value: 'odd' });
      expect(await runs.getStep(next, 'unknown')).toBeUndefined();
      await commit(next);
      const other = await claim('s');
      expect(await runs.getStep(other, 'zero')).toBeUndefined();
    });

    test('a detached run has one snapshot, pending and then terminal', async () => {
      const { turn, claim, commit, runs, store, scope } = useKit();
      const good = (await turn('s', { text: 'good' })).snapshot;
      const held = await claim('s');
      const pending = await runs.detach(held, { mode: 'detached', inputs, context: { a: 1 } });
      expect(pending).toMatchObject({
        snapshotId: held.runId,
        status: 'pending',
        event: 'detach',
        index: 1,
        turnIndex: 1,
        parentId: good.snapshotId,
        orphaned: false,
      });
      expect(pending.heartbeatAt).toBeDefined();
      expect(await runs.getRun(scope, held.runId)).toMatchObject({
        mode: 'detached',
        inputs,
        context: { a: 1 },
      });
      const head = await store.getSnapshot(scope, { sessionId: 's' });
      expect(head?.snapshotId).toBe(good.snapshotId);
      await refused(runs.release(held), 'FAILED_PRECONDITION');
      const { snapshot } = await commit(held, { text: 'done', turnIndex: 2 });
      expect(snapshot).toMatchObject({
        snapshotId: held.runId,
        status: 'succeeded',
        index: 1,
        turnIndex: 2,
        createdAt: pending.createdAt,
        parentId: good.snapshotId,
      });
      expect(snapshot.heartbeatAt).toBeUndefined();
      expect((await turn('s')).snapshot).toMatchObject({ index: 2, parentId: held.runId });
    });

    test('a run is handed over at once', async () => {
      const kit = useKit();
      const { claim, runs } = kit;
      const held = await claim('s', { mode: 'accepted' });
      const attached = await claim('attached');
      await refused(runs.handOver(attached), 'FAILED_PRECONDITION');
      await runs.handOver(held);
      const [taken] = await takeOver(kit);
      expect(taken?.run).toMatchObject({ runId: held.runId, attempt: 2 });
      expect(await runs.heartbeat(held)).toBe('lost');
      await refused(runs.handOver(held), 'ABORTED');
    });
  });
}
