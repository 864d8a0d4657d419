import { describe, expect, test } from 'vitest';
import { type Kit, refused, texts, type UseKit } from './kit.ts';

async function idsOf({ timeline, scope }: Kit, query?: string): Promise<string[]> {
  const { items } = await timeline.listSessions(scope, query === undefined ? {} : { query });
  return items.map((each) => each.sessionId);
}

/** Sessions: metadata, listing, deletion. */
export function sessionContract(useKit: UseKit): void {
  describe('sessions', () => {
    test('a session tells its head, its turns, what runs, and its state when asked', async () => {
      const { turn, claim, timeline, scope } = useKit();
      expect(await timeline.getSession(scope, 's')).toBeUndefined();
      const held = await claim('new');
      expect(await timeline.getSession(scope, 'new', { state: true })).toEqual({
        sessionId: 'new',
        agent: scope.agent,
        turnCount: 0,
        createdAt: expect.any(String),
        updatedAt: expect.any(String),
        running: held.runId,
      });
      await turn('s', { text: 'one' });
      const { snapshotId } = (await turn('s', { text: 'two' })).snapshot;
      const session = await timeline.getSession(scope, 's', { state: true });
      expect(session).toMatchObject({ headId: snapshotId, turnCount: 2 });
      expect(texts(session?.state)).toEqual(['one', 'ONE', 'two', 'TWO']);
      expect(session?.running).toBeUndefined();
      expect((await timeline.getSession(scope, 's'))?.state).toBeUndefined();
      expect(await timeline.getSession({ ...scope, owner: 'o' }, 's')).toBeUndefined();
    });

    test('title and metadata are set, kept and removed', async () => {
      const { turn, timeline, scope } = useKit();
      await turn('s');
      const metadata = JSON.parse('{"__proto__": 1, "a": {"b": [null]}}');
      await timeline.updateSession(scope, 's', { title: 'Ein Titel', metadata });
      await turn('s');
      const session = await timeline.getSession(scope, 's');
      expect(session).toMatchObject({ title: 'Ein Titel' });
      expect(JSON.stringify(session?.metadata)).toBe(JSON.stringify(metadata));
      const untitled = await timeline.updateSession(scope, 's', { title: null });
      expect(untitled.title).toBeUndefined();
      expect(untitled.metadata).toEqual(session?.metadata);
      const bare = await timeline.updateSession(scope, 's', { title: 'x', metadata: null });
      expect(bare).toMatchObject({ title: 'x', turnCount: 2 });
      expect(bare.metadata).toBeUndefined();
      await refused(timeline.updateSession(scope, 'unknown', { title: 'x' }), 'NOT_FOUND');
      expect(await timeline.getSession(scope, 'unknown')).toBeUndefined();
    });

    test('titles, labels and metadata that are too long, or no texts, are refused', async () => {
      const { turn, timeline, scope } = useKit();
      const { snapshotId } = (await turn('s')).snapshot;
      const wrong = [
        () => timeline.updateSession(scope, 's', { title: 'x'.repeat(1_001) }),
        () => timeline.updateSession(scope, 's', { title: 7 as never }),
        () => timeline.updateSession(scope, 's', { metadata: { a: 'x'.repeat(16_384) } }),
        () => timeline.label(scope, snapshotId, 'x'.repeat(257)),
        () => timeline.label(scope, snapshotId, {} as never),
      ];
      for (const call of wrong) await refused(call(), 'INVALID_ARGUMENT');
      await expect(wrong[0]?.()).rejects.toThrow(
        'The title has 1,001 characters; the maximum is 1,000.',
      );
      const metadata = { a: 'x'.repeat(16_000) };
      const title = 'x'.repeat(1_000);
      expect(await timeline.updateSession(scope, 's', { title, metadata })).toMatchObject({
        title,
        metadata,
      });
      const label = 'x'.repeat(256);
      expect(await timeline.label(scope, snapshotId, label)).toMatchObject({ label });
    });

    test('sessions are listed by their last change, newest first, page by page', async () => {
      const kit = useKit();
      const { turn, timeline, scope, tick } = kit;
      for (const name of ['a', 'b', 'c', 'd', 'e']) {
        await turn(name);
        await tick();
      }
      await turn('b');
      await turn('of another', { scope: { ...scope, owner: 'other' } });
      expect(await idsOf(kit)).toEqual(['b', 'e', 'd', 'c', 'a']);
      const seen: string[] = [];
      let cursor: string | undefined;
      do {
        const options = { limit: 2, ...(cursor === undefined ? {} : { cursor }) };
        const page = await timeline.listSessions(scope, options);
        seen.push(...page.items.map((each) => each.sessionId));
        cursor = page.next;
      } while (cursor !== undefined);
      expect(seen).toEqual(['b', 'e', 'd', 'c', 'a']);
      await refused(timeline.listSessions(scope, { cursor: '{}' }), 'INVALID_ARGUMENT');
    });

    test('the owners of sessions are listed once each, page by page, without those who have none', async () => {
      const { turn, timeline, scope } = useKit();
      expect(await timeline.listOwners?.()).toEqual({ items: [] });
      await turn('nobodys');
      for (const owner of ['cem', 'ann', 'bob', 'Ann']) {
        await turn('s', { scope: { ...scope, owner } });
        await turn('t', { scope: { agent: 'another', owner } });
      }
      const first = await timeline.listOwners?.({ limit: 3 });
      expect(first?.items).toEqual(['Ann', 'ann', 'bob']);
      const rest = await timeline.listOwners?.({ limit: 3, cursor: first?.next ?? '' });
      expect(rest).toEqual({ items: ['cem'] });
      await timeline.deleteSession({ ...scope, owner: 'bob' }, 's');
      expect((await timeline.listOwners?.())?.items).toContain('bob');
      await timeline.deleteSession({ agent: 'another', owner: 'bob' }, 't');
      expect(await timeline.listOwners?.()).toEqual({ items: ['Ann', 'ann', 'cem'] });
      await refused(
        timeline.listOwners?.({ cursor: '{}' }) ?? Promise.resolve(),
        'INVALID_ARGUMENT',
      );
    });

    test('a page neither repeats nor loses sessions of the same moment', async () => {
      const { turn, timeline, scope } = useKit();
      const names = Array.from({ length: 9 }, (_, n) => `s${n}`);
      for (const name of names) await turn(name);
      const seen: string[] = [];
      let cursor: string | undefined;
      do {
        const options = { limit: 2, ...(cursor === undefined ? {} : { cursor }) };
        const page = await timeline.listSessions(scope, options);
        seen.push(...page.items.map((each) => each.sessionId));
        cursor = page.next;
      } while (cursor !== undefined);
      expect(seen.toSorted()).toEqual(names);
    });

    test('a query looks in id, title and metadata, and takes every character as it is', async () => {
      const kit = useKit();
      const { turn, timeline, scope } = kit;
      for (const name of ['alpha', 'beta', 'gamma']) await turn(name);
      await timeline.updateSession(scope, 'beta', { title: 'Hundred % of_it' });
      await timeline.updateSession(scope, 'gamma', { metadata: { customer: 'Jürgen "J"' } });
      expect(await idsOf(kit, 'ALPH')).toEqual(['alpha']);
      expect(await idsOf(kit, '% OF_')).toEqual(['beta']);
      expect(await idsOf(kit, 'rgen')).toEqual(['gamma']);
      expect(await idsOf(kit, '%a%')).toEqual([]);
      expect(await idsOf(kit, '_eta')).toEqual([]);
      expect(await idsOf(kit, "' OR 1=1 --")).toEqual([]);
      expect(await idsOf(kit, '')).toHaveLength(3);
    });

    test('an erased session leaves nothing', async () => {
      const { turn, claim, commit, timeline, scope, store, runs, opened } = useKit();
      const ids: string[] = [];
      for (let n = 0; n < 3; n++) {
        ids.push((await turn('s', { text: `forget-me ${n}` })).snapshot.snapshotId);
      }
      const held = await claim('s', { mode: 'accepted' });
      await runs.saveStep(held, 'k', 'forget-me');
      await commit(held, {
        text: 'forget-me too',
        events: [{ attempt: 1, seq: 0, chunk: { status: 'forget-me' } }],
      });
      await timeline.updateSession(scope, 's', {
        title: 'forget-me',
        metadata: { a: 'forget-me' },
      });
      expect(await timeline.deleteSession(scope, 's')).toBe(true);
      expect(await timeline.deleteSession(scope, 's')).toBe(false);
      expect(await timeline.getSession(scope, 's')).toBeUndefined();
      for (const snapshotId of [...ids, held.runId]) {
        expect(await store.getSnapshot(scope, { snapshotId })).toBeUndefined();
        expect(await store.events?.read(scope, snapshotId, { limit: 1 })).toBeUndefined();
      }
      expect((await timeline.listSnapshots(scope, 's')).items).toEqual([]);
      expect((await timeline.listSessions(scope)).items).toEqual([]);
      expect(await store.maintenance?.verify()).toEqual(store.maintenance && []);
      if (opened.dump !== undefined) {
        expect((await opened.dump()).toLowerCase()).not.toContain('forget-me');
      }
      expect((await turn('s')).snapshot).toMatchObject({ index: 0, turnIndex: 0 });
    });

    test('what a fork shares stays when its source is erased, and the other way round', async () => {
      const { turn, timeline, scope, id, textsOf, store } = useKit();
      await turn('s', { text: 'one' });
      const source = (await turn('s', { text: 'two' })).snapshot;
      await turn('s', { text: 'three' });
      for (const sessionId of ['f', 'g']) {
        await timeline.fork(scope, source.snapshotId, { sessionId, snapshotId: id() });
      }
      await turn('f', { text: 'four' });
      await timeline.deleteSession(scope, 'g');
      expect(await textsOf({ sessionId: 's' })).toHaveLength(6);
      await timeline.deleteSession(scope, 's');
      expect(await textsOf({ sessionId: 'f' })).toEqual(
        ['one', 'two', 'four'].flatMap((text) => [text, text.toUpperCase()]),
      );
      await turn('f', { text: 'five' });
      expect(await textsOf({ sessionId: 'f' })).toHaveLength(8);
      expect(await store.maintenance?.verify()).toEqual(store.maintenance && []);
    });

    test('a session that is being worked on is not erased', async () => {
      const { turn, claim, runs, timeline, scope } = useKit();
      await turn('s');
      const held = await claim('s');
      await refused(timeline.deleteSession(scope, 's'), 'ABORTED', { running: held.runId });
      await runs.release(held);
      expect(await timeline.deleteSession({ ...scope, owner: 'o' }, 's')).toBe(false);
      expect(await timeline.deleteSession(scope, 's')).toBe(true);
    });

    test('sub-agents’ sessions go with the session they were started in', async () => {
      const kit = useKit();
      const { turn, claim, runs, timeline, scope } = kit;
      const sub = { agent: `${scope.agent}-sub` };
      const started = (agent: string, sessionId: string) => ({
        startedBy: { agent, sessionId, snapshotId: kit.id() },
      });
      await turn('s');
      const request = started(scope.agent, 's');
      await turn('child', { scope: sub, request });
      await turn('grandchild', { scope: sub, request: started(sub.agent, 'child') });
      await turn('stranger', { scope: sub, request: started(scope.agent, 'another') });
      await turn('owned', { scope: { ...sub, owner: 'o' }, request: started(scope.agent, 's') });
      expect(await timeline.getSession(sub, 'child')).toMatchObject(request);
      const held = await claim('grandchild', {}, sub);
      await refused(timeline.deleteSession(scope, 's'), 'ABORTED', { running: held.runId });
      expect(await timeline.getSession(sub, 'child')).toBeDefined();
      await runs.release(held);
      expect(await timeline.deleteSession(scope, 's')).toBe(true);
      expect(await timeline.getSession(sub, 'child')).toBeUndefined();
      expect(await timeline.getSession(sub, 'grandchild')).toBeUndefined();
      expect(await timeline.getSession(sub, 'stranger')).toBeDefined();
      expect(await timeline.getSession({ ...sub, owner: 'o' }, 'owned')).toBeDefined();
    });
  });
}
