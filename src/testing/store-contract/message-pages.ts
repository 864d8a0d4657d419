import { describe, expect, test } from 'vitest';
import { type MessagePage, positionsOf, withPage } from '../../protocol/message-page.ts';
import type { Snapshot } from '../../protocol/snapshot.ts';
import { type Kit, refused, type UseKit } from './kit.ts';

/** Pages of the messages of a state. */
export function messagePageContract(useKit: UseKit): void {
  // A store may read all messages; the agent then takes the page of them.
  const read = async ({ store, scope }: Kit, sessionId: string, messages?: MessagePage) => {
    const snapshot = await store.getSnapshot(scope, { sessionId }, messages && { messages });
    return snapshot && withPage(snapshot, messages);
  };

  /** Compares pages of a session with all of its messages. */
  async function expectPages(kit: Kit, sessionId: string): Promise<void> {
    const { timeline, scope } = kit;
    const whole = await read(kit, sessionId);
    const all = whole?.state?.messages ?? [];
    const { state: _, ...metadata } = whole as Snapshot;
    for (const page of [
      { last: 1 },
      { last: 3 },
      { last: 1000 },
      { last: 2, before: 4 },
      { last: 5, before: 2 },
      { last: 5, before: 0 },
      { last: 5, before: 10_000 },
    ]) {
      const { from, to } = positionsOf(page, all.length);
      const expected = {
        ...metadata,
        state: { ...whole?.state, messages: all.slice(from, to) },
        messageRange: { from, total: all.length },
      };
      expect(await read(kit, sessionId, page)).toEqual(expected);
      const found = await timeline.getSession(scope, sessionId, { state: true, messages: page });
      const session = found && withPage(found, page);
      expect(session?.state).toEqual(expected.state);
      expect(session?.messageRange).toEqual(expected.messageRange);
    }
  }

  describe('pages of messages', () => {
    test('S340: a page has the messages at its positions, marked as in the whole state', async () => {
      const kit = useKit();
      const { turn, timeline, scope, claim } = kit;
      const ids: string[] = [];
      for (const text of ['one', 'two', 'three', 'four']) {
        ids.push((await turn('s', { text })).snapshot.snapshotId);
      }
      await expectPages(kit, 's');
      await timeline.restore(scope, ids[1] ?? '');
      for (const text of ['five', 'six', 'seven']) await turn('s', { text });
      await expectPages(kit, 's');
      await timeline.fork(scope, ids[2] ?? '', { sessionId: 'fork', snapshotId: kit.id() });
      await expectPages(kit, 'fork');
      await turn('fork', { text: 'in the fork' });
      await expectPages(kit, 'fork');
      await claim('s', { mode: 'accepted' });
      await expectPages(kit, 's');
    });

    test('S340: a session without messages has an empty page, and one that is not there has none', async () => {
      const kit = useKit();
      const { store, scope, claim } = kit;
      const { runId } = await claim('s', { mode: 'accepted' });
      const page = { last: 5 };
      const found = await store.getSnapshot(scope, { snapshotId: runId }, { messages: page });
      const empty = found && withPage(found, page);
      expect(empty?.state?.messages).toEqual([]);
      expect(empty?.messageRange).toEqual({ from: 0, total: 0 });
      expect(await read(kit, 'nowhere', { last: 5 })).toBeUndefined();
    });

    test('S340: a page that cannot be is INVALID_ARGUMENT', async () => {
      const kit = useKit();
      const { timeline, store, scope, turn } = kit;
      await turn('s');
      const one = await store.getSnapshot(scope, { sessionId: 's' }, { messages: { last: 1 } });
      if (one?.messageRange === undefined) return;
      const pages = [
        { last: 0 },
        { last: 1.5 },
        { last: 1001 },
        { last: '5' },
        {},
        { last: 5, before: -1 },
        { last: 5, before: 'x' },
      ];
      for (const page of pages as unknown as MessagePage[]) {
        await refused(read(kit, 's', page), 'INVALID_ARGUMENT');
        await refused(
          timeline.getSession(scope, 's', { state: true, messages: page }),
          'INVALID_ARGUMENT',
        );
      }
    });
  });
}
