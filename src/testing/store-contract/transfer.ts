import { describe, expect, test } from 'vitest';
import { contentHash, formerContentHash } from '../../core/json/hash.ts';
import type { SessionExport } from '../../session/export-session.ts';
import { formerHashState, hashState } from '../../session/session-state.ts';
import { type Kit, refused, say, stateOf, texts, type UseKit } from './kit.ts';

/** A session that uses every feature. */
async function rich({ turn, claim, runs, timeline, scope }: Kit): Promise<void> {
  const root = (await turn('s', { text: 'root', usage: { outputTokens: 2 } })).snapshot;
  await turn('s', { text: 'left' });
  await turn('s', { status: 'failed', error: { status: 'INTERNAL', message: 'x' } });
  const state = stateOf({
    messages: [say('user', 'rewritten'), say('model', 'left')],
    custom: { big: 'x'.repeat(1000), n: 1 },
    artifacts: [{ name: 'a', parts: [{ text: 'one' }] }],
  });
  await turn('s', { state, totals: { tokens: 5, toolCalls: 1 } });
  const request = { from: { snapshotId: root.snapshotId } };
  const right = (await turn('s', { text: 'right', request, finishReason: 'interrupted' })).snapshot;
  await turn('s', { text: 'edited', event: 'edit', edit: { by: 'Ada', reason: 'why' } });
  await turn('s', { text: 'latest', listed: false });
  await timeline.label(scope, right.snapshotId, 'here');
  await timeline.updateSession(scope, 's', { title: 'Title', metadata: { a: 1 } });
  const held = await claim('s');
  await runs.detach(held, { mode: 'detached', inputs: [] });
}

/** The document with a change in its JSON text. */
function tampered(document: SessionExport, from: string, to: string): SessionExport {
  const text = JSON.stringify(document);
  expect(text).toContain(from);
  return JSON.parse(text.replaceAll(from, to));
}

/** Export and import of one session as a document. */
export function transferContract(useKit: UseKit): void {
  describe('export and import', () => {
    test('a session comes out, and goes in elsewhere with everything it had', async () => {
      const kit = useKit();
      const { maintenance, scope, timeline, store, abort } = kit;
      await rich(kit);
      const document = await maintenance.exportSession(scope, 's');
      if (document === undefined) expect.fail('nothing was exported');
      const plain: SessionExport = JSON.parse(JSON.stringify(document));
      expect(plain).toEqual(document);
      for (const each of document.snapshots) {
        expect(['succeeded', 'failed', 'aborted']).toContain(each.status);
      }
      const runningId = (await timeline.getSession(scope, 's'))?.running ?? '';
      await abort.abortSnapshot(scope, runningId);
      const { items: before } = await timeline.listSnapshots(scope, 's', { includeOrphaned: true });
      const states = [];
      for (const { snapshotId } of before.slice(0, -1)) {
        states.push(await store.getSnapshot(scope, { snapshotId }));
      }
      const head = await store.getSnapshot(scope, { sessionId: 's' });
      await timeline.deleteSession(scope, 's');
      const info = await maintenance.importSession(scope, plain);
      expect(info).toMatchObject({ sessionId: 's', title: 'Title', metadata: { a: 1 } });
      for (const state of states) {
        const read = await store.getSnapshot(scope, { snapshotId: state?.snapshotId ?? '' });
        expect(read).toEqual(state);
      }
      expect(await store.getSnapshot(scope, { sessionId: 's' })).toEqual(head);
      expect(await maintenance.exportSession(scope, 's')).toEqual(document);
      expect(await maintenance.verify()).toEqual([]);
      expect((await kit.turn('s')).snapshot.index).toBe(6);
      expect((await kit.claim('s')).nextIndex).toBe(7);
    });

    test('beside its original it gets another id, and its snapshots new ones', async () => {
      const kit = useKit();
      const { maintenance, scope, timeline, textsOf, turn } = kit;
      for (const text of ['a', 'b', 'c']) await turn('s', { text });
      const document = await maintenance.exportSession(scope, 's');
      if (document === undefined) expect.fail('nothing was exported');
      await refused(maintenance.importSession(scope, document), 'ALREADY_EXISTS');
      await maintenance.importSession(scope, document, { sessionId: 'copy' });
      const other = { ...scope, owner: 'other' };
      await maintenance.importSession(other, document);
      const ids = async (of: typeof scope, sessionId: string) =>
        (await timeline.listSnapshots(of, sessionId)).items.map((each) => each.snapshotId);
      const all = [
        ...(await ids(scope, 's')),
        ...(await ids(scope, 'copy')),
        ...(await ids(other, 's')),
      ];
      expect(new Set(all).size).toBe(9);
      await timeline.deleteSession(scope, 's');
      expect(await textsOf({ sessionId: 'copy' })).toEqual(['a', 'A', 'b', 'B', 'c', 'C']);
      expect((await turn('copy')).snapshot).toMatchObject({ index: 3, turnIndex: 3 });
      expect(await maintenance.verify()).toEqual([]);
    });

    test('each message stands in a document once', async () => {
      const { maintenance, scope, turn } = useKit();
      for (let n = 0; n < 20; n++) await turn('s', { text: `message-${n}.` });
      const text = JSON.stringify(await maintenance.exportSession(scope, 's'));
      expect(text.split('message-3.')).toHaveLength(2);
      expect(await maintenance.exportSession(scope, 'unknown')).toBeUndefined();
      expect(await maintenance.exportSession({ ...scope, owner: 'o' }, 's')).toBeUndefined();
    });

    test('S251: a document with hashes of the first definition goes in, and its state verifies', async () => {
      const { maintenance, scope, timeline, store, turn } = useKit();
      const custom = { list: Array.from({ length: 100 }, (_, n) => n), text: 'long '.repeat(2000) };
      const state = stateOf({ messages: [say('user', 'hi'), say('model', 'HI')], custom });
      await turn('s', { state });
      const document = await maintenance.exportSession(scope, 's');
      if (document === undefined) expect.fail('nothing was exported');
      await timeline.deleteSession(scope, 's');
      const former = [
        ['"format":2', '"format":1'],
        [hashState(state), formerHashState(state)],
        [contentHash(custom), formerContentHash(custom)],
      ] as const;
      const old = former.reduce((each, [from, to]) => tampered(each, from, to), document);
      await maintenance.importSession(scope, old);
      expect((await store.getSnapshot(scope, { sessionId: 's' }))?.state?.custom).toEqual(custom);
      expect(await maintenance.verify()).toEqual([]);
      await turn('s', { text: 'more' });
      expect(await maintenance.verify()).toEqual([]);
    });

    test('a document that was changed, is none or is too new is refused and leaves nothing', async () => {
      const kit = useKit();
      const { maintenance, scope, timeline, turn } = kit;
      await turn('s', { text: 'the text' });
      const document = await maintenance.exportSession(scope, 's');
      if (document === undefined) expect.fail('nothing was exported');
      await timeline.deleteSession(scope, 's');
      const load = (each: unknown) => maintenance.importSession(scope, each as SessionExport);
      await refused(load(tampered(document, 'the text', 'another')), 'DATA_LOSS');
      const hash = String(document.snapshots[0]?.stateHash);
      await refused(load(tampered(document, hash, '0'.repeat(64))), 'DATA_LOSS');
      await refused(load(tampered(document, '"format":1', '"format":5')), 'FAILED_PRECONDITION');
      await refused(load({}), 'INVALID_ARGUMENT');
      await refused(load(null), 'INVALID_ARGUMENT');
      await refused(load({ ...document, snapshots: [] }), 'INVALID_ARGUMENT');
      await refused(load(tampered(document, '"turnEnd"', '"whenever"')), 'INVALID_ARGUMENT');
      const options = { sessionId: '' };
      await refused(maintenance.importSession(scope, document, options), 'INVALID_ARGUMENT');
      expect((await timeline.listSessions(scope)).items).toEqual([]);
      expect(await maintenance.verify()).toEqual([]);
      await maintenance.importSession(scope, document);
      expect(texts((await timeline.getSession(scope, 's', { state: true }))?.state)).toEqual([
        'the text',
        'THE TEXT',
      ]);
    });
  });
}
