import { describe, expect, test } from 'vitest';
import { emptyState, hashState } from '../../session/session-state.ts';
import { exchange, refused, say, texts, type UseKit } from './kit.ts';
import { draft } from './snapshots.ts';

/** Claims: one run at a time holds a session. */
export function claimContract(useKit: UseKit): void {
  describe('claims', () => {
    test('while a turn runs, its reserved id reads as pending, is not listed, and cannot be continued from', async () => {
      const { turn, claim, store, scope, runs } = useKit();
      const before = await turn('s', { text: 'one' });
      const held = await claim('s', { inputs: [{ message: say('user', 'two') }] });
      const read = await store.getSnapshot(scope, { snapshotId: held.runId });
      expect(read).toMatchObject({
        status: 'pending',
        index: -1,
        turnIndex: 1,
        parentId: before.snapshot.snapshotId,
        orphaned: false,
      });
      expect(texts(read?.state)).toEqual(['one', 'ONE']);
      expect((await store.getSnapshot(scope, { sessionId: 's' }))?.snapshotId).toBe(
        before.snapshot.snapshotId,
      );
      const record = await runs.getRun(scope, held.runId);
      expect(record).toMatchObject({
        runId: held.runId,
        attempt: 1,
        mode: 'attached',
        sessionId: 's',
        scope,
        parentId: before.snapshot.snapshotId,
        expired: false,
        stopping: false,
        inputsDone: 0,
        midTurn: false,
        inputs: [{ message: say('user', 'two') }],
      });
      expect(await runs.getRun({ ...scope, owner: 'other' }, held.runId)).toBeUndefined();
    });

    test('a second claim of a session is ABORTED and says who runs', async () => {
      const { claim, commit } = useKit();
      const held = await claim('s');
      await refused(claim('s'), 'ABORTED', { running: held.runId });
      const other = await claim('another session');
      await commit(other);
      await commit(held);
      expect(await claim('s')).toMatchObject({ headId: held.runId });
    });

    test('nothing is saved past a run that works on the session', async () => {
      const { claim, commit, store, scope, id } = useKit();
      const held = await claim('s');
      const save = (snapshotId: string) =>
        store.saveSnapshot(scope, snapshotId, () => draft(snapshotId));
      await refused(save(id()), 'ABORTED', { running: held.runId });
      await refused(save(held.runId), 'ABORTED', { running: held.runId });
      const { snapshot } = await commit(held);
      expect(snapshot).toMatchObject({ index: 0, status: 'succeeded' });
      const after = id();
      const saved = await store.saveSnapshot(scope, after, () =>
        draft(after, { parentId: held.runId }),
      );
      expect(saved).toMatchObject({ index: 1, orphaned: false });
      expect((await claim('s')).headId).toBe(after);
    });

    test('of many claims at once exactly one gets the session', async () => {
      const { claim } = useKit();
      const results = await Promise.allSettled(Array.from({ length: 10 }, () => claim('s')));
      const won = results.filter((each) => each.status === 'fulfilled');
      expect(won).toHaveLength(1);
      for (const each of results) {
        if (each.status === 'rejected') expect(each.reason).toMatchObject({ status: 'ABORTED' });
      }
    });

    test('continuing from an older snapshot moves the head with the first commit, not before', async () => {
      const { turn, claim, commit, store, scope } = useKit();
      const first = (await turn('s', { text: 'one' })).snapshot;
      const second = (await turn('s', { text: 'two' })).snapshot;
      const held = await claim('s', { from: { snapshotId: first.snapshotId } });
      expect(held).toMatchObject({
        parent: { snapshotId: first.snapshotId, turnIndex: 0 },
        headId: second.snapshotId,
      });
      const head = await store.getSnapshot(scope, { sessionId: 's' });
      expect(head?.snapshotId).toBe(second.snapshotId);
      const third = (await commit(held, { text: 'three' })).snapshot;
      expect(third).toMatchObject({ index: 2, turnIndex: 1, parentId: first.snapshotId });
      const read = await store.getSnapshot(scope, { sessionId: 's' });
      expect(texts(read?.state)).toEqual(['one', 'ONE', 'three', 'THREE']);
      expect(await store.getSnapshot(scope, { snapshotId: second.snapshotId })).toMatchObject({
        orphaned: true,
      });
    });

    test('a claim from the wrong place is refused and changes nothing', async () => {
      const { turn, claim, commit, id, runs, scope, store } = useKit();
      const { snapshotId } = (await turn('s')).snapshot;
      const failed = await commit(await claim('s'), { status: 'failed', finishReason: 'failed' });
      const from = (at: string) => ({ from: { snapshotId: at } });
      await refused(claim('s', from(id())), 'NOT_FOUND');
      await refused(claim('s', from('no such id')), 'NOT_FOUND');
      await refused(claim('s', from(failed.snapshot.snapshotId)), 'FAILED_PRECONDITION');
      await refused(claim('other', from(snapshotId)), 'NOT_FOUND');
      await refused(claim('s', from(snapshotId), { ...scope, owner: 'other' }), 'NOT_FOUND');
      await refused(claim('s', { expectHead: null }), 'ABORTED');
      await refused(claim('s', { expectHead: id() }), 'ABORTED');
      await refused(claim('new', { expectHead: snapshotId }), 'ABORTED');
      await refused(claim('new', { runId: snapshotId }), 'ALREADY_EXISTS');
      expect(await runs.listRuns(scope)).toEqual([]);
      expect(await store.timeline?.getSession(scope, 'new')).toBeUndefined();
      expect(await claim('s', { expectHead: snapshotId })).toMatchObject({ headId: snapshotId });
    });

    test('a run that was released leaves no snapshot, and the session is free', async () => {
      const { turn, claim, runs, scope, store } = useKit();
      await turn('s');
      const held = await claim('s');
      await runs.release(held);
      expect(await store.getSnapshot(scope, { snapshotId: held.runId })).toBeUndefined();
      expect(await runs.getRun(scope, held.runId)).toBeUndefined();
      expect(await claim('s')).toMatchObject({ nextIndex: 1 });
    });

    test('S159: a session of which nothing was written goes with the run that was released', async () => {
      const kit = useKit();
      const { turn, claim, runs, scope, store } = kit;
      for (const mode of ['attached', 'accepted'] as const) {
        await runs.release(await claim('new', { mode }));
        expect(await store.timeline?.getSession(scope, 'new')).toBeUndefined();
      }
      // A write, or a change of the session's metadata, keeps the session.
      await turn('failed', { status: 'failed' });
      await runs.release(await claim('failed'));
      const titled = await claim('titled');
      await store.timeline?.updateSession(scope, 'titled', { title: 'kept' });
      await runs.release(titled);
      const parent = await claim('parent');
      const startedBy = { agent: scope.agent, sessionId: 'parent' };
      await turn('child', { request: { startedBy } });
      await runs.release(parent);
      const sessions = async ({ timeline }: typeof kit): Promise<string[]> =>
        (await timeline.listSessions(scope)).items.map(({ sessionId }) => sessionId).sort();
      const kept = ['child', 'failed', 'parent', 'titled'];
      if (store.timeline !== undefined) expect(await sessions(kit)).toEqual(kept);
      expect(await store.maintenance?.verify()).toEqual(store.maintenance && []);
      const again = kit.opened.reopen === undefined ? kit : await kit.reopen();
      if (store.timeline !== undefined) expect(await sessions(again)).toEqual(kept);
      expect(await again.claim('new')).toMatchObject({ fresh: true, nextIndex: 0 });
    });

    test('after its end, or under another attempt, a run can write nothing', async () => {
      const { claim, commit, runs, turn, id } = useKit();
      const held = await claim('s');
      const wrong = { ...held, attempt: 2 };
      const state = exchange(emptyState, 'x');
      const write = { state, stateHash: hashState(state), inputsDone: 0, midTurn: true };
      await refused(runs.checkpoint(wrong, write), 'ABORTED');
      await refused(commit(wrong), 'ABORTED');
      await refused(runs.saveStep(wrong, 'k', 1), 'ABORTED');
      await refused(runs.detach(wrong, { mode: 'detached', inputs: [] }), 'ABORTED');
      await refused(runs.release(wrong), 'ABORTED');
      expect(await runs.heartbeat(wrong)).toBe('lost');
      expect(await runs.heartbeat(held)).toBe('held');
      await commit(held);
      await refused(runs.checkpoint(held, write), 'ABORTED');
      await refused(commit(held), 'ABORTED');
      await refused(runs.release(held), 'ABORTED');
      expect(await runs.heartbeat({ runId: id(), attempt: 1 })).toBe('lost');
      expect((await turn('s')).snapshot.index).toBe(1);
    });

    test('an interrupted turn can be answered once in its session', async () => {
      const { turn, claim, commit, runs } = useKit();
      const asked = (await turn('s', { finishReason: 'interrupted' })).snapshot;
      const from = { from: { snapshotId: asked.snapshotId } };
      const open = await claim('s');
      expect(open.parent).toMatchObject({ finishReason: 'interrupted', answered: false });
      await commit(open, { status: 'failed' });
      const again = await claim('s', from);
      expect(again.parent?.answered).toBe(false);
      await commit(again);
      const late = await claim('s', from);
      expect(late.parent).toMatchObject({ snapshotId: asked.snapshotId, answered: true });
      await runs.release(late);
      expect((await claim('s')).parent?.answered).toBeUndefined();
    });

    test('totals come back with the next claim', async () => {
      const { turn, claim } = useKit();
      await turn('s', { totals: { tokens: 12, toolCalls: 3 } });
      expect((await claim('s')).parent?.totals).toEqual({ tokens: 12, toolCalls: 3 });
    });

    test('S220: a limited claim tells what failed turns from the same snapshot have used', async () => {
      const { turn, claim, commit, runs, timeline, scope } = useKit();
      const limited = { request: { limited: true } };
      const spent = (tokens: number) => ({ totals: { tokens, toolCalls: tokens / 10 } });
      const failed = { status: 'failed', error: { status: 'INTERNAL', message: 'no' } } as const;
      const failedTotals = async (sessionId: string): Promise<unknown> => {
        const held = await claim(sessionId, { limited: true });
        await runs.release(held);
        return held.failedTotals;
      };
      expect(await failedTotals('empty')).toBeUndefined();
      await turn('empty', { ...failed, ...spent(10), ...limited });
      await turn('empty', { ...failed, ...spent(20), ...limited });
      expect(await failedTotals('empty')).toEqual({ tokens: 20, toolCalls: 2 });
      const first = (await turn('s', spent(10))).snapshot;
      expect(await failedTotals('s')).toBeUndefined();
      await turn('s', { ...failed, ...spent(30) });
      expect(await failedTotals('s')).toEqual({ tokens: 30, toolCalls: 3 });
      await turn('s', { ...failed, ...spent(40) });
      expect((await claim('s')).failedTotals).toBeUndefined();
      await timeline.fork(scope, first.snapshotId, {
        sessionId: 'fork',
        snapshotId: useKit().id(),
      });
      expect(await failedTotals('fork')).toBeUndefined();
      // The parent of an unlisted state is the last listed snapshot.
      await turn('unlisted', spent(10));
      await turn('unlisted', { ...spent(20), listed: false });
      const held = await claim('unlisted', { limited: true });
      await commit(held, { ...failed, ...spent(30) });
      expect(await failedTotals('unlisted')).toEqual({ tokens: 30, toolCalls: 3 });
    });

    test('S220: an aborted run counts in the same way, with what its worker says that it has used', async () => {
      const { turn, claim, runs, abort, scope, store } = useKit();
      const { base } = await turn('s', { totals: { tokens: 10, toolCalls: 0 } });
      const held = await claim('s');
      await runs.detach(held, { mode: 'detached', inputs: [] });
      await abort.abortSnapshot(scope, held.runId);
      const used = { usage: { totalTokens: 20 }, totals: { tokens: 30, toolCalls: 1 } };
      await runs.attachPartial(held, {
        base,
        state: base.state,
        stateHash: hashState(base.state),
        ...used,
      });
      const found = await store.getSnapshot(scope, { snapshotId: held.runId });
      expect(found).toMatchObject({ status: 'aborted', usage: used.usage });
      expect((await claim('s', { limited: true })).failedTotals).toEqual(used.totals);
    });

    test('open runs are listed, oldest first, of one scope or of everybody', async () => {
      const { claim, runs, scope, commit } = useKit();
      const mine = { ...scope, owner: 'me' };
      const held = [await claim('a'), await claim('b', {}, mine), await claim('c')];
      const ids = async (of?: typeof scope) => (await runs.listRuns(of)).map((each) => each.runId);
      expect(await ids(scope)).toEqual([held[0]?.runId, held[2]?.runId]);
      expect(await ids(mine)).toEqual([held[1]?.runId]);
      expect(await ids()).toEqual(held.map((each) => each.runId));
      if (held[0]) await commit(held[0]);
      expect(await ids(scope)).toEqual([held[2]?.runId]);
    });
  });
}
