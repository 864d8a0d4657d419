import { describe, expect, test } from 'vitest';
import { emptyState, hashState } from '../../session/session-state.ts';
import type { Spend, SpendReservation } from '../../store/contract/store.ts';
import { exchange, type Kit, refused, type UseKit } from './kit.ts';

const usage = { inputTokens: 10, outputTokens: 5, totalTokens: 15, cost: { USD: 7 } };

/** Some spend of a session, by its own agent. */
function spendOf({ scope }: Kit, change: Partial<Spend> = {}, calls = 1): Spend {
  const { agent } = scope;
  return { agent, sessionId: 's', entries: [{ agent, model: 'm', calls, usage }], ...change };
}

/** A reservation of the session `s`: at most 10 tokens and 4 micro-dollars, for a minute. */
function reservationOf(
  { scope, id }: Kit,
  change: Partial<SpendReservation> & Pick<SpendReservation, 'bounds'>,
): SpendReservation {
  const amounts = [
    { amount: 10, isBound: true },
    { currency: 'USD', amount: 4, isBound: true },
  ];
  const call = { sessionId: 's', holder: 'a run', amounts, ttl: 60_000 };
  return { ...scope, id: id(), ...call, ...change };
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

    test('S690 of concurrent reservations, only those are made that fit a budget together', async () => {
      const kit = useKit();
      const { spend, scope } = kit;
      if (spend.reserve === undefined) return;
      await spend.add(spendOf(kit, { owner: 'ann' }));
      // 7 of 47 are spent, so ten times 4 fit.
      const bounds = [{ of: 'owner', currency: 'USD', most: 43 }] as const;
      const sessions = Array.from({ length: 30 }, (_, at) => `s${at % 3}`);
      const made = await Promise.all(
        sessions.map(async (sessionId) => {
          const reservation = reservationOf(kit, { owner: 'ann', sessionId, bounds });
          return { reservation, refusal: await spend.reserve?.(reservation) };
        }),
      );
      const granted = made.filter(({ refusal }) => refusal === undefined);
      expect(granted).toHaveLength(10);
      const refused = made.find(({ refusal }) => refusal !== undefined);
      expect(refused?.refusal).toMatchObject([{ spent: 7 }]);
      const again = reservationOf(kit, { owner: 'ann', bounds });
      expect(await spend.reserve(again)).toEqual([{ spent: 7, reserved: 40 }]);
      const [first] = granted;
      await spend.add({
        ...scope,
        owner: 'ann',
        sessionId: first?.reservation.sessionId ?? '',
        entries: [],
        settles: [first?.reservation.id ?? ''],
      });
      expect(await spend.reserve(again)).toBeUndefined();
      // Others are not concerned.
      expect(await spend.reserve(reservationOf(kit, { owner: 'bob', bounds }))).toBeUndefined();
      expect(await spend.total({ owner: 'ann' })).toMatchObject({ cost: { USD: 7 } });
    });

    test('S690 bounds count tokens or a currency, of a session or an owner, since a day; all of them must hold', async () => {
      const kit = useKit();
      const { spend } = kit;
      if (spend.reserve === undefined) return;
      await spend.add(spendOf(kit));
      await spend.add(spendOf(kit, { sessionId: 'other' }));
      expect(await spend.reserve(reservationOf(kit, { bounds: [] }))).toBeUndefined();
      const other = { sessionId: 'other', bounds: [] };
      expect(await spend.reserve(reservationOf(kit, other))).toBeUndefined();
      const [today] = await spend.sums('day', { agent: kit.scope.agent });
      const day = Date.parse(`${today?.key}T00:00:00Z`) / 86_400_000;
      const counted = [
        [{ of: 'session' }, { spent: 15, reserved: 10 }],
        [
          { of: 'session', spentAtLeast: 20 },
          { spent: 20, reserved: 10 },
        ],
        [
          { of: 'session', currency: 'USD' },
          { spent: 7, reserved: 4 },
        ],
        [
          { of: 'session', currency: 'EUR' },
          { spent: 0, reserved: 0 },
        ],
        [
          { of: 'session', sinceDay: day },
          { spent: 15, reserved: 10 },
        ],
        [
          { of: 'session', sinceDay: day + 1 },
          { spent: 0, reserved: 0 },
        ],
      ] as const;
      const bounds = counted.map(([bound]) => ({ ...bound, most: 100 }));
      const impossible = { of: 'session', most: -1 } as const;
      const full = reservationOf(kit, { bounds: [...bounds, impossible] });
      expect(await spend.reserve(full)).toEqual([
        ...counted.map(([, count]) => count),
        { spent: 15, reserved: 10 },
      ]);
      expect(await spend.reserve(reservationOf(kit, { bounds }))).toBeUndefined();
    });

    test('S690 a commit or checkpoint settles reservations along with its spend', async () => {
      const kit = useKit();
      const { spend, claim, commit, runs } = kit;
      if (spend.reserve === undefined) return;
      const bounds = [{ of: 'session', most: 20 }] as const;
      const [first, second, third] = [1, 2, 3].map(() => reservationOf(kit, { bounds }));
      if (!first || !second || !third) return;
      expect(await spend.reserve(first)).toBeUndefined();
      expect(await spend.reserve(second)).toBeUndefined();
      const held = await claim('s', { mode: 'accepted' });
      const state = exchange(emptyState, 'checkpoint');
      await runs.checkpoint(held, {
        state,
        stateHash: hashState(state),
        inputsDone: 0,
        midTurn: true,
        spend: spendOf(kit, { settles: [first.id] }),
      });
      expect(await spend.reserve(third)).toEqual([{ spent: 15, reserved: 10 }]);
      await commit(held, { spend: spendOf(kit, { settles: [second.id] }) });
      expect(await spend.reserve(third)).toEqual([{ spent: 30, reserved: 0 }]);
    });

    test('S694 a lost call counts as spent, until it is settled or its owner is erased; a guess is dropped', async () => {
      const kit = useKit();
      const { spend, maintenance, ttl } = kit;
      if (spend.reserve === undefined) return;
      const owner = `ann-${kit.id()}`;
      const bounds = [{ of: 'owner', most: 0 }] as const;
      const guess = reservationOf(kit, {
        owner,
        ttl,
        bounds,
        amounts: [{ amount: 5, isBound: false }],
      });
      const lost = reservationOf(kit, { owner, ttl, bounds: [] });
      expect(await spend.reserve(guess)).toBeUndefined();
      expect(await spend.reserve(lost)).toBeUndefined();
      const next = reservationOf(kit, { owner, bounds });
      expect(await spend.reserve(next)).toEqual([{ spent: 0, reserved: 15 }]);
      // Another run of the same session has begun, so those calls have no run any more.
      const heir = { ...next, holder: 'the next run' };
      expect(await spend.reserve(heir)).toEqual([{ spent: 10, reserved: 0 }]);
      const elsewhere = { ...heir, sessionId: 'other' };
      expect(await spend.reserve(elsewhere)).toEqual([{ spent: 0, reserved: 15 }]);
      await kit.expire();
      expect(await spend.reserve(next)).toEqual([{ spent: 10, reserved: 0 }]);
      await spend.add(spendOf(kit, { owner, entries: [], settles: [lost.id] }));
      expect(await spend.reserve(next)).toBeUndefined();
      await maintenance.eraseOwner(owner);
      expect(await spend.reserve(next)).toBeUndefined();
    });

    test('S380 S690 it is still there when the store is opened again', async () => {
      const kit = useKit();
      if (kit.opened.reopen === undefined) return;
      await kit.turn('s', { spend: spendOf(kit) });
      const reservation = reservationOf(kit, { bounds: [] });
      await kit.spend.reserve?.(reservation);
      const again = await kit.reopen();
      const bounds = [{ of: 'session', most: 0 }] as const;
      const refusal = await again.spend.reserve?.(reservationOf(kit, { bounds }));
      expect(refusal ?? []).toEqual(
        again.spend.reserve === undefined ? [] : [{ spent: 15, reserved: 10 }],
      );
      await again.spend.add(spendOf(kit));
      expect(await again.spend.total({ owner: null })).toMatchObject({ totalTokens: 30 });
    });
  });
}
