import { describe, expect, test } from 'vitest';
import type { Snapshot } from '../../protocol/snapshot.ts';
import { marksIn, refused, say, texts, type UseKit } from './kit.ts';

/** A snapshot to save without a claim. */
export function draft(snapshotId: string, change: Partial<Snapshot> = {}): Snapshot {
  return {
    snapshotId,
    sessionId: 's',
    index: 0,
    turnIndex: 0,
    event: 'turnEnd',
    status: 'succeeded',
    createdAt: '',
    updatedAt: '',
    stateHash: '',
    orphaned: false,
    state: { messages: [say('user', 'hi')] },
    ...change,
  };
}

/** The minimum: read a snapshot, save one atomically. */
export function snapshotContract(useKit: UseKit): void {
  describe('snapshots', () => {
    test('what was saved is read back', async () => {
      const { store, scope, id } = useKit();
      const snapshotId = id();
      const state = {
        messages: [say('user', 'hi'), say('model', 'hello')],
        custom: { n: 1, __proto__: null, nested: [null, 'ä\u0000\ud83d\ude00'] },
        artifacts: [{ name: 'a.txt', parts: [{ text: 'x' }] }, { parts: [{ text: 'unnamed' }] }],
      };
      const saved = await store.saveSnapshot(scope, snapshotId, () => draft(snapshotId, { state }));
      expect(saved).toMatchObject({ snapshotId, sessionId: 's', status: 'succeeded', index: 0 });
      const read = await store.getSnapshot(scope, { snapshotId });
      expect(read).toEqual(saved);
      expect(texts(read?.state)).toEqual(['hi', 'hello']);
      expect(read?.state?.custom).toEqual(state.custom);
      expect(read?.state?.artifacts).toEqual(state.artifacts);
      expect(read?.orphaned).toBe(false);
      expect(Date.parse(read?.createdAt ?? '')).not.toBeNaN();
    });

    test('the outcome of a turn and the note of an edit are read back', async () => {
      const { store, scope, id } = useKit();
      const error = { status: 'INTERNAL', message: 'x' } as const;
      const outcomes: readonly Partial<Snapshot>[] = [
        {
          finishReason: 'interrupted',
          usage: { inputTokens: 3, cacheWriteTokens: 2, expectedCachedTokens: 1 },
          label: 'here',
        },
        { status: 'failed', finishReason: 'failed', error },
        { event: 'edit', edit: { by: 'Ada', reason: 'a wrong currency' } },
      ];
      for (const outcome of outcomes) {
        const snapshotId = id();
        await store.saveSnapshot(scope, snapshotId, () => draft(snapshotId, outcome));
        expect(await store.getSnapshot(scope, { snapshotId })).toMatchObject(outcome);
      }
    });

    test('the last message of a turn carries the id of its snapshot, and putting it back changes nothing', async () => {
      const { store, scope, id } = useKit();
      const [first, second] = [id(), id()];
      const saved = await store.saveSnapshot(scope, first, () => draft(first));
      expect(marksIn(saved?.state)).toEqual({ 0: first });
      const messages = [...(saved?.state?.messages ?? []), say('model', 'hello')];
      await store.saveSnapshot(scope, second, () =>
        draft(second, { parentId: first, turnIndex: 1, state: { messages } }),
      );
      const read = await store.getSnapshot(scope, { snapshotId: second });
      expect(marksIn(read?.state)).toEqual({ 0: first, 1: second });
      const same = id();
      const again = await store.saveSnapshot(scope, same, () =>
        draft(same, { parentId: first, state: { messages: read?.state?.messages ?? [] } }),
      );
      expect(again?.stateHash).toBe(read?.stateHash);
    });

    test('an unknown id is undefined, to mutate and to the reader', async () => {
      const { store, scope, id } = useKit();
      const seen: unknown[] = [];
      const left = await store.saveSnapshot(scope, id(), (current) => {
        seen.push(current);
        return undefined;
      });
      expect(left).toBeUndefined();
      expect(seen).toEqual(seen.map(() => undefined));
      expect(await store.getSnapshot(scope, { snapshotId: id() })).toBeUndefined();
      expect(await store.getSnapshot(scope, { sessionId: 'unknown' })).toBeUndefined();
    });

    test('the latest succeeded snapshot is what the session id gives', async () => {
      const { store, scope, id } = useKit();
      const [good, bad] = [id(), id()];
      await store.saveSnapshot(scope, good, () => draft(good));
      await store.saveSnapshot(scope, bad, () =>
        draft(bad, {
          status: 'failed',
          parentId: good,
          error: { status: 'INTERNAL', message: 'no', details: { a: [1] } },
        }),
      );
      expect(await store.getSnapshot(scope, { sessionId: 's' })).toMatchObject({
        snapshotId: good,
        index: 0,
      });
      expect(await store.getSnapshot(scope, { snapshotId: bad })).toMatchObject({
        status: 'failed',
        error: { status: 'INTERNAL', message: 'no', details: { a: [1] } },
        index: 1,
        parentId: good,
      });
    });

    test('a pending snapshot is changed in place; a terminal one never', async () => {
      const { store, scope, id } = useKit();
      const snapshotId = id();
      const save = (change: Partial<Snapshot>): Promise<Snapshot | undefined> =>
        store.saveSnapshot(scope, snapshotId, () => draft(snapshotId, change));
      const pending = await save({ status: 'pending', event: 'detach' });
      expect(pending).toMatchObject({ status: 'pending', index: 0 });
      expect(await store.getSnapshot(scope, { sessionId: 's' })).toBeUndefined();
      expect(await save({ status: 'aborted' })).toMatchObject({ status: 'aborted', index: 0 });
      const late = await save({ status: 'succeeded', state: { messages: [] } });
      expect(late).toMatchObject({ status: 'aborted', createdAt: pending?.createdAt });
      expect(texts(late?.state)).toEqual(['hi']);
    });

    test('of many writers to one snapshot each sees what the one before wrote', async () => {
      const { store, scope, id } = useKit();
      const snapshotId = id();
      const count = (current: Snapshot | undefined): number =>
        Number((current?.state?.custom as { n?: number } | undefined)?.n ?? 0);
      const add = (): Promise<Snapshot | undefined> =>
        store.saveSnapshot(scope, snapshotId, (current) =>
          draft(snapshotId, { status: 'pending', state: { custom: { n: count(current) + 1 } } }),
        );
      await Promise.all(Array.from({ length: 20 }, add));
      expect(count(await store.getSnapshot(scope, { snapshotId }))).toBe(20);
    });

    test('what is wrong is refused and leaves nothing behind', async () => {
      const { store, scope, id } = useKit();
      const snapshotId = id();
      const save = (change: Partial<Snapshot>): Promise<Snapshot | undefined> =>
        store.saveSnapshot(scope, snapshotId, () => draft(snapshotId, change));
      await refused(save({ snapshotId: id() }), 'INVALID_ARGUMENT');
      await refused(save({ status: 'expired' }), 'INVALID_ARGUMENT');
      await refused(save({ parentId: id() }), 'INVALID_ARGUMENT');
      await expect(
        store.saveSnapshot(scope, snapshotId, () => {
          throw new Error('changed my mind');
        }),
      ).rejects.toThrow('changed my mind');
      expect(await store.getSnapshot(scope, { snapshotId })).toBeUndefined();
      expect(await store.getSnapshot(scope, { sessionId: 's' })).toBeUndefined();
    });

    test('another agent and another owner know nothing of it', async () => {
      const { store, scope, id } = useKit();
      const snapshotId = id();
      await store.saveSnapshot(scope, snapshotId, () => draft(snapshotId));
      const others = [
        { agent: `${scope.agent}2` },
        { agent: scope.agent, owner: 'somebody' },
        { agent: scope.agent, owner: 'undefined' },
      ];
      for (const other of others) {
        expect(await store.getSnapshot(other, { snapshotId })).toBeUndefined();
        expect(await store.getSnapshot(other, { sessionId: 's' })).toBeUndefined();
        const write = store.saveSnapshot(other, snapshotId, (current) => {
          expect(current).toBeUndefined();
          return draft(snapshotId, { state: {} });
        });
        await refused(write, 'ALREADY_EXISTS');
      }
      expect(texts((await store.getSnapshot(scope, { snapshotId }))?.state)).toEqual(['hi']);
    });

    test('nothing that a caller changes later reaches what is stored', async () => {
      const { store, scope, id } = useKit();
      const snapshotId = id();
      const custom = { list: [1] };
      await store.saveSnapshot(scope, snapshotId, () => draft(snapshotId, { state: { custom } }));
      custom.list.push(2);
      const read = await store.getSnapshot(scope, { snapshotId });
      expect(read?.state?.custom).toEqual({ list: [1] });
      read?.state?.messages?.push(say('user', 'mine'));
      expect((await store.getSnapshot(scope, { snapshotId }))?.state?.messages).toEqual([]);
    });
  });
}
