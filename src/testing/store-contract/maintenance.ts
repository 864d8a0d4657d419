import { describe, expect, test } from 'vitest';
import type { MaintenanceOptions, RetentionPolicy } from '../../store/contract/store.ts';
import { type Kit, marksIn, refused, say, stateOf, texts, type UseKit } from './kit.ts';
import { transferContract } from './transfer.ts';

async function indexes({ timeline, scope }: Kit, sessionId = 's'): Promise<number[]> {
  const { items } = await timeline.listSnapshots(scope, sessionId, { includeOrphaned: true });
  return items.map((each) => each.index);
}

/** An age that is only reached by advancing the clock. */
const old = 1000;

/** A state with one user message for each text. */
function history(...said: readonly string[]) {
  return stateOf({ messages: said.map((text) => say('user', text)) });
}

/**
 * A labelled snapshot, an unlisted one that clears the history, and a turn with a snapshot within it that continues from that.
 * Returns the texts of the turn.
 */
async function rewriteUnlisted(kit: Kit): Promise<string[]> {
  const { turn, claim, commit, scope, timeline, id } = kit;
  const first = (await turn('s', { state: history('a', 'b') })).snapshot;
  await timeline.label(scope, first.snapshotId, 'stays');
  await turn('s', { state: stateOf({}), listed: false });
  const held = await claim('s');
  const event = 'toolIterationEnd' as const;
  const half = { state: history('c'), snapshotId: id(), event, end: false };
  const { base } = await commit(held, half);
  const said = ['c', 'd', 'e', 'f'];
  await commit(held, { base, state: history(...said) });
  return said;
}

/** Retention, deletion of an owner's data, verification, export and import. */
export function maintenanceContract(useKit: UseKit): void {
  describe('retention', () => {
    test('the newest snapshots stay, whole, and hang together', async () => {
      const kit = useKit();
      const { turn, maintenance, scope, store, timeline } = kit;
      for (let n = 0; n < 10; n++) await turn('s', { text: `t${n}` });
      expect(await maintenance.prune({ keepLast: 3 }, scope)).toEqual({
        snapshots: 7,
        sessions: 0,
      });
      expect(await indexes(kit)).toEqual([7, 8, 9]);
      const { items } = await timeline.listSnapshots(scope, 's');
      expect(items.map((each) => each.parentId)).toEqual([
        undefined,
        items[0]?.snapshotId,
        items[1]?.snapshotId,
      ]);
      for (const { snapshotId, index } of items) {
        const read = await store.getSnapshot(scope, { snapshotId });
        expect(texts(read?.state)).toHaveLength(2 * (index + 1));
      }
      expect(await maintenance.verify()).toEqual([]);
      expect((await turn('s')).snapshot).toMatchObject({ index: 10, turnIndex: 10 });
    });

    test('survivors are moved up to the nearest ancestor that stays', async () => {
      const kit = useKit();
      const { turn, maintenance, scope, timeline } = kit;
      const made = [];
      for (let n = 0; n < 5; n++) made.push((await turn('s')).snapshot.snapshotId);
      await timeline.label(scope, made[1] ?? '', 'stays');
      await maintenance.prune({ keepLast: 1 }, scope);
      const { items } = await timeline.listSnapshots(scope, 's');
      expect(items.map((each) => [each.snapshotId, each.parentId, each.orphaned])).toEqual([
        [made[1], undefined, false],
        [made[4], made[1], false],
      ]);
      await maintenance.prune({ keepLast: 0, keepLabelled: false }, scope);
      expect(await indexes(kit)).toEqual([4]);
      expect(await maintenance.verify()).toEqual([]);
    });

    test('no message takes the mark of an earlier turn when the turn that rewrote it goes', async () => {
      const { turn, maintenance, scope, store, timeline } = useKit();
      const first = (await turn('s')).snapshot.snapshotId;
      await timeline.label(scope, first, 'stays');
      const rewritten = (await turn('s', { state: history('a', 'b', 'c', 'd') })).snapshot;
      const from = { from: { snapshotId: rewritten.snapshotId } };
      await turn('s', { state: history('a', 'b', 'c', 'e') });
      await turn('s', { request: from, state: history('a', 'b', 'f') });
      await turn('s', { request: from });
      for (const keepLast of [3, 2, 1]) {
        await maintenance.prune({ keepLast }, scope);
        const { items } = await timeline.listSnapshots(scope, 's', { includeOrphaned: true });
        expect(items).toHaveLength(1 + keepLast);
        for (const { snapshotId } of items) {
          const { state } = (await store.getSnapshot(scope, { snapshotId })) ?? {};
          const last = (state?.messages?.length ?? 0) - 1;
          expect(marksIn(state)).toEqual({ [last]: snapshotId });
        }
      }
      expect(await maintenance.verify()).toEqual([]);
    });

    test('no message takes the mark of an earlier turn when turns that continue an unlisted rewrite are pruned', async () => {
      const kit = useKit();
      const { turn, maintenance, scope, store, timeline } = kit;
      const said = await rewriteUnlisted(kit);
      for (const rewritten of ['g', 'h']) {
        said[2] = rewritten;
        await turn('s', { state: history(...said) });
      }
      for (const keepLast of [2, 1]) {
        await maintenance.prune({ keepLast }, scope);
        const head = await store.getSnapshot(scope, { sessionId: 's' });
        expect(texts(head?.state)).toEqual(said);
        expect(marksIn(head?.state)).toEqual({ 3: head?.snapshotId });
      }
      const { items } = await timeline.listSnapshots(scope, 's');
      expect(items.map((each) => each.label)).toEqual(['stays', undefined]);
      expect(await maintenance.verify()).toEqual([]);
    });

    test('no message takes the mark of an earlier turn when they are pruned during the next turn', async () => {
      const kit = useKit();
      const { turn, claim, commit, maintenance, runs, scope, store } = kit;
      await rewriteUnlisted(kit);
      const head = await turn('s', { state: history('c', 'd', 'g', 'f'), listed: false });
      const next = await claim('s');
      const base = await runs.load(scope, { snapshotId: head.snapshot.snapshotId });
      await maintenance.prune({ keepLast: 0 }, scope);
      const said = history('c', 'd', 'h', 'f');
      const { snapshot } = await commit(next, { ...(base && { base }), state: said });
      const read = await store.getSnapshot(scope, { snapshotId: snapshot.snapshotId });
      expect(marksIn(read?.state)).toEqual({ 3: snapshot.snapshotId });
      expect(await maintenance.verify()).toEqual([]);
    });

    test('what is old goes, what is young stays', async () => {
      const kit = useKit();
      const { turn, maintenance, scope, pass } = kit;
      for (let n = 0; n < 3; n++) await turn('s');
      await turn('old');
      await pass(old * 1.5);
      for (let n = 0; n < 2; n++) await turn('s');
      expect(await maintenance.prune({ olderThan: old }, scope)).toMatchObject({ snapshots: 3 });
      expect(await indexes(kit)).toEqual([3, 4]);
      expect(await indexes(kit, 'old')).toEqual([0]);
      await maintenance.prune({ olderThan: old, dropSessions: true, keepSessions: ['old'] }, scope);
      expect(await indexes(kit, 'old')).toEqual([0]);
      const report = await maintenance.prune({ olderThan: old, dropSessions: true }, scope);
      expect(report).toEqual({ snapshots: 1, sessions: 1 });
      expect(await kit.timeline.getSession(scope, 'old')).toBeUndefined();
      expect(await kit.timeline.getSession(scope, 's')).toBeDefined();
    });

    test('a session goes together with its sub-agents’ sessions, or not at all', async () => {
      const { turn, maintenance, scope, timeline, pass } = useKit();
      const startedBy = (sessionId: string) => ({ startedBy: { agent: scope.agent, sessionId } });
      for (const name of ['a', 'b']) {
        await turn(name);
        await turn(`${name}-sub`, { request: startedBy(name) });
      }
      await pass(old * 1.5);
      await turn('b-sub');
      const policy = { olderThan: old, dropSessions: true };
      expect(await maintenance.prune(policy, scope)).toEqual({ snapshots: 3, sessions: 2 });
      const { items } = await timeline.listSessions(scope);
      expect(items.map((each) => each.sessionId)).toEqual(['b-sub', 'b']);
    });

    test('the head, what runs, what could still be answered and what was answered stay', async () => {
      const kit = useKit();
      const { turn, claim, maintenance, scope, runs, commit } = kit;
      const root = (await turn('s')).snapshot; // 0
      await turn('s', { finishReason: 'interrupted' }); // 1, open
      const request = { from: { snapshotId: root.snapshotId } };
      const answered = (await turn('s', { finishReason: 'interrupted', request })).snapshot; // 2
      await turn('s'); // 3, its answer
      await turn('s', { status: 'failed' }); // 4
      await turn('s', { request }); // 5
      await turn('s'); // 6
      const held = await claim('s', { from: { snapshotId: answered.snapshotId } });
      await runs.detach(held, { mode: 'detached', inputs: [] }); // 7
      await maintenance.prune({ keepLast: 0 }, scope);
      // 6 is the head. 7 is running and its parent is 2, which keeps its answer 3.
      expect(await indexes(kit)).toEqual([1, 2, 3, 6, 7]);
      expect((await commit(held)).snapshot).toMatchObject({ parentId: answered.snapshotId });
      const again = await claim('s', { from: { snapshotId: answered.snapshotId } });
      expect(again.parent).toMatchObject({ answered: true });
      expect(await maintenance.verify()).toEqual([]);
    });

    test('a state that is not listed stays', async () => {
      const kit = useKit();
      const { turn, maintenance, scope, textsOf } = kit;
      for (let n = 0; n < 3; n++) await turn('s', { text: `t${n}` });
      await turn('s', { text: 'latest', listed: false });
      await maintenance.prune({ keepLast: 0 }, scope);
      expect(await indexes(kit)).toEqual([]);
      expect(await textsOf({ sessionId: 's' })).toHaveLength(8);
      expect(await maintenance.verify()).toEqual([]);
      expect((await turn('s')).snapshot).toMatchObject({ index: 3, turnIndex: 4 });
    });

    test('without a scope over the whole store, with one only there', async () => {
      const kit = useKit();
      const { turn, maintenance, scope } = kit;
      const other = { ...scope, owner: 'other' };
      for (const of of [scope, other]) {
        for (let n = 0; n < 3; n++) await turn('s', { scope: of });
      }
      expect(await maintenance.prune({ keepLast: 2 }, other)).toMatchObject({ snapshots: 1 });
      expect(await maintenance.prune({ keepLast: 2 })).toMatchObject({ snapshots: 1 });
      expect(await maintenance.prune({})).toEqual({ snapshots: 0, sessions: 0 });
    });

    test('what hung together in a trimmed history still reads the same', async () => {
      const { turn, runs, scope, maintenance, store } = useKit();
      for (let n = 0; n < 12; n++) {
        const base = await runs.load(scope, { sessionId: 's' });
        const state = base && {
          ...base.state,
          history: base.state.history.replace(base.state.history.toArray().slice(-4)),
        };
        await turn('s', n % 3 === 2 && state ? { state } : { text: `t${n}` });
      }
      const before = await store.getSnapshot(scope, { sessionId: 's' });
      await maintenance.prune({ keepLast: 2 }, scope);
      const after = await store.getSnapshot(scope, { sessionId: 's' });
      expect(texts(after?.state)).toEqual(texts(before?.state));
      expect(after?.stateHash).toBe(before?.stateHash);
      expect(await maintenance.verify()).toEqual([]);
    });

    test('a policy that cannot be meant is refused', async () => {
      const { maintenance } = useKit();
      const bad: RetentionPolicy[] = [
        { keepLast: -1 },
        { keepLast: 1.5 },
        { keepLast: Number.NaN },
        { olderThan: -1 },
        { olderThan: Number.NaN },
      ];
      for (const policy of bad) await refused(maintenance.prune(policy), 'INVALID_ARGUMENT');
    });
  });

  describe('erasure of an owner', () => {
    test('deletes all sessions of the owner, including a running one, and no others', async () => {
      const { turn, claim, commit, maintenance, scope, timeline, runs, store, opened } = useKit();
      const mine = { ...scope, owner: 'me' };
      const elsewhere = { agent: `${scope.agent}2`, owner: 'me' };
      const others = [scope, { ...scope, owner: 'you' }];
      for (const of of [mine, elsewhere, ...others]) {
        await turn('s', { scope: of, text: of.owner === 'me' ? 'forget-me' : 'keep' });
      }
      const held = await claim('s', {}, mine);
      expect(await maintenance.eraseOwner('me')).toBe(2);
      expect(await maintenance.eraseOwner('me')).toBe(0);
      expect(await runs.heartbeat(held)).toBe('lost');
      await refused(commit(held, {}, mine), 'ABORTED');
      for (const of of [mine, elsewhere]) {
        expect((await timeline.listSessions(of)).items).toEqual([]);
        expect(await store.getSnapshot(of, { sessionId: 's' })).toBeUndefined();
      }
      for (const of of others) expect(await timeline.getSession(of, 's')).toBeDefined();
      expect(await maintenance.verify()).toEqual([]);
      if (opened.dump !== undefined) {
        expect((await opened.dump()).toLowerCase()).not.toContain('forget-me');
      }
    });
  });

  describe('verification', () => {
    test('an untouched store is whole, whatever state its runs are in', async () => {
      const { turn, claim, runs, maintenance, expire, ttl } = useKit();
      expect(await maintenance.verify()).toEqual([]);
      await turn('s');
      await turn('s', { status: 'failed' });
      await claim('s', { ttl });
      await expire();
      await claim('s');
      const held = await claim('d');
      await runs.detach(held, { mode: 'detached', inputs: [] });
      let progress = 0;
      const onProgress = (done: number): void => {
        progress = done;
      };
      expect(await maintenance.verify({ onProgress })).toEqual([]);
      expect(progress).toBeGreaterThan(0);
    });
  });

  describe('long maintenance', () => {
    test('S342: reports its steps, stops between two of them, and continues when it is done again', async () => {
      const { turn, maintenance, textsOf, store } = useKit();
      const isHeard = maintenance.verify({ signal: AbortSignal.abort() });
      // A store whose maintenance takes a moment may ignore the options.
      if (
        await isHeard.then(
          () => true,
          () => false,
        )
      )
        return;
      const owned = { agent: 'chat', owner: 'ada' };
      for (const session of ['a', 'b', 'c']) {
        for (const text of ['one', 'two', 'three']) {
          await turn(session, { text });
          await turn(session, { text, scope: owned });
        }
      }
      let cursor: string | undefined;
      const stopAtOnce = (): MaintenanceOptions => {
        const controller = new AbortController();
        const onProgress: MaintenanceOptions['onProgress'] = (done, progress) => {
          expect(done).toBeGreaterThan(0);
          cursor ??= progress.cursor;
          controller.abort();
        };
        return { onProgress, signal: controller.signal };
      };
      const stopped = { name: 'WaymarkError' };
      await expect(maintenance.verify(stopAtOnce())).rejects.toMatchObject(stopped);
      if (cursor !== undefined) {
        const dones: number[] = [];
        const onProgress = (done: number): void => void dones.push(done);
        expect(await maintenance.verify({ cursor, onProgress })).toEqual([]);
        const rest = dones.at(-1) ?? 0;
        expect(await maintenance.verify({ onProgress })).toEqual([]);
        expect(dones.at(-1)).toBeGreaterThan(rest);
        await expect(maintenance.verify({ cursor: 'nowhere' })).rejects.toMatchObject({
          status: 'INVALID_ARGUMENT',
        });
      }
      await expect(
        maintenance.prune({ keepLast: 1 }, undefined, stopAtOnce()),
      ).rejects.toMatchObject(stopped);
      expect(await maintenance.verify()).toEqual([]);
      // The rest, as far as there is one after the first step.
      const { snapshots } = await maintenance.prune({ keepLast: 1 });
      expect(snapshots).toBeLessThan(12);
      expect(await maintenance.prune({ keepLast: 1 })).toMatchObject({ snapshots: 0 });
      expect(await textsOf({ sessionId: 'c' })).toHaveLength(6);
      const before = { signal: AbortSignal.abort() };
      await expect(maintenance.eraseOwner('ada', before)).rejects.toMatchObject(stopped);
      expect(await store.getSnapshot(owned, { sessionId: 'a' })).toBeDefined();
      const steps: number[] = [];
      expect(await maintenance.eraseOwner('ada', { onProgress: (done) => steps.push(done) })).toBe(
        3,
      );
      expect(steps.length).toBeGreaterThan(0);
      expect(await maintenance.verify()).toEqual([]);
    });
  });

  transferContract(useKit);
}
