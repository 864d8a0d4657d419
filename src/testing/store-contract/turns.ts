import { describe, expect, test } from 'vitest';
import { emptyState, hashState } from '../../session/session-state.ts';
import { marksIn, plain, refused, say, stateOf, texts, type UseKit } from './kit.ts';

/** Turns under a claim: reads return what was written. */
export function turnContract(useKit: UseKit): void {
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
      // Older turns may be marked if their last message is still there, but a mark is never wrong.
      expect(marksIn(read?.state)).toMatchObject({
        4: trimmed.snapshot.snapshotId,
        6: grown.snapshot.snapshotId,
      });
      const before = await store.getSnapshot(scope, { snapshotId: base?.snapshotId ?? '' });
      expect(texts(before?.state)).toEqual(old.map((each) => texts({ messages: [each] })[0]));
    });

    test('a failed turn leaves a snapshot for inspection, and does not move the head', async () => {
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

    test('S162: a snapshot in the middle of a turn is not the head before the turn has ended well', async () => {
      const { turn, claim, commit, runs, id, scope, store } = useKit();
      const { snapshotId: start } = (await turn('s', { text: 'one' })).snapshot;
      const held = await claim('s');
      const middle = await commit(held, {
        snapshotId: id(),
        event: 'toolIterationEnd',
        end: false,
        text: 'two',
      });
      expect(middle.snapshot).toMatchObject({ index: 1, turnIndex: 1, orphaned: false });
      expect(await store.getSnapshot(scope, { sessionId: 's' })).toMatchObject({
        snapshotId: start,
      });
      const { snapshotId } = middle.snapshot;
      expect(await store.getSnapshot(scope, { snapshotId })).toMatchObject({ orphaned: false });
      const pending = await store.getSnapshot(scope, { snapshotId: held.runId });
      expect(pending).toMatchObject({ parentId: start, orphaned: false });
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
      // It does not end a turn, so its last message is not a restore point.
      expect(Object.keys(marksIn(read?.state))).toEqual(['1', '5']);
      expect(await runs.heartbeat(held)).toBe('lost');
    });

    test('S162: a turn that fails behind such a snapshot leaves the head where it was', async () => {
      const kit = useKit();
      const { turn, claim, commit, id, scope, store, textsOf } = kit;
      for (const first of [true, false]) {
        const sessionId = first ? 'first' : 'later';
        const start = first ? undefined : (await turn(sessionId, { text: 'one' })).snapshot;
        const held = await claim(sessionId);
        const middle = await commit(held, {
          snapshotId: id(),
          event: 'toolIterationEnd',
          end: false,
          text: 'two',
        });
        // An empty session has none.
        const parentId = start?.snapshotId as string;
        const failed = await commit(held, {
          base: middle.base,
          parentId,
          text: 'three',
          status: 'failed',
        });
        expect(failed.snapshot).toMatchObject({ status: 'failed', orphaned: false });
        expect(failed.snapshot.parentId).toBe(parentId);
        const head = await store.getSnapshot(scope, { sessionId });
        expect(head?.snapshotId).toBe(start?.snapshotId);
        const { snapshotId } = middle.snapshot;
        expect(await store.getSnapshot(scope, { snapshotId })).toMatchObject({
          status: 'succeeded',
          orphaned: true,
        });
        // A turn can continue from it by id; then it is on the active path.
        const again = await claim(sessionId, { from: { snapshotId } });
        await commit(again, { text: 'four' });
        expect(await textsOf({ sessionId })).toEqual(
          [...(first ? [] : ['one']), 'two', 'four'].flatMap((text) => [text, text.toUpperCase()]),
        );
        expect(await store.getSnapshot(scope, { snapshotId })).toMatchObject({ orphaned: false });
      }
      expect(await store.maintenance?.verify()).toEqual(store.maintenance && []);
    });

    test('S162: so does one whose caller dies, and one that is released or aborted', async () => {
      const kit = useKit();
      const { turn, claim, commit, id, scope, store, runs, ttl, expire } = kit;
      const { snapshotId: start } = (await turn('s', { text: 'one' })).snapshot;
      const middle = () =>
        ({ snapshotId: id(), event: 'toolIterationEnd', end: false, text: 'two' }) as const;
      const headId = async () => (await store.getSnapshot(scope, { sessionId: 's' }))?.snapshotId;
      const released = await claim('s');
      await commit(released, middle());
      await runs.release(released);
      expect(await headId()).toBe(start);
      const detached = await claim('s');
      await commit(detached, middle());
      await runs.detach(detached, { mode: 'detached', inputs: [] });
      await store.abort?.abortSnapshot(scope, detached.runId);
      expect(await headId()).toBe(start);
      const hangs = { parentId: start, orphaned: false };
      const aborted = await store.getSnapshot(scope, { snapshotId: detached.runId });
      expect(aborted).toMatchObject({ status: 'aborted', ...hangs });
      const failing = await claim('s');
      const { base } = await commit(failing, middle());
      await runs.detach(failing, { mode: 'detached', inputs: [] });
      const failed = await commit(failing, { base, event: 'detach', status: 'failed' });
      expect(failed.snapshot).toMatchObject({ status: 'failed', ...hangs });
      const read = await store.getSnapshot(scope, { snapshotId: failing.runId });
      expect(read).toMatchObject({ status: 'failed', ...hangs });
      expect(await store.maintenance?.verify()).toEqual([]);
      const dead = await claim('s', { ttl });
      await commit(dead, middle());
      await expire();
      const next = await claim('s');
      expect(next.parent?.snapshotId).toBe(start);
      expect(await store.getSnapshot(scope, { snapshotId: dead.runId })).toMatchObject({
        status: 'expired',
        parentId: start,
        orphaned: false,
      });
      await commit(next, { text: 'next' });
      expect(await kit.textsOf({ sessionId: 's' })).toEqual(['one', 'ONE', 'next', 'NEXT']);
      expect(await store.maintenance?.verify()).toEqual(store.maintenance && []);
    });

    test('S162: an unlisted state stays until the turn that continues from it has ended', async () => {
      const kit = useKit();
      const { turn, claim, commit, id, scope, store, textsOf } = kit;
      const { snapshotId: start } = (await turn('s', { text: 'one', listed: false })).snapshot;
      const middle = { snapshotId: id(), event: 'toolIterationEnd', end: false } as const;
      const failing = await claim('s');
      const { base, snapshot } = await commit(failing, { ...middle, text: 'two' });
      expect(snapshot.index).toBe(failing.nextIndex);
      await commit(failing, { base, parentId: start, text: 'x', status: 'failed' });
      expect(await textsOf({ sessionId: 's' })).toEqual(['one', 'ONE']);
      const held = await claim('s');
      expect(held.parent).toMatchObject({ snapshotId: start, listed: false });
      const second = await commit(held, { ...middle, snapshotId: id(), text: 'two' });
      expect(second.snapshot.index).toBe(held.nextIndex);
      await commit(held, { base: second.base, text: 'three' });
      expect(await store.getSnapshot(scope, { snapshotId: start })).toBeUndefined();
      expect(await textsOf({ sessionId: 's' })).toEqual(
        ['one', 'two', 'three'].flatMap((text) => [text, text.toUpperCase()]),
      );
      expect(await store.maintenance?.verify()).toEqual(store.maintenance && []);
    });

    test('S107 S162: an interrupt is answered by a turn that ended well, not by a snapshot within one that failed', async () => {
      const { turn, claim, commit, id } = useKit();
      const asked = (await turn('s', { finishReason: 'interrupted' })).snapshot;
      const middle = () => ({ snapshotId: id(), event: 'toolIterationEnd', end: false }) as const;
      const failing = await claim('s');
      const { base } = await commit(failing, middle());
      await commit(failing, { base, parentId: asked.snapshotId, status: 'failed' });
      const good = await claim('s');
      expect(good.parent).toMatchObject({ snapshotId: asked.snapshotId, answered: false });
      const within = await commit(good, middle());
      await commit(good, { base: within.base });
      const again = await claim('s', { from: { snapshotId: asked.snapshotId } });
      expect(again.parent).toMatchObject({ snapshotId: asked.snapshotId, answered: true });
    });

    test('S485: an edit of a head that is not listed lists it, and continues from it', async () => {
      const { store, scope, turn, claim, commit, textsOf } = useKit();
      const first = (await turn('s', { text: 'one' })).snapshot;
      const { snapshotId } = (await turn('s', { text: 'two', listed: false })).snapshot;
      const held = await claim('s', { from: { snapshotId } });
      const edited = (await commit(held, { event: 'edit', edit: {}, text: 'three' })).snapshot;
      expect(edited).toMatchObject({ index: 2, parentId: snapshotId });
      expect(await store.getSnapshot(scope, { snapshotId })).toMatchObject({
        index: 1,
        parentId: first.snapshotId,
        orphaned: false,
      });
      expect((await turn('s', { text: 'four' })).snapshot).toMatchObject({
        index: 3,
        parentId: edited.snapshotId,
      });
      expect(await textsOf({ snapshotId })).toEqual(['one', 'ONE', 'two', 'TWO']);
      expect(await store.maintenance?.verify()).toEqual(store.maintenance && []);
    });

    test('S487: a snapshot keeps who made an edit, and why', async () => {
      const { store, scope, timeline, turn } = useKit();
      await turn('s');
      const edit = { by: 'Ada', reason: 'a wrong currency' };
      const { snapshotId, ...edited } = (await turn('s', { event: 'edit', edit })).snapshot;
      expect(edited).toMatchObject({ event: 'edit', edit });
      expect(await store.getSnapshot(scope, { snapshotId })).toMatchObject({ edit });
      const { items } = await timeline.listSnapshots(scope, 's');
      expect(items.map((each) => each.edit)).toEqual([undefined, edit]);
    });

    test('S489: an answer to one edit of an interrupted snapshot answers it and its other edits', async () => {
      const { turn, claim, commit, runs } = useKit();
      await turn('s');
      const asked = (await turn('s', { finishReason: 'interrupted' })).snapshot;
      const edit = async (snapshotId: string) => {
        const held = await claim('s', { from: { snapshotId } });
        expect(held.parent).toMatchObject({ snapshotId, answered: false });
        const write = { event: 'edit', finishReason: 'interrupted', edit: {} } as const;
        return (await commit(held, write)).snapshot;
      };
      const one = await edit(asked.snapshotId);
      const two = await edit(asked.snapshotId);
      const three = await edit(two.snapshotId);
      await commit(await claim('s', { from: { snapshotId: one.snapshotId } }));
      for (const { snapshotId } of [asked, one, two, three]) {
        const late = await claim('s', { from: { snapshotId } });
        expect(late.parent).toMatchObject({ snapshotId, answered: true });
        await runs.release(late);
      }
    });

    test('a snapshot id is used once', async () => {
      const { turn, claim, commit } = useKit();
      const { snapshotId } = (await turn('s')).snapshot;
      const held = await claim('s');
      await refused(commit(held, { snapshotId }), 'ALREADY_EXISTS');
      await refused(commit(held, { snapshotId: 'not-an-id' }), 'INVALID_ARGUMENT');
      expect((await commit(held)).snapshot.index).toBe(1);
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
  });
}
