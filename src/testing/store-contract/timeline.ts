import { describe, expect, test } from 'vitest';
import { hashState } from '../../session/session-state.ts';
import { exchange, type Kit, marksIn, refused, texts, type UseKit } from './kit.ts';
import { searchContract } from './search.ts';
import { sessionContract } from './sessions.ts';

/** The listed snapshots of a session as `index:orphaned`. */
async function listed({ timeline, scope }: Kit, sessionId = 's'): Promise<string[]> {
  const { items } = await timeline.listSnapshots(scope, sessionId, { includeOrphaned: true });
  return items.map(({ index, orphaned }) => `${index}${orphaned ? ' orphaned' : ''}`);
}

/** Trees of snapshots: head, orphans, restore, fork, label. */
export function timelineContract(useKit: UseKit): void {
  describe('timeline', () => {
    test('snapshots are listed by index, page by page, without their state', async () => {
      const { turn, timeline, scope } = useKit();
      const made = [];
      for (let n = 0; n < 7; n++) made.push((await turn('s', { text: `t${n}` })).snapshot);
      const all = await timeline.listSnapshots(scope, 's');
      expect(all.items).toEqual(made);
      expect(all.next).toBeUndefined();
      const pages: (typeof made)[] = [];
      let cursor: string | undefined;
      do {
        const options = { limit: 3, ...(cursor === undefined ? {} : { cursor }) };
        const page = await timeline.listSnapshots(scope, 's', options);
        pages.push([...page.items]);
        cursor = page.next;
      } while (cursor !== undefined);
      expect(pages.map((page) => page.length)).toEqual([3, 3, 1]);
      expect(pages.flat()).toEqual(made);
      expect((await timeline.listSnapshots(scope, 'unknown')).items).toEqual([]);
      const other = { ...scope, owner: 'other' };
      expect((await timeline.listSnapshots(other, 's')).items).toEqual([]);
      await refused(
        timeline.listSnapshots(scope, 's', { cursor: 'no cursor' }),
        'INVALID_ARGUMENT',
      );
      await refused(timeline.listSnapshots(scope, 's', { limit: 0 }), 'INVALID_ARGUMENT');
    });

    test('S720: a claim from null starts another root of the session', async () => {
      const kit = useKit();
      const { turn, claim, commit, store, timeline, scope, textsOf } = kit;
      const first = (await turn('s', { text: 'a' })).snapshot;
      await turn('s', { text: 'b' });
      const held = await claim('s', { from: null });
      expect(held).toMatchObject({ fresh: false, nextIndex: 2 });
      expect(held.parent).toBeUndefined();
      const { snapshot } = await commit(held, { text: 'c' });
      expect(snapshot).toMatchObject({ index: 2, turnIndex: 0, orphaned: false });
      expect(snapshot.parentId).toBeUndefined();
      expect(await listed(kit)).toEqual(['0 orphaned', '1 orphaned', '2']);
      expect((await timeline.listSnapshots(scope, 's')).items).toEqual([snapshot]);
      expect(await textsOf({ sessionId: 's' })).toEqual(['c', 'C']);
      await turn('s', { text: 'd' });
      expect(await textsOf({ sessionId: 's' })).toEqual(['c', 'C', 'd', 'D']);
      expect(await textsOf({ snapshotId: first.snapshotId })).toEqual(['a', 'A']);
      await timeline.restore(scope, first.snapshotId);
      expect(await listed(kit)).toEqual(['0', '1 orphaned', '2 orphaned', '3 orphaned']);
      await timeline.fork(scope, snapshot.snapshotId, { sessionId: 'f', snapshotId: kit.id() });
      expect(await textsOf({ sessionId: 'f' })).toEqual(['c', 'C']);
      expect((await store.getSnapshot(scope, { sessionId: 's' }))?.snapshotId).toBe(
        first.snapshotId,
      );
    });

    test('S720: a root in an unknown session creates it, and an unlisted head is kept as a snapshot', async () => {
      const kit = useKit();
      const { turn, textsOf } = kit;
      await turn('s', { text: 'a', request: { from: null } });
      await turn('s', { text: 'b', listed: false });
      await turn('s', { text: 'c', request: { from: null } });
      expect(await listed(kit)).toEqual(['0 orphaned', '1 orphaned', '2']);
      expect(await textsOf({ sessionId: 's' })).toEqual(['c', 'C']);
    });

    test('S544: snapshots are listed from the end back, page by page', async () => {
      const { turn, timeline, scope } = useKit();
      const root = (await turn('s')).snapshot;
      const request = { from: { snapshotId: root.snapshotId } };
      for (let n = 0; n < 6; n++) await turn('s', n % 2 ? {} : { request });
      const read = async (options: { readonly includeOrphaned?: boolean }): Promise<number[][]> => {
        const pages: number[][] = [];
        let cursor: string | undefined;
        do {
          const page = await timeline.listSnapshots(scope, 's', {
            ...options,
            newestFirst: true,
            limit: 2,
            ...(cursor !== undefined && { cursor }),
          });
          pages.push(page.items.map(({ index }) => index));
          cursor = page.next;
        } while (cursor !== undefined);
        return pages;
      };
      expect(await read({ includeOrphaned: true })).toEqual([[6, 5], [4, 3], [2, 1], [0]]);
      expect(await read({})).toEqual([[6, 5], [0]]);
    });

    test('a page of what is not orphaned is full', async () => {
      const { turn, timeline, scope } = useKit();
      const root = (await turn('s')).snapshot;
      const request = { from: { snapshotId: root.snapshotId } };
      for (let n = 0; n < 6; n++) await turn('s', n % 2 ? {} : { request });
      const kept = (await timeline.listSnapshots(scope, 's')).items.map((each) => each.index);
      expect(kept).toEqual([0, 5, 6]);
      const first = await timeline.listSnapshots(scope, 's', { limit: 2 });
      expect(first.items.map((each) => each.index)).toEqual([0, 5]);
      const options = { limit: 2, cursor: first.next ?? '' };
      const second = await timeline.listSnapshots(scope, 's', options);
      expect(second.items.map((each) => each.index)).toEqual([6]);
      expect(second.next).toBeUndefined();
    });

    test('restoring moves the head; what is off its path reads as orphaned, and moving back recovers it', async () => {
      const kit = useKit();
      const { turn, timeline, scope, store } = kit;
      const ids: string[] = [];
      for (let n = 0; n < 4; n++)
        ids.push((await turn('s', { text: `t${n}` })).snapshot.snapshotId);
      const [, second = '', , fourth = ''] = ids;
      const restored = await timeline.restore(scope, second);
      expect(restored).toMatchObject({ snapshotId: second, orphaned: false });
      expect(restored.state).toBeUndefined();
      expect(await listed(kit)).toEqual(['0', '1', '2 orphaned', '3 orphaned']);
      expect((await timeline.listSnapshots(scope, 's')).items).toHaveLength(2);
      expect(await kit.textsOf({ sessionId: 's' })).toEqual(['t0', 'T0', 't1', 'T1']);
      await turn('s', { text: 'other' });
      expect(await listed(kit)).toEqual(['0', '1', '2 orphaned', '3 orphaned', '4']);
      await timeline.restore(scope, fourth);
      expect(await listed(kit)).toEqual(['0', '1', '2', '3', '4 orphaned']);
      const read = await store.getSnapshot(scope, { sessionId: 's' });
      expect(read).toMatchObject({ snapshotId: fourth });
      expect(marksIn(read?.state)).toEqual(Object.fromEntries(ids.map((id, n) => [2 * n + 1, id])));
    });

    test('a failed, aborted or pending snapshot is orphaned when its parent is', async () => {
      const kit = useKit();
      const { turn, claim, runs, timeline, scope } = kit;
      await turn('s', { status: 'failed' });
      const root = (await turn('s')).snapshot;
      await turn('s');
      await turn('s', { status: 'failed' });
      await turn('s', { status: 'aborted' });
      expect(await listed(kit)).toEqual(['0', '1', '2', '3', '4']);
      await timeline.restore(scope, root.snapshotId);
      expect(await listed(kit)).toEqual(['0', '1', '2 orphaned', '3 orphaned', '4 orphaned']);
      const held = await claim('s');
      await runs.detach(held, { mode: 'detached', inputs: [] });
      expect(await listed(kit)).toEqual(['0', '1', '2 orphaned', '3 orphaned', '4 orphaned', '5']);
      const { items } = await timeline.listSnapshots(scope, 's');
      expect(items.map((each) => each.status)).toEqual(['failed', 'succeeded', 'pending']);
    });

    test('only a succeeded snapshot of a session that is free can be restored', async () => {
      const { turn, claim, runs, timeline, scope, id } = useKit();
      const good = (await turn('s')).snapshot;
      await turn('s');
      const failed = (await turn('s', { status: 'failed' })).snapshot;
      await refused(timeline.restore(scope, failed.snapshotId), 'FAILED_PRECONDITION');
      await refused(timeline.restore(scope, id()), 'NOT_FOUND');
      await refused(timeline.restore(scope, '../x'), 'NOT_FOUND');
      await refused(timeline.restore({ ...scope, owner: 'o' }, good.snapshotId), 'NOT_FOUND');
      const held = await claim('s');
      await refused(timeline.restore(scope, good.snapshotId), 'ABORTED', { running: held.runId });
      await runs.release(held);
      expect(await timeline.restore(scope, good.snapshotId)).toMatchObject({ orphaned: false });
    });

    test('a session whose attached run has expired is free, and the run cannot come back', async () => {
      const kit = useKit();
      const { turn, claim, commit, expire, ttl, timeline, scope, runs } = kit;
      const good = (await turn('s')).snapshot;
      await turn('s');
      const dead = await claim('s', { ttl });
      await expire();
      expect((await timeline.getSession(scope, 's'))?.running).toBeUndefined();
      await timeline.restore(scope, good.snapshotId);
      expect(await runs.heartbeat(dead)).toBe('lost');
      await refused(commit(dead), 'ABORTED');
      expect(await listed(kit)).toEqual(['0', '1 orphaned', '2 orphaned']);
      const { items } = await timeline.listSnapshots(scope, 's', { includeOrphaned: true });
      expect(items.at(-1)).toMatchObject({ snapshotId: dead.runId, status: 'expired' });
      await claim('s', { ttl });
      await expire();
      expect(await timeline.deleteSession(scope, 's')).toBe(true);
    });

    test('an unlisted state is listed before a restore leaves it, and by a label', async () => {
      const kit = useKit();
      const { turn, timeline, scope, store } = kit;
      const first = (await turn('s')).snapshot;
      const saved = (await turn('s', { listed: false })).snapshot;
      expect((await timeline.listSnapshots(scope, 's')).items).toHaveLength(1);
      expect(await timeline.getSession(scope, 's')).toMatchObject({ headId: saved.snapshotId });
      await timeline.restore(scope, first.snapshotId);
      expect(await listed(kit)).toEqual(['0', '1 orphaned']);
      await timeline.restore(scope, saved.snapshotId);
      const other = (await turn('s', { listed: false })).snapshot;
      const named = await timeline.label(scope, other.snapshotId, 'keep');
      expect(named).toMatchObject({ index: 2, label: 'keep' });
      expect(await listed(kit)).toEqual(['0', '1', '2']);
      expect((await turn('s')).snapshot.parentId).toBe(other.snapshotId);
      expect(await store.getSnapshot(scope, { snapshotId: other.snapshotId })).toBeDefined();
    });

    test('a fork is a separate session that starts with the same state', async () => {
      const kit = useKit();
      const { turn, timeline, scope, id, store, textsOf } = kit;
      await turn('s', { text: 'one' });
      const source = (
        await turn('s', { text: 'two', finishReason: 'interrupted', event: 'invocationEnd' })
      ).snapshot;
      await timeline.label(scope, source.snapshotId, 'here');
      const target = { sessionId: 'f', snapshotId: id() };
      const forked = await timeline.fork(scope, source.snapshotId, target);
      expect(forked).toMatchObject({
        ...target,
        index: 0,
        turnIndex: 1,
        event: 'invocationEnd',
        finishReason: 'interrupted',
        status: 'succeeded',
        stateHash: source.stateHash,
        orphaned: false,
      });
      expect(forked.parentId).toBeUndefined();
      expect(forked.label).toBeUndefined();
      expect(await timeline.getSession(scope, 'f')).toMatchObject({
        headId: target.snapshotId,
        turnCount: 2,
        forkedFrom: { sessionId: 's', snapshotId: source.snapshotId },
      });
      const read = await store.getSnapshot(scope, { sessionId: 'f' });
      expect(marksIn(read?.state)).toEqual({ 3: target.snapshotId });
      await turn('f', { text: 'in the fork' });
      await turn('s', { text: 'in the source' });
      expect((await textsOf({ sessionId: 'f' })).slice(2)).toEqual([
        'two',
        'TWO',
        'in the fork',
        'IN THE FORK',
      ]);
      expect((await textsOf({ sessionId: 's' })).slice(4)).toEqual([
        'in the source',
        'IN THE SOURCE',
      ]);
    });

    test('S170: errors that waiting cannot fix come first: unknown, not succeeded, then busy', async () => {
      const { turn, claim, timeline, scope, id } = useKit();
      const good = (await turn('s')).snapshot;
      const failed = (await turn('s', { status: 'failed' })).snapshot;
      const held = await claim('s');
      await refused(timeline.restore(scope, id()), 'NOT_FOUND');
      await refused(timeline.restore(scope, failed.snapshotId), 'FAILED_PRECONDITION');
      await refused(timeline.restore(scope, held.runId), 'FAILED_PRECONDITION');
      await refused(timeline.restore(scope, good.snapshotId), 'ABORTED', { running: held.runId });
      const from = (snapshotId: string) => claim('s', { from: { snapshotId } });
      await refused(from(id()), 'NOT_FOUND');
      await refused(from(failed.snapshotId), 'FAILED_PRECONDITION');
      await refused(from(held.runId), 'FAILED_PRECONDITION');
      await refused(from(good.snapshotId), 'ABORTED', { running: held.runId });
    });

    test('S170: every store rejects a taken id with the same message', async () => {
      const { turn, claim, timeline, maintenance, scope, id } = useKit();
      const { snapshotId } = (await turn('s')).snapshot;
      const told = async (call: Promise<unknown>): Promise<string> => {
        const error: unknown = await call.then(() => undefined).catch((reason: unknown) => reason);
        expect(error).toMatchObject({ status: 'ALREADY_EXISTS' });
        return error instanceof Error ? error.message : '';
      };
      const snapshotTaken = `The snapshot id "${snapshotId}" is taken. Use a new id for every snapshot.`;
      const sessionTaken = 'The session id "s" is taken. Choose another id.';
      expect(await told(claim('new', { runId: snapshotId }))).toBe(snapshotTaken);
      expect(await told(timeline.fork(scope, snapshotId, { sessionId: 'f', snapshotId }))).toBe(
        snapshotTaken,
      );
      const target = { sessionId: 's', snapshotId: id() };
      expect(await told(timeline.fork(scope, snapshotId, target))).toBe(sessionTaken);
      const document = await maintenance.exportSession(scope, 's');
      expect(await told(maintenance.importSession(scope, document ?? expect.fail()))).toBe(
        sessionTaken,
      );
    });

    test('a fork of a running session is taken from what is saved; a bad one changes nothing', async () => {
      const { turn, claim, timeline, scope, id } = useKit();
      const good = (await turn('s')).snapshot;
      const failed = (await turn('s', { status: 'failed' })).snapshot;
      const held = await claim('s');
      const target = () => ({ sessionId: 'f', snapshotId: id() });
      await refused(timeline.fork(scope, failed.snapshotId, target()), 'FAILED_PRECONDITION');
      await refused(timeline.fork(scope, held.runId, target()), 'FAILED_PRECONDITION');
      await refused(timeline.fork(scope, id(), target()), 'NOT_FOUND');
      const taken = { sessionId: 'f', snapshotId: good.snapshotId };
      await refused(timeline.fork(scope, good.snapshotId, taken), 'ALREADY_EXISTS');
      expect(await timeline.getSession(scope, 'f')).toBeUndefined();
      await timeline.fork(scope, good.snapshotId, target());
      await refused(timeline.fork(scope, good.snapshotId, target()), 'ALREADY_EXISTS');
    });

    test('S169: restore, fork and label change nothing for a caller that expects another head', async () => {
      const { turn, claim, runs, timeline, scope, id } = useKit();
      const first = (await turn('s')).snapshot.snapshotId;
      const second = (await turn('s')).snapshot.snapshotId;
      const stale = { expectHead: first };
      const target = { sessionId: 'f', snapshotId: id() };
      const headId = second;
      await refused(timeline.restore(scope, first, stale), 'ABORTED', { headId });
      await refused(timeline.fork(scope, first, { ...target, ...stale }), 'ABORTED', { headId });
      await refused(timeline.label(scope, first, 'x', stale), 'ABORTED', { headId });
      await refused(claim('s', stale), 'ABORTED', { headId });
      await refused(claim('new', stale), 'ABORTED', { headId: null });
      for (const bad of [null, 7] as unknown as string[]) {
        const wrong = { expectHead: bad };
        await refused(timeline.restore(scope, first, wrong), 'INVALID_ARGUMENT');
        await refused(timeline.fork(scope, first, { ...target, ...wrong }), 'INVALID_ARGUMENT');
        await refused(timeline.label(scope, first, 'x', wrong), 'INVALID_ARGUMENT');
      }
      expect(await timeline.getSession(scope, 'f')).toBeUndefined();
      expect((await timeline.getSession(scope, 's'))?.headId).toBe(second);
      const now = { expectHead: second };
      const held = await claim('s', now);
      const running = { running: held.runId };
      await refused(timeline.restore(scope, first, stale), 'ABORTED', running);
      await runs.release(held);
      expect(await timeline.label(scope, first, 'x', now)).toMatchObject({ label: 'x' });
      await timeline.fork(scope, first, { ...target, ...now });
      expect(await timeline.restore(scope, first, now)).toMatchObject({ orphaned: false });
      await refused(timeline.restore(scope, second, now), 'ABORTED', { headId: first });
    });

    test('S169: of many callers that restore from the same head one wins', async () => {
      const { turn, timeline, scope } = useKit();
      const ids: string[] = [];
      for (let n = 0; n < 6; n++) ids.push((await turn('s')).snapshot.snapshotId);
      const expectHead = ids.at(-1) ?? '';
      const calls = ids.slice(0, -1).map((each) => timeline.restore(scope, each, { expectHead }));
      const results = await Promise.allSettled(calls);
      const won = results.flatMap((each) => (each.status === 'fulfilled' ? [each.value] : []));
      expect(won).toHaveLength(1);
      expect((await timeline.getSession(scope, 's'))?.headId).toBe(won[0]?.snapshotId);
      for (const each of results) {
        if (each.status === 'rejected') expect(each.reason).toMatchObject({ status: 'ABORTED' });
      }
    });

    test('a label is set, replaced and removed', async () => {
      const { turn, timeline, scope, id, store } = useKit();
      const { snapshotId } = (await turn('s')).snapshot;
      expect(await timeline.label(scope, snapshotId, 'one')).toMatchObject({ label: 'one' });
      await timeline.label(scope, snapshotId, 'zwei ä');
      expect(await store.getSnapshot(scope, { snapshotId })).toMatchObject({ label: 'zwei ä' });
      expect((await timeline.label(scope, snapshotId, null)).label).toBeUndefined();
      await refused(timeline.label(scope, id(), 'x'), 'NOT_FOUND');
    });

    test('states of deep trees of branches are read as they were written', async () => {
      const { turn, timeline, scope, runs } = useKit();
      const made: { readonly id: string; readonly hash: string }[] = [];
      for (let n = 0; n < 40; n++) {
        const back = made[Math.max(0, n - 2)];
        const request = n % 3 === 0 && back ? { from: { snapshotId: back.id } } : {};
        const { snapshot, base } = await turn('s', { text: `t${n}`, request });
        expect(hashState(base.state)).toBe(snapshot.stateHash);
        made.push({ id: snapshot.snapshotId, hash: snapshot.stateHash });
      }
      for (const { id, hash } of made) {
        const loaded = await runs.load(scope, { snapshotId: id });
        expect(loaded && hashState(loaded.state)).toBe(hash);
      }
      const last = await runs.load(scope, { sessionId: 's' });
      const state = last && exchange(last.state, 'x');
      expect(texts(state && { messages: state.history.toArray() }).at(-1)).toBe('X');
      expect(
        (await timeline.listSnapshots(scope, 's', { includeOrphaned: true })).items,
      ).toHaveLength(40);
    });
  });

  sessionContract(useKit);
  searchContract(useKit);
}
