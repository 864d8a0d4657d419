import { describe, expect, test } from 'vitest';
import { maxIdLength } from '../../protocol/ids.ts';
import { refused, texts, type UseKit } from './kit.ts';

/** Unusual text that every store accepts. */
const oddNames = [
  '../../etc/passwd',
  '..',
  '.',
  'a/b\\c',
  'C:\\x',
  '/',
  ' ',
  '%00',
  '__proto__',
  'constructor',
  'toString',
  "'; DROP TABLE sessions; --",
  '$1',
  'null',
  '\n\r\t',
  'CON',
  'a'.repeat(maxIdLength),
  'é',
  'e\u0301',
  'É',
  '😀',
  '{"a":1}',
];

/** Values that every store rejects. */
const badNames = ['', 'a\0b', '\ud800', 'x'.repeat(10_240), 'x'.repeat(maxIdLength + 1)];

/** Ids from callers. */
export function badInputContract(useKit: UseKit): void {
  describe('ids from outside', () => {
    test('odd session ids are kept as they are and never taken for each other', async () => {
      const { turn, store, scope } = useKit();
      for (const [n, name] of oddNames.entries()) await turn(name, { text: `t${n}` });
      for (const [n, name] of oddNames.entries()) {
        const read = await store.getSnapshot(scope, { sessionId: name });
        expect(read?.sessionId).toBe(name);
        expect(texts(read?.state)).toEqual([`t${n}`, `T${n}`]);
      }
      const sessions = await store.timeline?.listSessions(scope, { limit: 100 });
      expect(sessions?.items.map((each) => each.sessionId).toSorted()).toEqual(
        sessions && oddNames.toSorted(),
      );
    });

    test('odd owners and agents are kept apart', async () => {
      const { turn, store, scope } = useKit();
      const scopes = oddNames.map((name, n) =>
        n % 2 ? { ...scope, owner: name } : { agent: name, owner: name },
      );
      for (const [n, each] of scopes.entries()) await turn('s', { scope: each, text: `t${n}` });
      for (const [n, each] of scopes.entries()) {
        const read = await store.getSnapshot(each, { sessionId: 's' });
        expect(texts(read?.state)).toEqual([`t${n}`, `T${n}`]);
      }
    });

    test('impossible session ids are refused on writing and unknown on reading', async () => {
      const { turn, claim, store, scope, id } = useKit();
      const { snapshotId } = (await turn('s')).snapshot;
      for (const name of badNames) {
        await refused(claim(name), 'INVALID_ARGUMENT');
        expect(await store.getSnapshot(scope, { sessionId: name })).toBeUndefined();
        const { timeline, maintenance } = store;
        if (timeline !== undefined) {
          expect(await timeline.getSession(scope, name)).toBeUndefined();
          expect((await timeline.listSnapshots(scope, name)).items).toEqual([]);
          expect(await timeline.deleteSession(scope, name)).toBe(false);
          await refused(timeline.updateSession(scope, name, { title: 'x' }), 'NOT_FOUND');
          const target = { sessionId: name, snapshotId: id() };
          await refused(timeline.fork(scope, snapshotId, target), 'INVALID_ARGUMENT');
        }
        expect(await maintenance?.exportSession(scope, name)).toBeUndefined();
      }
    });

    test('impossible owners are refused on writing and own nothing', async () => {
      const { claim, store, scope } = useKit();
      for (const owner of badNames) {
        const bad = { ...scope, owner };
        await refused(claim('s', {}, bad), 'INVALID_ARGUMENT');
        expect(await store.getSnapshot(bad, { sessionId: 's' })).toBeUndefined();
        const sessions = await store.timeline?.listSessions(bad);
        expect(sessions?.items ?? []).toEqual([]);
        expect((await store.maintenance?.eraseOwner(owner)) ?? 0).toBe(0);
      }
    });

    test('what is no snapshot id is refused on writing and unknown on reading', async () => {
      const { claim, store, scope, id, runs } = useKit();
      const odd = [...oddNames, ...badNames, id().toUpperCase(), `${id()} `, `{${id()}}`];
      for (const snapshotId of odd) {
        await refused(claim('s', { runId: snapshotId }), 'INVALID_ARGUMENT');
        await refused(claim('s', { from: { snapshotId } }), 'NOT_FOUND');
        expect(await store.getSnapshot(scope, { snapshotId })).toBeUndefined();
        expect(await runs.load(scope, { snapshotId })).toBeUndefined();
        expect(await runs.getRun(scope, snapshotId)).toBeUndefined();
        expect(await runs.heartbeat({ runId: snapshotId, attempt: 1 })).toBe('lost');
        expect(await store.abort?.abortSnapshot(scope, snapshotId)).toBeUndefined();
        expect(await store.events?.read(scope, snapshotId, { limit: 1 })).toBeUndefined();
      }
      expect(await runs.listRuns(scope)).toEqual([]);
      expect(await store.getSnapshot(scope, { sessionId: 's' })).toBeUndefined();
    });
  });
}
