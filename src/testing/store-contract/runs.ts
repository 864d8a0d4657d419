import { describe, expect, test } from 'vitest';
import { emptyState, hashState } from '../../session/session-state.ts';
import { badInputContract } from './bad-input.ts';
import { exchange, marksIn, plain, refused, say, stateOf, texts, type UseKit } from './kit.ts';
import { recoveryContract } from './recovery.ts';
import { draft } from './snapshots.ts';
import { unlistedContract } from './unlisted.ts';

/** Claims, and the turns under them. */
export function runContract(useKit: UseKit): void {
  describe('turns', () => {
    test('a first turn creates the session, and its snapshot becomes the head', async () => {
      const { runs, claim, commit, store, scope } = useKit();
      const held = await claim('s');
      expect(held).toMatchObject({ sessionId: 's', attempt: 1, fresh: true, nextIndex: 0 });
      expect(held.parent).toBeUndefined();
      expect(held.headId).toBeUndefined();
      const { snapshot, base } = await commit(held, { text: 'hi', usage: { inputTokens: 3 } });
      expect(snapshot).toMatchObject({
        snapshotId: held.runId,
        sessionId: 's',
        index: 0,
        turnIndex: 0,
        event: 'turnEnd',
        status: 'succeeded',
        finishReason: 'stop',
        usage: { inputTokens: 3 },
        orphaned: false,
      });
      expect(snapshot.state).toBeUndefined();
      const read = await store.getSnapshot(scope, { sessionId: 's' });
      expect(read).toMatchObject(snapshot);
      expect(texts(read?.state)).toEqual(['hi', 'HI']);
      const loaded = await runs.load(scope, { sessionId: 's' });
      expect(loaded?.snapshot).toEqual(snapshot);
      expect(loaded?.snapshotId).toBe(base.snapshotId);
      expect(hashState(loaded?.state ?? emptyState)).toBe(snapshot.stateHash);
    });

    test('turns follow each other, each message of each state is there, and each turn is marked', async () => {
      const { turn, claim, store, scope } = useKit();
      const ids: string[] = [];
      for (let n = 0; n < 5; n++)
        ids.push((await turn('s', { text: `t${n}` })).snapshot.snapshotId);
      for (const [n, snapshotId] of ids.entries()) {
        const read = await store.getSnapshot(scope, { snapshotId });
        expect(read).toMatchObject({ index: n, turnIndex: n });
        expect(read?.parentId).toBe(ids[n - 1]);
        expect(texts(read?.state)).toEqual(
          ids.slice(0, n + 1).flatMap((_, turnOf) => [`t${turnOf}`, `T${turnOf}`]),
        );
        const marks = ids.slice(0, n + 1).map((id, turnOf) => [2 * turnOf + 1, id]);
        expect(marksIn(read?.state)).toEqual(Object.fromEntries(marks));
      }
      const next = await claim('s');
      expect(next).toMatchObject({
        fresh: false,
        headId: ids[4],
        nextIndex: 5,
        parent: { snapshotId: ids[4], turnIndex: 4, finishReason: 'stop' },
      });
    });

    test('custom state and artifacts are kept as they were at each snapshot', async () => {
      const { turn, store, scope } = useKit();
      const states = [
        stateOf({ custom: null }),
        stateOf({ custom: { a: 1, deep: { list: [1, 2, { x: '' }] } } }),
        stateOf({ custom: { a: 2, deep: { list: [1, { x: '' }] } } }),
        stateOf({
          custom: JSON.parse('{"__proto__": {"a": 1}, "constructor": 0, "": false}'),
          artifacts: [{ name: 'f', parts: [{ text: 'one' }], metadata: { v: 1 } }],
        }),
        stateOf({
          artifacts: [
            { name: 'f', parts: [{ text: 'two' }] },
            { parts: [{ media: { url: `data:,${'x'.repeat(5000)}` } }] },
          ],
        }),
        stateOf({ messages: [say('user', '\u0000 lone \ud800 surrogate')], custom: 0 }),
        stateOf({}),
      ];
      const ids: string[] = [];
      for (const state of states) ids.push((await turn('s', { state })).snapshot.snapshotId);
      for (const [n, state] of states.entries()) {
        const read = await store.getSnapshot(scope, { snapshotId: ids[n] ?? '' });
        expect(read?.state?.custom).toEqual(plain(state).custom);
        expect(JSON.stringify(read?.state?.custom)).toBe(JSON.stringify(state.custom));
        expect(read?.state?.artifacts).toEqual(plain(state).artifacts);
        expect(texts(read?.state)).toEqual(texts(plain(state)));
        expect(read?.stateHash).toBe(hashState(state));
      }
    });

    test('a history that was trimmed or rewritten is kept as it was', async () => {
      const { turn, runs, store, scope } = useKit();
      for (let n = 0; n < 4; n++) await turn('s', { text: `t${n}` });
      const base = await runs.load(scope, { sessionId: 's' });
      const old = base?.state.history.toArray() ?? [];
      const rewritten = [old[6], say('user', 'a summary'), old[7], old[0], old[7]].filter(
        (each) => each !== undefined,
      );
      const state = {
        ...emptyState,
        history: (base?.state ?? emptyState).history.replace(rewritten),
      };
      const trimmed = await turn('s', { state });
      const grown = await turn('s', { text: 'after' });
      const read = await store.getSnapshot(scope, { snapshotId: grown.snapshot.snapshotId });
      const expected = ['t3', 'a summary', 'T3', 't0', 'T3', 'after', 'AFTER'];
      expect(texts(read?.state)).toEqual(expected);
      // Older turns may be marked where their last message still stands, but a mark is never wrong.
      expect(marksIn(read?.state)).toMatchObject({
        4: trimmed.snapshot.snapshotId,
        6: grown.snapshot.snapshotId,
      });
      const before = await store.getSnapshot(scope, { snapshotId: base?.snapshotId ?? '' });
      expect(texts(before?.state)).toEqual(old.map((each) => texts({ messages: [each] })[0]));
    });

    test('while a turn runs, its reserved id reads as pending, is not listed and is no place to go on from', async () => {
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

    test('going on from an older snapshot moves the head with the first commit, not before', async () => {
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
      await refused(claim('other', from(snapshotId)), 'INVALID_ARGUMENT');
      await refused(claim('s', from(snapshotId), { ...scope, owner: 'other' }), 'NOT_FOUND');
      await refused(claim('s', { expectHead: null }), 'ABORTED');
      await refused(claim('s', { expectHead: id() }), 'ABORTED');
      await refused(claim('new', { expectHead: snapshotId }), 'ABORTED');
      await refused(claim('new', { runId: snapshotId }), 'ALREADY_EXISTS');
      expect(await runs.listRuns(scope)).toEqual([]);
      expect(await store.timeline?.getSession(scope, 'new')).toBeUndefined();
      expect(await claim('s', { expectHead: snapshotId })).toMatchObject({ headId: snapshotId });
    });

    test('a failed turn leaves a snapshot to look at, and the head where it was', async () => {
      const { turn, claim, commit, store, scope } = useKit();
      const good = (await turn('s', { text: 'good' })).snapshot;
      const error = { status: 'INTERNAL', message: 'broke', details: { at: 1 } } as const;
      const { snapshot } = await commit(await claim('s'), {
        text: 'bad',
        status: 'failed',
        finishReason: 'failed',
        error,
      });
      expect(snapshot).toMatchObject({
        status: 'failed',
        error,
        index: 1,
        parentId: good.snapshotId,
        orphaned: false,
      });
      const read = await store.getSnapshot(scope, { snapshotId: snapshot.snapshotId });
      expect(texts(read?.state)).toEqual(['good', 'GOOD', 'bad', 'BAD']);
      const next = await turn('s', { text: 'next' });
      expect(next.snapshot).toMatchObject({ index: 2, turnIndex: 1, parentId: good.snapshotId });
    });

    test('a snapshot in the middle of a turn becomes the head, and the run goes on', async () => {
      const { turn, claim, commit, runs, id, scope, store } = useKit();
      await turn('s', { text: 'one' });
      const held = await claim('s');
      const middle = await commit(held, {
        snapshotId: id(),
        event: 'toolIterationEnd',
        end: false,
        text: 'two',
      });
      expect(middle.snapshot).toMatchObject({ index: 1, turnIndex: 1 });
      expect(await runs.heartbeat(held)).toBe('held');
      expect((await runs.getRun(scope, held.runId))?.parentId).toBe(middle.base.snapshotId);
      const last = await commit(held, { base: middle.base, text: 'three' });
      expect(last.snapshot).toMatchObject({
        snapshotId: held.runId,
        index: 2,
        turnIndex: 1,
        parentId: middle.base.snapshotId,
      });
      const read = await store.getSnapshot(scope, { sessionId: 's' });
      // It does not end a turn, so there is nothing to go back to at its last message.
      expect(Object.keys(marksIn(read?.state))).toEqual(['1', '5']);
      expect(await runs.heartbeat(held)).toBe('lost');
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

    test('a snapshot id is used once', async () => {
      const { turn, claim, commit } = useKit();
      const { snapshotId } = (await turn('s')).snapshot;
      const held = await claim('s');
      await refused(commit(held, { snapshotId }), 'ALREADY_EXISTS');
      await refused(commit(held, { snapshotId: 'not-an-id' }), 'INVALID_ARGUMENT');
      expect((await commit(held)).snapshot.index).toBe(1);
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

    test('sessions of the same id under other owners and agents have nothing to do with each other', async () => {
      const { turn, scope, store } = useKit();
      const scopes = [
        scope,
        { ...scope, owner: 'a' },
        { ...scope, owner: 'b' },
        { agent: `${scope.agent}x`, owner: 'a' },
      ];
      for (const [n, each] of scopes.entries()) await turn('s', { scope: each, text: `t${n}` });
      for (const [n, each] of scopes.entries()) {
        const read = await store.getSnapshot(each, { sessionId: 's' });
        expect(read).toMatchObject({ index: 0 });
        expect(texts(read?.state)).toEqual([`t${n}`, `T${n}`]);
      }
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

  unlistedContract(useKit);
  recoveryContract(useKit);
  badInputContract(useKit);
}
