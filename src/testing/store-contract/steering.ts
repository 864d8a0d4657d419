import { describe, expect, type TestContext, test } from 'vitest';
import {
  inboxLimits,
  type RunRef,
  type RunSupport,
  type SteeringMessage,
} from '../../store/contract/store.ts';
import { heard, type Kit, refused, say, type UseKit } from './kit.ts';

/** The inbox of a store that has one; skips the test for others. */
function inboxOf(
  { runs, scope }: Kit,
  { skip }: TestContext,
): {
  readonly steer: (runId: string, id: string, text?: string) => Promise<boolean>;
  readonly read: (run: RunRef) => Promise<readonly SteeringMessage[]>;
} {
  const { steer, readInbox }: RunSupport = runs;
  if (steer === undefined || readInbox === undefined) return skip();
  return {
    steer: (runId, id, text = id) => steer(scope, runId, { id, message: say('user', text) }),
    read: (run) => readInbox(run),
  };
}

const ids = (inbox: readonly SteeringMessage[]): readonly string[] => inbox.map(({ id }) => id);

/** The inbox of a running turn. */
export function steeringContract(useKit: UseKit): void {
  describe('inbox of a run', () => {
    test('keeps messages in order, each id once, and tells the worker', async (context) => {
      const kit = useKit();
      const { claim, runs, abort, scope } = kit;
      const inbox = inboxOf(kit, context);
      const held = await claim('s');
      expect(await runs.heartbeat(held)).toBe('held');
      const told = heard((listener) => abort.onChange(held.runId, listener));
      expect(await inbox.steer(held.runId, 'a')).toBe(true);
      await told.next();
      told.leave();
      expect(await inbox.steer(held.runId, 'b')).toBe(true);
      expect(await inbox.steer(held.runId, 'a')).toBe(true);
      await refused(inbox.steer(held.runId, 'a', 'another text'), 'INVALID_ARGUMENT');
      expect(await inbox.read(held)).toEqual([
        { id: 'a', message: say('user', 'a') },
        { id: 'b', message: say('user', 'b') },
      ]);
      expect(await runs.heartbeat(held)).toBe('steered');
      expect(await runs.getRun(scope, held.runId)).toMatchObject({ steered: true });
    });

    test('a turn ends only with all of it, unless it says that it drops the rest', async (context) => {
      const kit = useKit();
      const { claim, commit, runs, scope } = kit;
      const inbox = inboxOf(kit, context);
      const held = await claim('s');
      await inbox.steer(held.runId, 'a');
      await inbox.steer(held.runId, 'b');
      await refused(commit(held, { steered: 1 }), 'FAILED_PRECONDITION', { inbox: 2 });
      expect(await runs.heartbeat(held)).toBe('steered');
      await commit(held, { steered: 2 });
      expect(await inbox.steer(held.runId, 'c')).toBe(false);
      expect(await runs.getRun(scope, held.runId)).toBeUndefined();
      const next = await claim('s');
      expect(await inbox.read(next)).toEqual([]);
      await inbox.steer(next.runId, 'd');
      await commit(next, { finishReason: 'aborted' });
      expect(await inbox.steer(next.runId, 'd')).toBe(false);
    });

    test('is closed for unknown runs, other owners and runs that are being stopped', async (context) => {
      const kit = useKit();
      const { claim, id, abort, scope, runs } = kit;
      const inbox = inboxOf(kit, context);
      const held = await claim('s');
      expect(await inbox.steer(id(), 'a')).toBe(false);
      expect(await inbox.steer('no such run', 'a')).toBe(false);
      const message = { id: 'a', message: say('user', 'a') };
      expect(await runs.steer?.({ ...scope, owner: 'other' }, held.runId, message)).toBe(false);
      await abort.abortSnapshot(scope, held.runId);
      expect(await inbox.steer(held.runId, 'a')).toBe(false);
    });

    test('is bounded in number and size', async (context) => {
      const kit = useKit();
      const inbox = inboxOf(kit, context);
      const held = await kit.claim('s');
      const long = 'x'.repeat(inboxLimits.length);
      await refused(inbox.steer(held.runId, 'long', long), 'RESOURCE_EXHAUSTED');
      for (let at = 0; at < inboxLimits.messages; at++) await inbox.steer(held.runId, `${at}`);
      await refused(inbox.steer(held.runId, 'one more'), 'RESOURCE_EXHAUSTED');
      expect(await inbox.steer(held.runId, '0')).toBe(true);
      expect(await inbox.read(held)).toHaveLength(inboxLimits.messages);
    });

    test('stays for the worker that takes the run over', async (context) => {
      const kit = useKit();
      const { claim, runs, scope, ttl, expire } = kit;
      const inbox = inboxOf(kit, context);
      const held = await claim('s', { mode: 'accepted', ttl });
      await inbox.steer(held.runId, 'a');
      await expire();
      expect(await inbox.steer(held.runId, 'b')).toBe(true);
      const [taken] = await runs.takeOver({
        agents: [scope.agent],
        worker: 'another',
        ttl: 60_000,
        limit: 10,
      });
      expect(taken?.run).toMatchObject({ runId: held.runId, steered: true });
      await refused(inbox.read(held), 'ABORTED');
      const next = { runId: held.runId, attempt: taken?.claim.attempt ?? 0 };
      expect(ids(await inbox.read(next))).toEqual(['a', 'b']);
      await inbox.steer(held.runId, 'c');
      expect(ids(await inbox.read(next))).toEqual(['a', 'b', 'c']);
    });

    test('what a run with keepInbox has not taken stays for the next one, which takes it once', async (context) => {
      const kit = useKit();
      const { claim, commit, runs, scope } = kit;
      const { readLeftInbox } = runs;
      const inbox = inboxOf(kit, context);
      if (readLeftInbox === undefined) return context.skip();
      const left = async (): Promise<readonly string[]> => ids(await readLeftInbox(scope, 's'));
      const keepInbox = true;
      const first = await claim('s', { keepInbox });
      expect(first.steered).toBeUndefined();
      for (const id of ['a', 'b', 'c']) await inbox.steer(first.runId, id);
      await commit(first, { finishReason: 'aborted', steered: 1, leavesInbox: true });
      expect(await left()).toEqual(['b', 'c']);
      const second = await claim('s', { keepInbox });
      expect(second.steered).toBe(true);
      // The same id is another message here.
      await inbox.steer(second.runId, 'b', 'new');
      expect(await inbox.read(second)).toEqual([
        { id: 'b', message: say('user', 'b'), runId: first.runId },
        { id: 'c', message: say('user', 'c'), runId: first.runId },
        { id: 'b', message: say('user', 'new') },
      ]);
      await refused(commit(second, { steered: 2 }), 'FAILED_PRECONDITION', { inbox: 3 });
      await commit(second, { status: 'failed', steered: 1, leavesInbox: true });
      expect(await readLeftInbox(scope, 's')).toEqual([
        { id: 'c', message: say('user', 'c'), runId: first.runId },
        { id: 'b', message: say('user', 'new'), runId: second.runId },
      ]);
      const third = await claim('s', { keepInbox });
      await commit(third, { steered: 2 });
      expect(await left()).toEqual([]);
      expect((await claim('s', { keepInbox })).steered).toBeUndefined();
      expect(await readLeftInbox({ ...scope, owner: 'other' }, 's')).toEqual([]);
    });

    test('a run with keepInbox that is aborted, displaced or released leaves its whole inbox', async (context) => {
      const kit = useKit();
      const { claim, commit, runs, scope, abort, ttl, expire, id } = kit;
      const { readLeftInbox } = runs;
      const inbox = inboxOf(kit, context);
      if (readLeftInbox === undefined) return context.skip();
      const request = { keepInbox: true, mode: 'detached', inputs: [] } as const;
      const aborted = await claim('s', { keepInbox: true });
      await runs.detach(aborted, request);
      await inbox.steer(aborted.runId, 'a');
      await abort.abortSnapshot(scope, aborted.runId);
      const released = await claim('s', { keepInbox: true });
      await inbox.steer(released.runId, 'b');
      await runs.release(released);
      const displaced = await claim('s', { keepInbox: true, ttl });
      await inbox.steer(displaced.runId, 'c');
      await expire();
      const next = await claim('s', { keepInbox: true });
      expect(ids(await inbox.read(next))).toEqual(['a', 'b', 'c']);
      await commit(next, { steered: 3 });
      // A run that does not keep its inbox drops it.
      const plain = await claim('s');
      await inbox.steer(plain.runId, 'd');
      await commit(plain, { finishReason: 'aborted', steered: 0, leavesInbox: true });
      expect(await readLeftInbox(scope, 's')).toEqual([]);
      // Nothing of a first turn that was refused stays, not even its session.
      const blank = await claim(id(), { keepInbox: true });
      await inbox.steer(blank.runId, 'e');
      await runs.release(blank);
      expect(await readLeftInbox(scope, blank.sessionId)).toEqual([]);
    });

    test('one of two that end and steer at once gives way', async (context) => {
      const kit = useKit();
      const { claim, commit, textsOf } = kit;
      const inbox = inboxOf(kit, context);
      for (let round = 0; round < 10; round++) {
        const held = await claim('s');
        const [isThere, hasEnded] = await Promise.all([
          inbox.steer(held.runId, 'a'),
          commit(held, { text: `${round}`, steered: 0 }).then(
            () => true,
            () => false,
          ),
        ]);
        expect(isThere).not.toBe(hasEnded);
        if (!hasEnded) await commit(held, { text: `${round}`, steered: 1 });
      }
      expect(await textsOf({ sessionId: 's' })).toHaveLength(20);
    });
  });
}
