import { describe, expect, test } from 'vitest';
import { emptyState, hashState } from '../../session/session-state.ts';
import type { Lookup } from '../../store/contract/store.ts';
import { type Kit, refused, type UseKit } from './kit.ts';

/** Values that an untyped caller may pass as an id. */
const notIds: readonly unknown[] = [undefined, null, 7, true, {}, ['a'], Symbol('s'), 10n];

type Call = (id: never) => Promise<unknown>;

/** Every method that takes an id, called with an invalid one. */
function callsWith({ store, scope, id, claim }: Kit): Record<string, Call | undefined> {
  const { runs, abort, events, timeline, maintenance } = store;
  const write = { state: emptyState, stateHash: hashState(emptyState) };
  const place = { ...write, inputsDone: 0, midTurn: false };
  const end = { ...write, turnIndex: 0, event: 'turnEnd', status: 'succeeded', end: true } as const;
  const ref = { runId: id(), attempt: 1 };
  const run = (runId: never) => ({ runId, attempt: 1 });
  const target = { sessionId: 'f', snapshotId: id() };
  const detached = { mode: 'detached', inputs: [] } as const;
  const taking = { agents: [scope.agent], worker: 'w', ttl: 1000, limit: 1 };
  return {
    'getSnapshot agent': (agent) => store.getSnapshot({ agent }, { sessionId: 's' }),
    'getSnapshot snapshotId': (snapshotId) => store.getSnapshot(scope, { snapshotId }),
    'getSnapshot sessionId': (sessionId) => store.getSnapshot(scope, { sessionId }),
    'getSnapshot lookup': (lookup) => store.getSnapshot(scope, lookup),
    saveSnapshot: (snapshotId) => store.saveSnapshot(scope, snapshotId, () => undefined),
    'claim session': runs && ((sessionId) => claim(sessionId)),
    'claim run': runs && ((runId) => claim('s', { runId })),
    'claim from': runs && ((snapshotId) => claim('s', { from: { snapshotId } })),
    'load snapshotId': runs && ((snapshotId) => runs.load(scope, { snapshotId })),
    'load sessionId': runs && ((sessionId) => runs.load(scope, { sessionId })),
    heartbeat: runs && ((runId) => runs.heartbeat(run(runId))),
    detach: runs && ((runId) => runs.detach(run(runId), detached)),
    checkpoint: runs && ((runId) => runs.checkpoint(run(runId), place)),
    commit: runs && ((runId) => runs.commit(run(runId), { ...end, snapshotId: id() })),
    'commit snapshot': runs && ((snapshotId) => runs.commit(ref, { ...end, snapshotId })),
    release: runs && ((runId) => runs.release(run(runId))),
    handOver: runs && ((runId) => runs.handOver(run(runId))),
    attachPartial: runs && ((runId) => runs.attachPartial(run(runId), write)),
    getStep: runs && ((runId) => runs.getStep(run(runId), 'k')),
    saveStep: runs && ((runId) => runs.saveStep(run(runId), 'k', 1)),
    takeOver: runs && ((runId) => runs.takeOver({ ...taking, runIds: [runId] })),
    getRun: runs && ((runId) => runs.getRun(scope, runId)),
    abortSnapshot: abort && ((snapshotId) => abort.abortSnapshot(scope, snapshotId)),
    onChange: abort && (async (snapshotId) => abort.onChange(snapshotId, () => {})),
    append: events && ((runId) => events.append(run(runId), [])),
    read: events && ((runId) => events.read(scope, runId, { limit: 1 })),
    onEvents: events && (async (runId) => events.onEvents(runId, () => {})),
    getSession: timeline && ((sessionId) => timeline.getSession(scope, sessionId)),
    updateSession: timeline && ((sessionId) => timeline.updateSession(scope, sessionId, {})),
    deleteSession: timeline && ((sessionId) => timeline.deleteSession(scope, sessionId)),
    listSnapshots: timeline && ((sessionId) => timeline.listSnapshots(scope, sessionId)),
    restore: timeline && ((snapshotId) => timeline.restore(scope, snapshotId)),
    fork: timeline && ((snapshotId) => timeline.fork(scope, snapshotId, target)),
    'fork session':
      timeline && ((sessionId) => timeline.fork(scope, id(), { ...target, sessionId })),
    'fork snapshot':
      timeline && ((snapshotId) => timeline.fork(scope, id(), { ...target, snapshotId })),
    label: timeline && ((snapshotId) => timeline.label(scope, snapshotId, 'l')),
    eraseOwner: maintenance && ((owner) => maintenance.eraseOwner(owner)),
    exportSession: maintenance && ((sessionId) => maintenance.exportSession(scope, sessionId)),
  };
}

/** Ids that are not strings, and lookups with two ids. */
export function idTypeContract(useKit: UseKit): void {
  describe('ids', () => {
    test('S166: an id that is not a string is INVALID_ARGUMENT in every call, and changes nothing', async () => {
      const kit = useKit();
      const { turn, store, scope } = kit;
      await turn('s', { text: 'kept' });
      for (const [name, call] of Object.entries(callsWith(kit))) {
        if (call === undefined) continue;
        for (const bad of notIds) {
          await expect(call(bad as never), `${name}(${String(bad)})`).rejects.toMatchObject({
            name: 'WaymarkError',
            status: 'INVALID_ARGUMENT',
          });
        }
      }
      expect(await store.getSnapshot(scope, { sessionId: 's' })).toBeDefined();
    });

    test('S166: an owner that is not a string is refused, and sessions without an owner stay', async () => {
      const { turn, store, scope } = useKit();
      await turn('s');
      for (const bad of notIds.filter((each) => each !== undefined)) {
        const owned = { ...scope, owner: bad as string };
        await refused(store.getSnapshot(owned, { sessionId: 's' }), 'INVALID_ARGUMENT');
      }
      for (const bad of notIds) {
        await refused(
          store.maintenance?.eraseOwner(bad as string) ?? expect.fail('no maintenance'),
          'INVALID_ARGUMENT',
        );
      }
      expect(await store.getSnapshot(scope, { sessionId: 's' })).toBeDefined();
    });

    test('S165: a lookup with both ids is the snapshot, if it is of that session', async () => {
      const { turn, claim, store, scope, runs, id } = useKit();
      const first = (await turn('s', { text: 'one' })).snapshot;
      await turn('s', { text: 'two' });
      const other = (await turn('other')).snapshot;
      const held = await claim('s');
      const found = async (lookup: object): Promise<readonly (string | undefined)[]> => [
        (await store.getSnapshot(scope, lookup as Lookup))?.snapshotId,
        (await runs.load(scope, lookup as Lookup))?.snapshotId,
      ];
      const both = (snapshotId: string | undefined) => [snapshotId, snapshotId];
      const { snapshotId } = first;
      expect(await found({ snapshotId, sessionId: 's' })).toEqual(both(snapshotId));
      expect(await found({ sessionId: 's', snapshotId })).toEqual(both(snapshotId));
      expect(await found({ snapshotId, sessionId: undefined })).toEqual(both(snapshotId));
      expect(await found({ snapshotId: undefined, sessionId: 'other' })).toEqual(
        both(other.snapshotId),
      );
      expect(await found({ snapshotId: held.runId, sessionId: 's' })).toEqual(both(held.runId));
      for (const sessionId of ['other', 'unknown', '', 'x'.repeat(1000)]) {
        expect(await found({ snapshotId, sessionId })).toEqual(both(undefined));
        expect(await found({ snapshotId: held.runId, sessionId })).toEqual(both(undefined));
      }
      expect(await found({ snapshotId: id(), sessionId: 's' })).toEqual(both(undefined));
      await runs.release(held);
      await refused(claim('other', { from: { snapshotId } }), 'NOT_FOUND');
      for (const bad of [{}, { snapshotId: undefined }, { snapshotId: null, sessionId: 's' }]) {
        await refused(found(bad), 'INVALID_ARGUMENT');
      }
      await refused(found({ snapshotId, sessionId: 7 }), 'INVALID_ARGUMENT');
    });
  });
}
