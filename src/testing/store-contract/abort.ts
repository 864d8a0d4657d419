import { describe, expect, test } from 'vitest';
import { hashState } from '../../session/session-state.ts';
import type { Claim } from '../../store/contract/store.ts';
import { exchange, heard, type Kit, refused, texts, type UseKit } from './kit.ts';

/** A detached run on a session. */
async function detached({ claim, runs }: Kit, sessionId: string, ttl = 60_000): Promise<Claim> {
  const held = await claim(sessionId, { ttl });
  await runs.detach(held, { mode: 'detached', inputs: [] });
  return held;
}

/** Aborting runs from any process. */
export function abortContract(useKit: UseKit): void {
  describe('abort', () => {
    test('an attached or accepted run is asked to stop, and ends by itself', async () => {
      const { claim, abort, runs, scope, commit, store } = useKit();
      for (const mode of ['attached', 'accepted'] as const) {
        const held = await claim(mode, { mode });
        expect(await abort.abortSnapshot(scope, held.runId)).toBe('pending');
        expect(await runs.heartbeat(held)).toBe('stop');
        expect(await runs.getRun(scope, held.runId)).toMatchObject({ stopping: true });
        const { snapshot } = await commit(held, { finishReason: 'aborted' });
        expect(snapshot).toMatchObject({ status: 'succeeded', finishReason: 'aborted' });
        expect(await abort.abortSnapshot(scope, held.runId)).toBe('succeeded');
        const head = await store.getSnapshot(scope, { sessionId: mode });
        expect(head?.snapshotId).toBe(held.runId);
      }
    });

    test('a detached run is aborted in one step, and its session is free', async () => {
      const kit = useKit();
      const { turn, abort, runs, scope, commit, store, claim } = kit;
      const good = (await turn('s', { text: 'good' })).snapshot;
      const held = await detached(kit, 's');
      expect(await abort.abortSnapshot(scope, held.runId)).toBe('aborted');
      expect(await runs.heartbeat(held)).toBe('lost');
      await refused(commit(held), 'ABORTED');
      const read = await store.getSnapshot(scope, { snapshotId: held.runId });
      expect(read).toMatchObject({
        status: 'aborted',
        finishReason: 'aborted',
        index: 1,
        parentId: good.snapshotId,
        orphaned: false,
      });
      expect(texts(read?.state)).toEqual(['good', 'GOOD']);
      expect(await runs.getRun(scope, held.runId)).toBeUndefined();
      expect(await abort.abortSnapshot(scope, held.runId)).toBe('aborted');
      const next = await claim('s');
      expect(next.parent?.snapshotId).toBe(good.snapshotId);
      await runs.release(next);
      await refused(claim('s', { from: { snapshotId: held.runId } }), 'FAILED_PRECONDITION');
    });

    test('an aborted run keeps the state of its last checkpoint', async () => {
      const kit = useKit();
      const { turn, abort, runs, scope, store } = kit;
      const { base } = await turn('s', { text: 'good' });
      const held = await detached(kit, 's');
      const state = exchange(base.state, 'half');
      const stateHash = hashState(state);
      await runs.checkpoint(held, { base, state, stateHash, inputsDone: 0, midTurn: true });
      await abort.abortSnapshot(scope, held.runId);
      const read = await store.getSnapshot(scope, { snapshotId: held.runId });
      expect(read).toMatchObject({ status: 'aborted', stateHash });
      expect(texts(read?.state)).toEqual(['good', 'GOOD', 'half', 'HALF']);
    });

    test('its worker puts the partial state on it, once', async () => {
      const kit = useKit();
      const { turn, abort, runs, scope, textsOf } = kit;
      const { base } = await turn('s', { text: 'good' });
      const held = await detached(kit, 's');
      const partial = (text: string) => {
        const state = exchange(base.state, text);
        return { base, state, stateHash: hashState(state) };
      };
      const snapshotId = held.runId;
      await runs.attachPartial(held, partial('too early'));
      expect(await textsOf({ snapshotId })).toEqual(['good', 'GOOD']);
      await abort.abortSnapshot(scope, snapshotId);
      await runs.attachPartial({ ...held, attempt: 2 }, partial('another attempt'));
      expect(await textsOf({ snapshotId })).toEqual(['good', 'GOOD']);
      await runs.attachPartial(held, partial('partial'));
      await runs.attachPartial(held, partial('again'));
      expect(await textsOf({ snapshotId })).toEqual(['good', 'GOOD', 'partial', 'PARTIAL']);
      expect(await textsOf({ sessionId: 's' })).toEqual(['good', 'GOOD']);
      const done = (await turn('s')).snapshot.snapshotId;
      await runs.attachPartial({ runId: done, attempt: 1 }, partial('not aborted'));
      expect(await textsOf({ snapshotId: done })).toEqual(['good', 'GOOD', 'hello', 'HELLO']);
    });

    test('expired runs: a detached or accepted one is aborted, an attached one only asked', async () => {
      const kit = useKit();
      const { claim, abort, expire, ttl, scope, store, turn } = kit;
      await turn('accepted');
      const accepted = await claim('accepted', { mode: 'accepted', ttl });
      const attached = await claim('attached', { ttl });
      const gone = await detached(kit, 'detached', ttl);
      await expire();
      expect(await abort.abortSnapshot(scope, attached.runId)).toBe('expired');
      expect(await abort.abortSnapshot(scope, gone.runId)).toBe('aborted');
      expect(await abort.abortSnapshot(scope, accepted.runId)).toBe('aborted');
      expect(await store.getSnapshot(scope, { snapshotId: accepted.runId })).toMatchObject({
        status: 'aborted',
        index: 1,
      });
      for (const sessionId of ['accepted', 'attached', 'detached']) await claim(sessionId);
      expect(await abort.abortSnapshot(scope, attached.runId)).toBe('expired');
    });

    test('an unknown id, also another owner’s, is undefined', async () => {
      const kit = useKit();
      const { abort, scope, id, runs } = kit;
      const held = await detached(kit, 's');
      expect(await abort.abortSnapshot(scope, id())).toBeUndefined();
      expect(await abort.abortSnapshot(scope, '../../etc')).toBeUndefined();
      const other = { ...scope, owner: 'other' };
      expect(await abort.abortSnapshot(other, held.runId)).toBeUndefined();
      expect(await runs.heartbeat(held)).toBe('held');
    });

    test('whichever of finish and abort is written first stands', async () => {
      const kit = useKit();
      const { abort, commit, scope, store } = kit;
      for (let n = 0; n < 20; n++) {
        const held = await detached(kit, `s${n}`);
        const finish = (): Promise<unknown> => commit(held);
        const stop = (): Promise<unknown> => abort.abortSnapshot(scope, held.runId);
        const [first, second] = n % 2 ? [finish, stop] : [stop, finish];
        const results = await Promise.allSettled([first(), second()]);
        const [finished, stopped] = n % 2 ? results : results.toReversed();
        const read = await store.getSnapshot(scope, { snapshotId: held.runId });
        const status = finished?.status === 'fulfilled' ? 'succeeded' : 'aborted';
        expect(read?.status).toBe(status);
        expect(stopped).toEqual({ status: 'fulfilled', value: status });
        const head = await store.getSnapshot(scope, { sessionId: `s${n}` });
        expect(head?.snapshotId).toBe(status === 'succeeded' ? held.runId : undefined);
      }
    });

    test('of taking over, finishing and aborting an expired run the outcome is one', async () => {
      const kit = useKit();
      const { abort, commit, scope, store, runs, expire, ttl } = kit;
      const held: Claim[] = [];
      for (let n = 0; n < 10; n++) held.push(await detached(kit, `s${n}`, ttl));
      await expire();
      const takeOver = { agents: [scope.agent], worker: 'w', ttl: 60_000, limit: 1 };
      for (const each of held) {
        const [taken, finished, stopped] = await Promise.allSettled([
          runs.takeOver({ ...takeOver, runIds: [each.runId] }),
          commit(each),
          abort.abortSnapshot(scope, each.runId),
        ]);
        const read = await store.getSnapshot(scope, { snapshotId: each.runId });
        expect(read?.status).toBe(finished.status === 'fulfilled' ? 'succeeded' : 'aborted');
        expect(stopped).toMatchObject({ status: 'fulfilled', value: read?.status });
        expect(taken.status).toBe('fulfilled');
        expect(await runs.getRun(scope, each.runId)).toBeUndefined();
      }
    });

    test('a listener is notified of an abort and of the end, until it unsubscribes', async () => {
      const { abort, claim, commit, scope } = useKit();
      const held = await claim('s');
      const changes = heard((listener) => abort.onChange(held.runId, listener));
      const left = heard((listener) => abort.onChange(held.runId, listener));
      left.leave();
      await abort.abortSnapshot(scope, held.runId);
      await changes.next();
      await commit(held);
      await changes.next();
      expect(left.count()).toBe(0);
      changes.leave();
    });
  });
}
