import { describe, expect, test } from 'vitest';
import { hashState } from '../../session/session-state.ts';
import { exchange, refused, say, type UseKit } from './kit.ts';

/** Data after the store was reopened, by this process or another. */
export function durabilityContract(useKit: UseKit): void {
  describe('durability', () => {
    test('S167: a store that is closed twice, or at once, is closed', async () => {
      const { turn, store } = useKit();
      await turn('s');
      await Promise.all([store.close?.(), store.close?.()]);
      await store.close?.();
    });

    test('sessions, snapshots, heads and labels', async () => {
      const kit = useKit();
      const { turn, timeline, scope, store } = kit;
      const first = (await turn('s', { text: 'one' })).snapshot;
      const second = (await turn('s', { text: 'two' })).snapshot;
      await turn('s', { status: 'failed', error: { status: 'INTERNAL', message: 'x' } });
      await timeline.label(scope, second.snapshotId, 'here');
      await timeline.updateSession(scope, 's', { title: 'Title', metadata: { a: 1 } });
      await timeline.restore(scope, first.snapshotId);
      await turn('u', { listed: false });
      const options = { includeOrphaned: true };
      const listed = await timeline.listSnapshots(scope, 's', options);
      const sessions = await timeline.listSessions(scope);
      const read = await store.getSnapshot(scope, { snapshotId: second.snapshotId });
      const latest = await store.getSnapshot(scope, { sessionId: 'u' });
      const after = await kit.reopen();
      expect(await after.timeline.listSnapshots(scope, 's', options)).toEqual(listed);
      expect(await after.timeline.listSessions(scope)).toEqual(sessions);
      const { snapshotId } = second;
      expect(await after.store.getSnapshot(scope, { snapshotId })).toEqual(read);
      expect(await after.store.getSnapshot(scope, { sessionId: 'u' })).toEqual(latest);
      expect((await after.turn('s')).snapshot).toMatchObject({ index: 3, turnIndex: 1 });
      expect(await after.maintenance.verify()).toEqual([]);
    });

    test('a pruned index is not used again', async () => {
      const kit = useKit();
      for (let n = 0; n < 3; n++) await kit.turn('s');
      const [root] = (await kit.timeline.listSnapshots(kit.scope, 's')).items;
      await kit.timeline.restore(kit.scope, root?.snapshotId ?? '');
      await kit.maintenance.prune({ keepLast: 0 }, kit.scope);
      const after = await kit.reopen();
      expect((await after.turn('s')).snapshot.index).toBe(3);
    });

    test('an open run: its claim, inputs, checkpoint, steps and events', async () => {
      const kit = useKit();
      const { turn, claim, runs, scope, events } = kit;
      const { base } = await turn('s', { text: 'good' });
      const inputs = [{ message: say('user', 'one') }];
      const held = await claim('s', { mode: 'accepted', inputs, context: { user: 'u' } });
      const state = exchange(base.state, 'half');
      const write = { base, state, stateHash: hashState(state) };
      await runs.checkpoint(held, { ...write, inputsDone: 0, midTurn: true });
      await runs.saveStep(held, 'k', { done: true });
      await events.append(held, [{ attempt: 1, seq: 0, chunk: { status: 'half' } }]);
      const after = await kit.reopen();
      expect(await after.runs.getRun(scope, held.runId)).toMatchObject({
        inputs,
        context: { user: 'u' },
        attempt: 1,
        midTurn: true,
      });
      await refused(after.claim('s'), 'ABORTED', { running: held.runId });
      expect(await after.runs.getStep(held, 'k')).toEqual({ value: { done: true } });
      const read = await after.events.read(scope, held.runId, { limit: 10 });
      expect(read?.events).toHaveLength(1);
      await after.runs.handOver(held);
      const request = { agents: [scope.agent], worker: 'w', ttl: 60_000, limit: 1 };
      const [taken] = await after.runs.takeOver(request);
      expect(taken?.checkpoint && hashState(taken.checkpoint)).toBe(hashState(state));
      expect(taken?.base?.snapshotId).toBe(base.snapshotId);
      if (taken) await after.commit(taken.claim, { state: exchange(state, 'end') });
      expect(await after.textsOf({ sessionId: 's' })).toHaveLength(6);
    });
  });
}
