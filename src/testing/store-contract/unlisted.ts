import { describe, expect, test } from 'vitest';
import { marksIn, refused, texts, type UseKit } from './kit.ts';

/** States that are saved although the policy creates no snapshot. */
export function unlistedContract(useKit: UseKit): void {
  describe('the latest state that is not a snapshot', () => {
    test('is what the session id gives, has no index and takes none', async () => {
      const { turn, store, scope, claim, commit } = useKit();
      const first = (await turn('s', { text: 'one' })).snapshot;
      const saved = (await turn('s', { text: 'two', listed: false })).snapshot;
      expect(saved).toMatchObject({ index: -1, turnIndex: 1, status: 'succeeded' });
      const read = await store.getSnapshot(scope, { sessionId: 's' });
      expect(read).toMatchObject({ snapshotId: saved.snapshotId, orphaned: false });
      expect(texts(read?.state)).toEqual(['one', 'ONE', 'two', 'TWO']);
      expect(marksIn(read?.state)).toEqual({ 1: first.snapshotId });
      const held = await claim('s');
      expect(held).toMatchObject({ headId: saved.snapshotId, nextIndex: 1 });
      expect(held.parent).toMatchObject({ snapshotId: saved.snapshotId, listed: false });
      const next = (await commit(held, { text: 'three' })).snapshot;
      expect(next).toMatchObject({ index: 1, turnIndex: 2, parentId: first.snapshotId });
    });

    test('is replaced by the turn that continues from it', async () => {
      const { turn, store, scope } = useKit();
      const ids: string[] = [];
      for (const text of ['a', 'b', 'c']) {
        ids.push((await turn('s', { text, listed: false })).snapshot.snapshotId);
      }
      for (const snapshotId of ids.slice(0, 2)) {
        expect(await store.getSnapshot(scope, { snapshotId })).toBeUndefined();
      }
      const read = await store.getSnapshot(scope, { sessionId: 's' });
      expect(texts(read?.state)).toEqual(['a', 'A', 'b', 'B', 'c', 'C']);
      expect(read?.parentId).toBeUndefined();
    });

    test('stays when the turn after it fails, and nothing hangs on it', async () => {
      const { turn, store, scope } = useKit();
      const first = (await turn('s')).snapshot;
      const saved = (await turn('s', { listed: false })).snapshot;
      const failed = (await turn('s', { status: 'failed' })).snapshot;
      expect(failed).toMatchObject({ index: 1, parentId: first.snapshotId, orphaned: false });
      const head = await store.getSnapshot(scope, { sessionId: 's' });
      expect(head?.snapshotId).toBe(saved.snapshotId);
      await refused(turn('s', { status: 'failed', listed: false }), 'INVALID_ARGUMENT');
    });

    test('is listed before the head leaves it for another branch', async () => {
      const { turn, claim, commit, store, scope } = useKit();
      const first = (await turn('s', { text: 'one' })).snapshot;
      const saved = (await turn('s', { text: 'two', listed: false })).snapshot;
      const held = await claim('s', { from: { snapshotId: first.snapshotId } });
      expect(held.nextIndex).toBe(2);
      const branch = (await commit(held, { text: 'three' })).snapshot;
      expect(branch).toMatchObject({ index: 2, parentId: first.snapshotId });
      const left = await store.getSnapshot(scope, { snapshotId: saved.snapshotId });
      expect(left).toMatchObject({ index: 1, orphaned: true, parentId: first.snapshotId });
      expect(texts(left?.state)).toEqual(['one', 'ONE', 'two', 'TWO']);
    });
  });
}
