import { describe, expect, test } from 'vitest';
import { createSha256 } from '../../core/platform.ts';
import type { Claim, Effect, Scope } from '../../store/contract/store.ts';
import { type Kit, refused, type UseKit } from './kit.ts';

function keyOf(text: string): string {
  const sum = createSha256();
  sum.update(new TextEncoder().encode(text));
  return sum.hex();
}

function effectOf(key: string, more: Partial<Effect> = {}): Effect {
  return { key, tool: 'book', input: { hotel: 'Ritz' }, at: '2026-01-01T00:00:00.000Z', ...more };
}

/** The effects of a session, without the sessions that share them. */
async function effectsIn({ effects, scope }: Kit, sessionId: string, of: Scope = scope) {
  return (await effects.list(of, sessionId)).map(({ sharedWith: _, ...effect }) => effect);
}

/** The kit over the reopened store; over the same one, if it keeps nothing. */
async function reopened(kit: Kit): Promise<Kit> {
  return kit.opened.reopen === undefined ? kit : await kit.reopen();
}

/** Effects of calls, beside the snapshots of a session. */
export function effectContract(useKit: UseKit): void {
  describe('effects', () => {
    const begin = async (
      session: string,
    ): Promise<{ readonly claim: Claim; readonly key: string }> => {
      const { claim } = useKit();
      return { claim: await claim(session), key: keyOf(useKit().id()) };
    };

    test('S760 a call is recorded before it runs, and with its result after', async () => {
      const { effects, commit, scope } = useKit();
      const { claim, key } = await begin('s');
      expect(await effects.list(scope, 's')).toEqual([]);
      await effects.save(claim, key, effectOf(key));
      const stored = { ...effectOf(key), runId: claim.runId };
      expect(await effects.list(scope, 's')).toEqual([{ ...stored, sharedWith: [] }]);
      const done = effectOf(key, { output: [{ id: 'ü' }], agent: 'sub', input: null });
      await effects.save(claim, key, done);
      const later = keyOf(useKit().id());
      await effects.save(claim, later, effectOf(later, { at: '2026-01-01T00:00:01.000Z' }));
      const dropped = keyOf(useKit().id());
      await effects.save(claim, dropped, effectOf(dropped));
      await effects.save(claim, dropped, null);
      await effects.save(claim, dropped, null);
      await commit(claim);
      const again = await reopened(useKit());
      expect(await effectsIn(again, 's')).toMatchObject([
        { ...done, runId: claim.runId },
        { key: later },
      ]);
      expect(await again.effects.list(scope, 'other')).toEqual([]);
      expect(await again.effects.list({ ...scope, owner: 'nobody' }, 's')).toEqual([]);
    });

    test('S763 a call is marked once, by the current attempt only, also after a failed turn', async () => {
      const { effects, commit, runs, turn } = useKit();
      await turn('s');
      const { claim, key } = await begin('s');
      await effects.save(claim, key, effectOf(key, { output: [1] }));
      await commit(claim, { status: 'failed' });
      await refused(effects.save(claim, key, effectOf(key)), 'ABORTED');
      await refused(effects.markUndone(claim, key), 'ABORTED');
      const next = await useKit().claim('s');
      await refused(effects.markUndone({ ...next, attempt: 2 }, key), 'ABORTED');
      await effects.markUndone(next, key);
      const [marked] = await effectsIn(useKit(), 's');
      expect(Date.parse(marked?.undoneAt ?? '')).toBeGreaterThan(0);
      await effects.markUndone(next, key);
      await effects.markUndone(next, keyOf('unknown'));
      expect(await effectsIn(useKit(), 's')).toEqual([marked]);
      await runs.release(next);
      for (const bad of ['', 'x', undefined]) {
        await refused(effects.save(next, bad as never, null), 'INVALID_ARGUMENT');
      }
    });

    test('S763 a restore ends the run that holds the session, in one step', async () => {
      const { runs, timeline, turn, scope, id } = useKit();
      const first = await turn('s');
      const second = await turn('s');
      const claim = await useKit().claim('s', { mode: 'accepted' });
      const to = first.snapshot.snapshotId;
      await refused(timeline.restore(scope, to), 'ABORTED');
      await refused(timeline.restore(scope, to, { run: { ...claim, attempt: 2 } }), 'ABORTED');
      await refused(timeline.restore(scope, to, { run: { runId: id(), attempt: 1 } }), 'ABORTED');
      await refused(timeline.restore(scope, id(), { run: claim }), 'NOT_FOUND');
      expect(await runs.getRun(scope, claim.runId)).toBeDefined();
      expect(await timeline.restore(scope, to, { run: claim })).toMatchObject({ snapshotId: to });
      expect(await timeline.getSession(scope, 's')).toMatchObject({ headId: to });
      expect(await runs.getRun(scope, claim.runId)).toBeUndefined();
      expect(await runs.heartbeat(claim)).toBe('lost');
      // The run of another session holds nothing here.
      const elsewhere = await useKit().claim('t', { mode: 'accepted' });
      await useKit().claim('s');
      const back = second.snapshot.snapshotId;
      await refused(timeline.restore(scope, back, { run: elsewhere }), 'ABORTED');
    });

    test('S767 a fork has the effects of its source, and marks count in both', async () => {
      const { effects, commit, timeline, scope, id } = useKit();
      const { claim, key } = await begin('s');
      await effects.save(claim, key, effectOf(key, { output: [1] }));
      const { snapshot } = await commit(claim);
      const fork = await timeline.fork(scope, snapshot.snapshotId, {
        sessionId: 'f',
        snapshotId: id(),
      });
      await timeline.fork(scope, fork.snapshotId, { sessionId: 'g', snapshotId: id() });
      const shared = async (session: string) =>
        (await effects.list(scope, session)).map(({ sharedWith }) => sharedWith);
      expect(await shared('s')).toEqual([['f', 'g']]);
      expect(await shared('f')).toEqual([['g', 's']]);
      const next = await useKit().claim('s');
      await effects.markUndone(next, key);
      await useKit().runs.release(next);
      const kit = useKit();
      for (const session of ['s', 'f', 'g']) {
        expect((await effectsIn(kit, session))[0]?.undoneAt).toBeDefined();
      }
      await timeline.deleteSession(scope, 's');
      await timeline.deleteSession(scope, 'f');
      expect(await effects.list(scope, 's')).toEqual([]);
      const again = await reopened(useKit());
      expect(await again.effects.list(scope, 'g')).toMatchObject([{ key, sharedWith: [] }]);
      expect((await effectsIn(again, 'g'))[0]?.undoneAt).toBeDefined();
    });
  });
}
