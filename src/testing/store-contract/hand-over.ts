import { describe, expect, test } from 'vitest';
import type { Claim, RunRequest } from '../../store/contract/store.ts';
import type { UseKit } from './kit.ts';
import { plain, refused, say, texts } from './kit.ts';

const request: RunRequest = {
  mode: 'detached',
  init: {},
  inputs: [{ message: say('user', 'later') }],
  context: {},
};
const away = { worker: 'queue/' };

/** Runs that are enqueued when they are detached, and claimed by the worker that dequeues them. */
export function handOverContract(useKit: UseKit): void {
  describe('handing over', () => {
    test('runs of one moment are handed over, wait, and are taken up together', async () => {
      const { turn, claim, commit, runs, store, scope, expire, opened } = useKit();
      await turn('s0', { text: 'before' });
      const held: Claim[] = [];
      for (let n = 0; n < 6; n++) held.push(await claim(`s${n}`));
      const lost = { ...(await claim('lost')), attempt: 7 };
      const [refusal, ...sent] = await Promise.all([
        refused(runs.detach(lost, request, away), 'ABORTED'),
        ...held.map((each) => runs.detach(each, request, away)),
      ]);
      expect(refusal).toBeUndefined();
      for (const snapshot of sent) {
        expect(snapshot).toMatchObject({ status: 'pending', event: 'detach', orphaned: false });
        const { snapshotId = '' } = snapshot ?? {};
        const read = await store.getSnapshot(scope, { snapshotId });
        expect(read).toMatchObject({ ...snapshot });
      }
      // Regardless of how long they wait.
      if (opened.advance !== undefined) await expire();
      const runIds = held.map(({ runId }) => runId);
      const who = { agents: [scope.agent], worker: 'w', ttl: 60_000, limit: 1 };
      expect(await runs.takeOver(who)).toEqual([]);
      expect(await runs.takeOver({ ...who, runIds })).toEqual([]);
      expect(await runs.takeOver({ ...who, runIds, waitingAs: 'other/' })).toEqual([]);
      const both = await Promise.all([
        runs.takeOver({ ...who, runIds, waitingAs: away.worker }),
        runs.takeOver({ ...who, runIds, waitingAs: away.worker }),
      ]);
      const taken = both.flat();
      expect(taken.map(({ run }) => run.runId).toSorted()).toEqual(runIds.toSorted());
      for (const { run, claim: own, base } of taken) {
        expect(run).toMatchObject({ mode: 'detached', attempt: 2, worker: 'w' });
        expect(run.inputs).toEqual(request.inputs);
        expect(texts(base && plain(base.state))).toEqual(
          run.sessionId === 's0' ? ['before', 'BEFORE'] : [],
        );
        const event = 'detach';
        const { snapshot } = await commit(own, { event, text: 'after', ...(base && { base }) });
        const before = sent.find((each) => each?.snapshotId === run.runId);
        const { index, parentId, createdAt } = before ?? {};
        expect(snapshot).toMatchObject({ index, createdAt, status: 'succeeded', event });
        expect(snapshot.parentId).toBe(parentId);
        const read = await store.getSnapshot(scope, { sessionId: run.sessionId });
        expect(read).toMatchObject({ snapshotId: run.runId, stateHash: snapshot.stateHash });
        expect(texts(read?.state).slice(-2)).toEqual(['after', 'AFTER']);
      }
      const { snapshot } = await turn('s0', { text: 'again' });
      expect(snapshot).toMatchObject({ index: 2, turnIndex: 2, parentId: held[0]?.runId });
    });
  });
}
