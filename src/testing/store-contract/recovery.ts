import { describe, expect, test } from 'vitest';
import { emptyState, hashState, type SessionState } from '../../session/session-state.ts';
import type { Kit, TurnWrite, UseKit } from './kit.ts';
import { exchange, refused, say, texts } from './kit.ts';

function checkpointOf(state: SessionState, inputsDone = 0, midTurn = true) {
  return { state, stateHash: hashState(state), inputsDone, midTurn };
}

/** Takes over the expired runs of the kit's agent. */
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

/** Recovery of runs whose process has died. */
export function recoveryContract(useKit: UseKit): void {
  describe('recovery', () => {
    test('an expired attached run reads as expired and frees its session, which continues from the last good snapshot', async () => {
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

    test('a slow run continues as long as no other run has claimed the session', async () => {
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

    test('a run continues from its last checkpoint', async () => {
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
      const within = middle?.base?.snapshotId ?? '';
      expect(await kit.store.getSnapshot(kit.scope, { snapshotId: within })).toMatchObject({
        usage: { totalTokens: 7 },
      });
    });

    test('S222: a takeover counts crashes, until the run makes progress', async () => {
      const kit = useKit();
      const { claim, commit, runs, expire, ttl, id, scope } = kit;
      const held = await claim('s', { mode: 'accepted', ttl });
      const crashes = async (): Promise<unknown> =>
        (await runs.getRun(scope, held.runId))?.crashes?.map(({ attempt }) => attempt) ?? [];
      const take = async (worker: string, handOver = false) => {
        if (!handOver) await expire();
        const [taken] = await runs.takeOver({ agents: [scope.agent], worker, ttl, limit: 10 });
        return taken?.claim ?? expect.fail('nothing was taken over');
      };
      expect(await crashes()).toEqual([]);
      await take('b');
      expect(await crashes()).toEqual([1]);
      // The worker is the same, or has handed over: neither counts as a crash.
      const again = await take('b');
      expect(await crashes()).toEqual([1]);
      await runs.handOver(again);
      const third = await take('c', true);
      expect(await crashes()).toEqual([1]);
      const fourth = await take('d');
      expect(await crashes()).toEqual([1, 4]);
      expect(fourth.attempt).toBe(5);
      const [crash] = (await runs.getRun(scope, held.runId))?.crashes ?? [];
      expect(Number.isNaN(Date.parse(crash?.lastSeenAt ?? ''))).toBe(false);
      await refused(runs.saveStep(third, 'late', 1), 'ABORTED');
      await runs.saveStep(fourth, 'step', 1);
      expect(await crashes()).toEqual([]);
      const fifth = await take('e');
      expect(await crashes()).toEqual([5]);
      await runs.checkpoint(fifth, checkpointOf(exchange(emptyState, 'x')));
      expect(await crashes()).toEqual([]);
      const sixth = await take('f');
      expect(await crashes()).toEqual([6]);
      const middle = { snapshotId: id(), event: 'toolIterationEnd', end: false } as const;
      await commit(sixth, { ...middle, state: exchange(emptyState, 'x') });
      expect(await crashes()).toEqual([]);
    });

    test('S223: of runs that have lost workers only so many are taken, those with the fewest crashes first', async () => {
      const kit = useKit();
      const { claim, runs, expire, ttl, scope } = kit;
      const held = new Map<string, string>();
      for (const name of ['twice', 'once', 'fresh']) {
        held.set((await claim(name, { mode: 'accepted', ttl })).runId, name);
        if (name === 'fresh') continue;
        await expire();
        await runs.takeOver({ agents: [scope.agent], worker: `x-${name}`, ttl, limit: 10 });
      }
      const fresh = [...held].find(([, name]) => name === 'fresh')?.[0] ?? '';
      await runs.handOver({ runId: fresh, attempt: 1 });
      await expire();
      const take = async (limit: number, maxCrashes: number, attempts = 9, runIds?: string[]) => {
        const suspects = { limit, maxCrashes, attempts };
        const taken = await runs.takeOver({
          agents: [scope.agent],
          worker: `w-${limit}-${maxCrashes}-${attempts}`,
          ttl,
          limit: 10,
          suspects,
          ...(runIds && { runIds }),
        });
        return taken.map(({ run }) => [held.get(run.runId), run.crashes?.length ?? 0]);
      };
      const ids = [...held.keys()];
      expect(await take(0, 0)).toEqual([['fresh', 0]]);
      expect(await take(0, 0, 9, ids)).toEqual([]);
      expect(await take(1, 1)).toEqual([]);
      expect(await take(1, 2, 9, ids)).toEqual([['once', 2]]);
      expect(await take(1, 3)).toEqual([['twice', 3]]);
      await expire();
      // A run that will be dead-lettered is no longer a suspect.
      expect(await take(0, 0, 4)).toEqual([['twice', 4]]);
    });

    test('S224: a run that is given up is kept in the dead-letter queue until it is dropped or deleted', async () => {
      const kit = useKit();
      const { claim, commit, runs, scope, opened } = kit;
      const context = { user: 'u' };
      const error = { status: 'INTERNAL', message: 'given up' } as const;
      const dead = { status: 'failed', error, deadLetter: true } as const;
      const bury = async (sessionId: string, inScope = scope): Promise<string> => {
        const request = { mode: 'accepted', inputs, context } as const;
        const run = await claim(sessionId, request, inScope);
        await commit(run, dead, inScope);
        await kit.tick();
        return run.runId;
      };
      const list = async (of?: typeof scope, from = runs) =>
        ((await from.listDeadRuns?.(of)) ?? []).filter((each) => each.scope.agent === scope.agent);
      const owned = { ...scope, owner: 'o' };
      const first = await bury('s');
      const second = await bury('t');
      const other = await bury('s', owned);
      await commit(await claim('s'), { status: 'failed', error });
      const common = { sessionId: 's', inputs, context, inputsDone: 0, mode: 'accepted', error };
      expect(await list(scope)).toMatchObject([
        { ...common, runId: first, scope },
        { ...common, runId: second, sessionId: 't' },
      ]);
      expect((await list()).map(({ runId }) => runId)).toEqual([first, second, other]);
      expect(await list(owned)).toMatchObject([{ runId: other, scope: owned }]);
      if (opened.reopen !== undefined) {
        expect(await list(scope, (await kit.reopen()).runs)).toHaveLength(2);
      }
      const now = opened.reopen === undefined ? kit : await kit.reopen();
      expect(await now.runs.dropDeadRun?.(owned, first)).toBe(false);
      expect(await now.runs.dropDeadRun?.(scope, 'nonsense')).toBe(false);
      expect(await now.runs.dropDeadRun?.(scope, first)).toBe(true);
      expect(await now.runs.dropDeadRun?.(scope, first)).toBe(false);
      expect(await list(scope, now.runs)).toMatchObject([{ runId: second }]);
      await now.timeline.deleteSession(scope, 't');
      expect(await list(scope, now.runs)).toEqual([]);
      await now.maintenance.eraseOwner('o');
      expect(await list(undefined, now.runs)).toEqual([]);
      expect(await now.maintenance.verify()).toEqual([]);
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

    test('S670: the claim of a detached run accepts it in one write, with its pending snapshot and its keys', async () => {
      const { turn, claim, commit, runs, store, scope, expire, ttl } = useKit();
      const good = (await turn('s', { text: 'good' })).snapshot;
      const key = 'a'.repeat(64);
      const requests = [{ key, digest: 'b'.repeat(64) }];
      const held = await claim('s', { mode: 'detached', inputs, requests, ttl });
      // For other stores, the agent calls `detach`.
      if (held.detached !== true) return;
      expect(held).toMatchObject({ attempt: 1, parent: { snapshotId: good.snapshotId } });
      const { runId: snapshotId } = held;
      const pending = await store.getSnapshot(scope, { snapshotId });
      expect(pending).toMatchObject({
        status: 'pending',
        event: 'detach',
        index: 1,
        turnIndex: 1,
        parentId: good.snapshotId,
      });
      expect(await runs.getRun(scope, snapshotId)).toMatchObject({ mode: 'detached', inputs });
      await refused(runs.release(held), 'FAILED_PRECONDITION');
      await expire();
      await refused(claim('other', { requests }), 'ALREADY_EXISTS');
      const who = { agents: [scope.agent], worker: 'another', ttl: 60_000, limit: 1 };
      const [taken] = await runs.takeOver(who);
      expect(taken?.run).toMatchObject({ runId: snapshotId, attempt: 2, inputs });
      const { snapshot } = await commit(taken?.claim ?? held, {
        event: 'detach',
        text: 'done',
        ...(taken?.base && { base: taken.base }),
      });
      expect(snapshot).toMatchObject({ snapshotId, status: 'succeeded', index: 1 });
      expect((await turn('s')).snapshot).toMatchObject({ index: 2, parentId: snapshotId });
      expect(await store.maintenance?.verify()).toEqual([]);
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
