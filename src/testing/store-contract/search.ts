import { describe, expect, test } from 'vitest';
import type { SessionFilter } from '../../store/contract/store.ts';
import { type Kit, refused, type UseKit } from './kit.ts';

async function found({ timeline, scope }: Kit, filter: SessionFilter): Promise<string[]> {
  const { items } = await timeline.listSessions(scope, filter);
  return items.map(({ sessionId }) => sessionId).sort();
}

function searchesText({ opened }: Kit): boolean {
  return opened.searchesText !== false;
}

/** Sessions: search, filters, default titles. */
export function searchContract(useKit: UseKit): void {
  describe('search', () => {
    test('S270 S274: a query finds words in the messages of the head, by their beginnings', async () => {
      const kit = useKit();
      const { turn, scope } = kit;
      await turn('trip', { text: 'Two days in Lisbon, with Zoë' });
      await turn('trip', { text: 'and a day in Porto' });
      await turn('food', { text: "Where's the best café? 東京タワー" });
      await turn('other', { text: 'Lisbon', scope: { ...scope, owner: 'other' } });
      if (!searchesText(kit)) return expect(await found(kit, { query: 'lisbon' })).toEqual([]);
      expect(await found(kit, { query: 'lisbon' })).toEqual(['trip']);
      expect(await found(kit, { query: 'LISB port' })).toEqual(['trip']);
      expect(await found(kit, { query: 'zoë' })).toEqual(['trip']);
      expect(await found(kit, { query: 'CAFÉ' })).toEqual(['food']);
      expect(await found(kit, { query: '京' })).toEqual(['food']);
      expect(await found(kit, { query: 'day' })).toEqual(['trip']);
      expect(await found(kit, { query: 'isbon' })).toEqual([]);
      expect(await found(kit, { query: 'lisbon café' })).toEqual([]);
      for (const query of [
        '"',
        "'lisbon' OR 1",
        'lisbon:* | x',
        'a AND (',
        '\\',
        '!!',
        'lisbon -',
      ]) {
        await expect(found(kit, { query })).resolves.toBeDefined();
      }
      await refused(found(kit, { query: 'x'.repeat(1_001) }), 'INVALID_ARGUMENT');
      await refused(found(kit, { query: 7 as never }), 'INVALID_ARGUMENT');
    });

    test('S271: a search sees every turn, and nothing that the head no longer has', async () => {
      const kit = useKit();
      const { turn, timeline, scope } = kit;
      const { snapshotId } = (await turn('s', { text: 'apple' })).snapshot;
      if (!searchesText(kit)) return expect(await found(kit, { query: 'apple' })).toEqual([]);
      expect(await found(kit, { query: 'apple' })).toEqual(['s']);
      await turn('s', { text: 'banana' });
      expect(await found(kit, { query: 'banana' })).toEqual(['s']);
      await timeline.restore(scope, snapshotId);
      expect(await found(kit, { query: 'banana' })).toEqual([]);
      expect(await found(kit, { query: 'apple' })).toEqual(['s']);
      await timeline.fork(scope, snapshotId, { sessionId: 'fork', snapshotId: kit.id() });
      expect(await found(kit, { query: 'apple' })).toEqual(['fork', 's']);
      await timeline.deleteSession(scope, 's');
      expect(await found(kit, { query: 'apple' })).toEqual(['fork']);
    });

    test('S271: unlisted heads are searched too', async () => {
      const kit = useKit();
      await kit.turn('s', { text: 'apple', listed: false });
      if (!searchesText(kit)) return;
      expect(await found(kit, { query: 'apple' })).toEqual(['s']);
      await kit.turn('s', { text: 'banana', listed: false });
      expect(await found(kit, { query: 'banana apple' })).toEqual(['s']);
    });

    test('S271: what is pruned or deleted leaves the index, too', async () => {
      const kit = useKit();
      const { turn, timeline, maintenance, scope, opened } = kit;
      const { snapshotId } = (await turn('s', { text: 'apple' })).snapshot;
      await turn('s', { text: 'erasable' });
      await turn('gone', { text: 'deletable' });
      await turn('replaced', { text: 'before', listed: false });
      for (const query of ['erasable', 'deletable', 'before']) {
        expect(await found(kit, { query })).toHaveLength(searchesText(kit) ? 1 : 0);
      }
      await timeline.restore(scope, snapshotId);
      await maintenance.prune({ keepLast: 0 }, scope);
      await timeline.deleteSession(scope, 'gone');
      const content = (await opened.dump?.()) ?? '';
      expect(content.includes('erasable') || content.includes('deletable')).toBe(false);
      expect(await maintenance.verify()).toEqual([]);
    });

    test('a search is paged like any list', async () => {
      const kit = useKit();
      const { turn, timeline, scope } = kit;
      for (const name of ['a', 'b', 'c', 'd', 'e']) {
        await turn(name, { text: name === 'c' ? 'pear' : 'apple' });
      }
      if (!searchesText(kit)) return;
      const seen: string[] = [];
      let cursor: string | undefined;
      do {
        const options = { query: 'apple', limit: 2, ...(cursor === undefined ? {} : { cursor }) };
        const page = await timeline.listSessions(scope, options);
        seen.push(...page.items.map((each) => each.sessionId));
        cursor = page.next;
      } while (cursor !== undefined);
      expect(seen.sort()).toEqual(['a', 'b', 'd', 'e']);
    });

    test('S272: sessions are filtered by a failed last turn, a waiting tool call and labels', async () => {
      const kit = useKit();
      const { turn, claim, timeline, scope, tick } = kit;
      const good = await turn('good');
      await turn('failed');
      await tick();
      await turn('failed', { status: 'failed', finishReason: 'failed' });
      await turn('failed at once', { status: 'failed', finishReason: 'failed' });
      await turn('recovered', { status: 'failed', finishReason: 'failed' });
      await tick();
      await turn('recovered', { listed: false });
      await turn('asked', { finishReason: 'interrupted' });
      await turn('answering', { finishReason: 'interrupted' });
      await claim('answering');
      await timeline.label(scope, good.snapshot.snapshotId, 'keep');
      expect(await found(kit, { failed: true })).toEqual(['failed', 'failed at once']);
      expect(await found(kit, { waiting: true })).toEqual(['asked']);
      expect(await found(kit, { labelled: true })).toEqual(['good']);
      expect(await found(kit, { labelled: true, failed: true })).toEqual([]);
      if (searchesText(kit)) {
        expect(await found(kit, { failed: true, query: 'hello' })).toEqual(['failed']);
      }
      expect(await found(kit, { failed: false })).toHaveLength(6);
      await timeline.label(scope, good.snapshot.snapshotId, null);
      expect(await found(kit, { labelled: true })).toEqual([]);
    });

    test('S273: a default title is for a session without one, and changes nothing else', async () => {
      const { turn, timeline, scope, tick } = useKit();
      await turn('s');
      const before = await timeline.getSession(scope, 's');
      await tick();
      const named = await timeline.updateSession(scope, 's', { defaultTitle: 'First' });
      expect(named).toEqual({ ...before, title: 'First' });
      await timeline.updateSession(scope, 's', { defaultTitle: 'Second' });
      expect(await timeline.getSession(scope, 's')).toEqual(named);
      await timeline.updateSession(scope, 's', { title: 'Renamed' });
      await timeline.updateSession(scope, 's', { defaultTitle: 'Third' });
      expect(await timeline.getSession(scope, 's')).toMatchObject({ title: 'Renamed' });
      await refused(
        timeline.updateSession(scope, 's', { defaultTitle: 'x'.repeat(1_001) }),
        'INVALID_ARGUMENT',
      );
      await refused(timeline.updateSession(scope, 'unknown', { defaultTitle: 'x' }), 'NOT_FOUND');
    });

    test('S273: a commit gives a session without a title its default title', async () => {
      const { turn, timeline, scope } = useKit();
      const titleOf = async (): Promise<string | undefined> =>
        (await timeline.getSession(scope, 's'))?.title;
      await turn('s');
      expect(await titleOf()).toBeUndefined();
      await turn('s', { defaultTitle: 'First' });
      expect(await titleOf()).toBe('First');
      await turn('s', { defaultTitle: 'Second' });
      expect(await titleOf()).toBe('First');
      await turn('failed', { defaultTitle: 'Failed', status: 'failed', finishReason: 'failed' });
      expect((await timeline.getSession(scope, 'failed'))?.title).toBe('Failed');
      await refused(turn('long', { defaultTitle: 'x'.repeat(1_001) }), 'INVALID_ARGUMENT');
    });
  });
}
