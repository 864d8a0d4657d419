import { describe, expect, test } from 'vitest';
import { emptyState, hashState } from '../../session/session-state.ts';
import type { Spend } from '../../store/contract/store.ts';
import { exchange, type Kit, refused, type UseKit } from './kit.ts';

const usage = { inputTokens: 10, outputTokens: 5, totalTokens: 15, cost: { USD: 7 } };

/** Some spend of a session, by its own agent. */
function spendOf({ scope }: Kit, change: Partial<Spend> = {}, calls = 1): Spend {
  const { agent } = scope;
  return { agent, sessionId: 's', entries: [{ agent, model: 'm', calls, usage }], ...change };
}

/** Counters of what was spent: they come with commits, and only ever grow. */
export function spendContract(useKit: UseKit): void {
  describe('spend', () => {
    test('S380 a commit records what was spent, and one that is refused does not', async () => {
      const kit = useKit();
      const { turn, claim, commit, spend, scope } = kit;
      const session = { agent: scope.agent, sessionId: 's' };
      expect(await spend.total(session)).toEqual({});
      await turn('s', { spend: spendOf(kit) });
      const held = await claim('s');
      await commit(held, { spend: spendOf(kit) });
      expect(await spend.total(session)).toEqual({
        inputTokens: 20,
        outputTokens: 10,
        totalTokens: 30,
        cost: { USD: 14 },
      });
      await refused(commit(held, { spend: spendOf(kit) }), 'ABORTED');
      expect(await spend.total(session)).toMatchObject({ totalTokens: 30 });
    });

    test('S380 snapshots within a turn, failed turns, checkpoints and receipts record it as well', async () => {
      const kit = useKit();
      const { claim, commit, runs, spend, scope } = kit;
      const session = { agent: scope.agent, sessionId: 's' };
      const total = async (): Promise<number | undefined> =>
        (await spend.total(session)).totalTokens;
      const key = 'a'.repeat(64);
      const held = await claim('s', { mode: 'accepted', requests: [{ key, digest: key }] });
      const state = exchange(emptyState, 'checkpoint');
      await runs.checkpoint(held, {
        state,
        stateHash: hashState(state),
        inputsDone: 0,
        midTurn: true,
        spend: spendOf(kit),
      });
      expect(await total()).toBe(15);
      await commit(held, {
        snapshotId: kit.id(),
        event: 'toolIterationEnd',
        end: false,
        spend: spendOf(kit),
      });
      expect(await total()).toBe(30);
      await commit(held, {
        spend: spendOf(kit),
        requests: { keys: [key], receipt: { done: true } },
      });
      expect(await total()).toBe(45);
      const failing = await claim('s');
      await commit(failing, { status: 'failed', finishReason: 'failed', spend: spendOf(kit) });
      expect(await total()).toBe(60);
    });

    test('S381 restoring and deleting take nothing back, and a run that was lost can still add to it', async () => {
      const kit = useKit();
      const { turn, timeline, spend, scope } = kit;
      const session = { agent: scope.agent, sessionId: 's' };
      const { snapshot } = await turn('s', { spend: spendOf(kit) });
      await turn('s', { spend: spendOf(kit) });
      await timeline.restore(scope, snapshot.snapshotId);
      expect(await spend.total(session)).toMatchObject({ totalTokens: 30 });
      await timeline.deleteSession(scope, 's');
      await spend.add(spendOf(kit));
      expect(await spend.total(session)).toMatchObject({ totalTokens: 45, cost: { USD: 21 } });
    });

    test('S382 sums by owner, agent, model and day; erasing an owner removes its spend', async () => {
      const kit = useKit();
      const { spend, scope, maintenance } = kit;
      const sub = `${scope.agent}-sub`;
      const [ann, bob] = [`ann-${kit.id()}`, `bob-${kit.id()}`];
      const euro = { ...usage, cost: { EUR: 3 }, cachedInputTokens: 4, cacheWriteTokens: 2 };
      await spend.add(spendOf(kit, { owner: ann }));
      await spend.add(
        spendOf(kit, { owner: ann, entries: [{ agent: sub, model: 'n', calls: 2, usage: euro }] }),
      );
      await spend.add(spendOf(kit, { owner: bob }));
      const of = { owner: ann };
      expect(await spend.total(of)).toEqual({
        inputTokens: 20,
        outputTokens: 10,
        totalTokens: 30,
        cachedInputTokens: 4,
        cacheWriteTokens: 2,
        cost: { USD: 7, EUR: 3 },
      });
      expect(await spend.sums('agent', of)).toMatchObject([
        { key: scope.agent, calls: 1, usage },
        { key: sub, calls: 2, usage: euro },
      ]);
      expect(await spend.sums('model', of)).toMatchObject([{ key: 'm' }, { key: 'n', calls: 2 }]);
      const [today, ...others] = await spend.sums('day', of);
      expect(others).toEqual([]);
      expect(today).toMatchObject({ key: expect.stringMatching(/^\d{4}-\d\d-\d\d$/), calls: 3 });
      const day = Date.parse(`${today?.key}T00:00:00Z`) / 86_400_000;
      expect(await spend.total({ ...of, sinceDay: day })).toMatchObject({ totalTokens: 30 });
      expect(await spend.total({ ...of, sinceDay: day + 1 })).toEqual({});
      const owners = await spend.sums('owner', {});
      expect(owners.filter(({ key }) => key === ann || key === bob)).toMatchObject([
        { key: ann, calls: 3 },
        { key: bob, calls: 1 },
      ]);
      await maintenance.eraseOwner(ann);
      expect(await spend.total(of)).toEqual({});
      expect(await spend.total({ owner: bob })).toMatchObject({ totalTokens: 15 });
    });

    test('S380 it is still there when the store is opened again', async () => {
      const kit = useKit();
      if (kit.opened.reopen === undefined) return;
      await kit.turn('s', { spend: spendOf(kit) });
      const again = await kit.reopen();
      await again.spend.add(spendOf(kit));
      expect(await again.spend.total({ owner: null })).toMatchObject({ totalTokens: 30 });
    });
  });
}
