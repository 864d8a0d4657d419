import { describe, expect, test } from 'vitest';
import { sha256 } from '../../core/json/hash.ts';
import { type RequestMark, requestTtl } from '../../store/contract/store.ts';
import { refused, type UseKit } from './kit.ts';

/** Request ids: a run is claimed once per key, and its result is kept. */
export function requestContract(useKit: UseKit): void {
  const mark = (name: string, digest = 'digest'): RequestMark => ({
    // Tests may share a database.
    key: sha256(`${expect.getState().currentTestName} ${name}`),
    digest: sha256(digest),
  });

  describe('request ids', () => {
    test('S210: a second claim under a key is refused while the run is open, in any session, and says which run', async () => {
      const { claim, runs } = useKit();
      const requests = [mark('a')];
      const held = await claim('s', { requests });
      const details = { request: { runId: held.runId, sessionId: 's' } };
      await refused(claim('s', { requests }), 'ALREADY_EXISTS', details);
      await refused(claim('other', { requests }), 'ALREADY_EXISTS', details);
      expect(await runs.getRequest(mark('a').key)).toEqual(details.request);
      expect(await runs.getRequest(mark('b').key)).toBeUndefined();
      await claim('other', { requests: [mark('b')] });
    });

    test('S210: the receipt of a run is kept under its key, and the key stays taken', async () => {
      const { claim, commit, runs, turn, id } = useKit();
      const requests = [mark('a')];
      const held = await claim('s', { requests });
      const receipt = { finishReason: 'stop', text: 'answer' };
      await commit(held, { requests: { keys: [mark('a').key], receipt } });
      await turn('s');
      const known = { runId: held.runId, sessionId: 's' };
      const other = { keys: [mark('a').key], receipt: 'another' };
      await runs.replaceReceipt(id(), other);
      expect(await runs.getRequest(mark('a').key)).toEqual({ ...known, receipt });
      await refused(claim('s', { requests }), 'ALREADY_EXISTS', { request: known });
      await runs.replaceReceipt(held.runId, other);
      expect(await runs.getRequest(mark('a').key)).toEqual({ ...known, receipt: 'another' });
    });

    test('S210: the receipt is kept for failed, unlisted and released runs, too', async () => {
      const { claim, commit, runs } = useKit();
      const failed = await claim('s', { requests: [mark('failed')] });
      const keys = (name: string) => ({ keys: [mark(name).key], receipt: { name } });
      await commit(failed, {
        status: 'failed',
        finishReason: 'failed',
        requests: keys('failed'),
      });
      const unlisted = await claim('s', { requests: [mark('unlisted')] });
      await commit(unlisted, { listed: false, requests: keys('unlisted') });
      const next = await claim('s');
      await commit(next, { listed: false });
      const released = await claim('s', { requests: [mark('released')] });
      await runs.release(released, undefined, keys('released'));
      for (const name of ['failed', 'unlisted', 'released']) {
        expect((await runs.getRequest(mark(name).key))?.receipt, name).toEqual({ name });
        await refused(claim('s', { requests: [mark(name)] }), 'ALREADY_EXISTS');
      }
    });

    test('S211: another input under the same key is INVALID_ARGUMENT, open or ended', async () => {
      const { claim, commit } = useKit();
      const held = await claim('s', { requests: [mark('a')] });
      const other = { requests: [mark('a', 'another digest')] };
      await refused(claim('s', other), 'INVALID_ARGUMENT', { snapshotId: held.runId });
      await commit(held, { requests: { keys: [mark('a').key], receipt: {} } });
      await refused(claim('s', other), 'INVALID_ARGUMENT', { snapshotId: held.runId });
    });

    test('S212: a key whose run was refused is free again, for any input', async () => {
      const { claim, runs, commit } = useKit();
      await claim('busy');
      await refused(claim('busy', { requests: [mark('a')] }), 'ABORTED');
      const held = await claim('s', { requests: [mark('a')] });
      await runs.release(held);
      const again = await claim('s', { requests: [mark('a', 'another digest')] });
      await commit(again, { requests: { keys: [mark('a').key], receipt: { done: true } } });
      expect(await runs.getRequest(mark('a').key)).toMatchObject({
        runId: again.runId,
        receipt: { done: true },
      });
    });

    test('S213: the key of an attached run whose process died passes to the next one, and the dead run can save nothing', async () => {
      const { claim, commit, expire, ttl, runs } = useKit();
      const dead = await claim('s', { requests: [mark('a')], ttl });
      await expire();
      const again = await claim('other', { requests: [mark('a')] });
      await refused(commit(dead), 'ABORTED');
      await commit(again, { requests: { keys: [mark('a').key], receipt: 1 } });
      expect(await runs.getRequest(mark('a').key)).toMatchObject({ runId: again.runId });
    });

    test('S213: the key of an accepted run stays taken when it has expired, and follows its next attempt', async () => {
      const { claim, commit, expire, ttl, runs, scope } = useKit();
      const requests = [mark('a')];
      const held = await claim('s', { requests, ttl, mode: 'accepted' });
      await expire();
      await refused(claim('other', { requests }), 'ALREADY_EXISTS');
      const [taken] = await runs.takeOver({
        agents: [scope.agent],
        worker: 'another',
        ttl: 60_000,
        limit: 1,
      });
      await commit(taken?.claim ?? held, { requests: { keys: [mark('a').key], receipt: 'done' } });
      expect(await runs.getRequest(mark('a').key)).toEqual({
        runId: held.runId,
        sessionId: 's',
        receipt: 'done',
      });
    });

    test('S210: a run that was aborted from outside keeps its key', async () => {
      const { claim, runs, abort, scope, store } = useKit();
      if (store.abort === undefined) return;
      const requests = [mark('a')];
      const held = await claim('s', { requests });
      await runs.detach(held, { mode: 'detached', inputs: [] });
      expect(await abort.abortSnapshot(scope, held.runId)).toBe('aborted');
      expect(await runs.getRequest(mark('a').key)).toEqual({ runId: held.runId, sessionId: 's' });
      await refused(claim('s', { requests }), 'ALREADY_EXISTS');
    });

    test('S210: of many claims under one key exactly one gets it', async () => {
      const { claim } = useKit();
      const requests = [mark('a')];
      const results = await Promise.allSettled(
        Array.from({ length: 10 }, (_, no) => claim(`s${no}`, { requests })),
      );
      expect(results.filter((each) => each.status === 'fulfilled')).toHaveLength(1);
      for (const each of results) {
        if (each.status === 'rejected')
          expect(each.reason).toMatchObject({ status: 'ALREADY_EXISTS' });
      }
    });

    test('S210: several keys are claimed with one run', async () => {
      const { claim, commit, runs } = useKit();
      const held = await claim('s', { requests: [mark('a'), mark('b')] });
      await refused(claim('other', { requests: [mark('b')] }), 'ALREADY_EXISTS');
      const keys = [mark('a').key, mark('b').key];
      await commit(held, { requests: { keys, receipt: 'both' } });
      for (const key of keys) {
        expect(await runs.getRequest(key)).toMatchObject({ runId: held.runId, receipt: 'both' });
      }
    });

    test('S214: keys are forgotten with their session, and a day after the end of their run', async () => {
      const { claim, commit, runs, timeline, scope, opened, pass, maintenance, store } = useKit();
      if (store.timeline === undefined || store.maintenance === undefined) return;
      const done = async (name: string, session: string): Promise<void> => {
        const held = await claim(session, { requests: [mark(name)] });
        await commit(held, { requests: { keys: [mark(name).key], receipt: { secret: 'plum' } } });
      };
      await done('a', 'erased');
      await timeline.deleteSession(scope, 'erased');
      expect(await runs.getRequest(mark('a').key)).toBeUndefined();
      await done('b', 's');
      if (opened.advance === undefined) return;
      await pass(requestTtl - 1000);
      expect(await runs.getRequest(mark('b').key)).toMatchObject({ receipt: { secret: 'plum' } });
      await pass(2000);
      await maintenance.prune({});
      expect(await runs.getRequest(mark('b').key)).toBeUndefined();
      if (opened.dump !== undefined) expect(await opened.dump()).not.toContain('plum');
      await claim('s', { requests: [mark('b', 'another digest')] });
    });

    test('S210: keys and receipts are there when the store is opened again', async () => {
      const { claim, commit, opened, reopen } = useKit();
      if (opened.reopen === undefined) return;
      const held = await claim('s', { requests: [mark('a')] });
      await commit(held, { requests: { keys: [mark('a').key], receipt: { done: true } } });
      const open = await claim('s', { requests: [mark('open')], mode: 'accepted' });
      const later = await reopen();
      expect(await later.runs.getRequest(mark('a').key)).toEqual({
        runId: held.runId,
        sessionId: 's',
        receipt: { done: true },
      });
      await refused(later.claim('t', { requests: [mark('open')] }), 'ALREADY_EXISTS', {
        request: { runId: open.runId, sessionId: 's' },
      });
    });
  });
}
