import { describe, expect, test } from 'vitest';
import type { Artifact } from '../../protocol/state.ts';
import type { SessionState } from '../../session/session-state.ts';
import { type Kit, say, stateOf, type UseKit } from './kit.ts';

const text: string = Array.from({ length: 20_000 }, (_, at) => `${(at * 7919) % 10_007} `).join('');
const edited = `${text.slice(0, 50_000)}four${text.slice(50_004)}`;
const data = `data:image/png;base64,${'iVBORw0KGgo'.repeat(2_000)}`;

function stateWith(...artifacts: Artifact[]): SessionState {
  return stateOf({ messages: [say('user', 'hi'), say('model', 'HI')], artifacts });
}

const first = stateWith(
  { name: 'a.txt', parts: [{ text }], metadata: { kind: 'text' } },
  { name: 'b.png', parts: [{ media: { url: data, contentType: 'image/png' } }] },
);
const second = stateWith(
  { name: 'a.txt', parts: [{ text: edited }, { text: 'short' }], metadata: { kind: 'text' } },
  { name: 'b.png', parts: [{ media: { url: data, contentType: 'image/png' } }] },
);
// Half of a surrogate pair, in a text that is long enough to be cut.
const third = stateWith({ name: 'c.txt', parts: [{ text: `${text}\ud800${text}` }] });

// Data that is stored as bytes, and data that looks like it and must read as it was written all the same.
const random = Array.from(
  { length: 30_000 },
  (_, at) => (Math.imul(at, 2_654_435_761) >>> 13) & 255,
);
const base64 = btoa(String.fromCharCode(...random)).slice(0, -4);
const urls: readonly string[] = [
  `data:image/png;base64,${base64}`,
  `data:image/png;base64,${base64}QQ==`,
  `data:image/png;base64,${base64}QUE=`,
  // Not as an encoder would write it: bits that are not zero, padding that is missing or in the middle.
  `data:image/png;base64,${base64}QR==`,
  `data:image/png;base64,${base64}QQ`,
  `data:image/png;base64,${base64}QQ==${base64}`,
  `data:image/png;base64,${base64}-_`,
  `data:image/png;name="a,b";base64,${base64}`,
  `data:;base64,${base64}`,
  `data:text/plain,${'%20'.repeat(9_000)}`,
  `DATA:image/png;base64,${base64}`,
  `https://example.com/${base64}`,
  base64,
];
const binary = stateWith(
  ...urls.map((url, at) => ({ name: `${at}`, parts: [{ media: { url } }, { text: 'note' }] })),
);
const fewer = stateWith(...binary.artifacts.slice(1, 4));
const renamed = stateWith({ name: 'again', parts: [{ media: { url: urls[0] ?? '' } }] });

/** Artifacts with long texts, which stores keep in chunks. */
export function longArtifactContract(useKit: UseKit): void {
  const artifactsOf = async ({ store, scope }: Kit, snapshotId: string): Promise<unknown> =>
    (await store.getSnapshot(scope, { snapshotId }))?.state?.artifacts;

  describe('artifacts with long texts', () => {
    test('S252: every version reads as it was written, also after others were pruned or deleted', async () => {
      const kit = useKit();
      const { turn, maintenance, timeline, scope } = kit;
      const ids: string[] = [];
      for (const state of [first, second, third, second]) {
        ids.push((await turn('s', { state })).snapshot.snapshotId);
      }
      const [a = '', b = '', c = '', d = ''] = ids;
      const versions = [first, second, third, second].map(({ artifacts }) => artifacts);
      for (const [at, id] of ids.entries()) {
        expect(await artifactsOf(kit, id)).toEqual(versions[at]);
      }
      await timeline.fork(scope, a, { sessionId: 'fork', snapshotId: kit.id() });
      await turn('other', { state: first });
      expect(await maintenance.verify()).toEqual([]);
      await maintenance.prune({ keepLast: 1 }, scope);
      expect(await artifactsOf(kit, d)).toEqual(second.artifacts);
      expect(await artifactsOf(kit, b)).toBeUndefined();
      expect(await artifactsOf(kit, c)).toBeUndefined();
      expect(await maintenance.verify()).toEqual([]);
      await timeline.deleteSession(scope, 's');
      expect((await timeline.getSession(scope, 'fork', { state: true }))?.state?.artifacts).toEqual(
        first.artifacts,
      );
      await turn('fork', { state: second });
      expect(await maintenance.verify()).toEqual([]);
    });

    test('S556: data reads to the character, also after others were pruned or deleted', async () => {
      const kit = useKit();
      const { turn, maintenance, timeline, store, scope } = kit;
      const ids: string[] = [];
      const states = [binary, fewer, renamed, binary];
      for (const state of states) ids.push((await turn('s', { state })).snapshot.snapshotId);
      for (const [at, id] of ids.entries()) {
        expect(await artifactsOf(kit, id)).toEqual(states[at]?.artifacts);
      }
      await timeline.fork(scope, ids[2] ?? '', { sessionId: 'fork', snapshotId: kit.id() });
      expect(await maintenance.verify()).toEqual([]);
      const document = await maintenance.exportSession(scope, 's');
      await maintenance.prune({ keepLast: 1 }, scope);
      expect(await artifactsOf(kit, ids[1] ?? '')).toBeUndefined();
      expect(await artifactsOf(kit, ids[3] ?? '')).toEqual(binary.artifacts);
      expect(await maintenance.verify()).toEqual([]);
      await timeline.deleteSession(scope, 's');
      expect(await maintenance.verify()).toEqual([]);
      const fork = await timeline.getSession(scope, 'fork', { state: true });
      expect(fork?.state?.artifacts).toEqual(renamed.artifacts);
      if (document === undefined) expect.fail('nothing was exported');
      await maintenance.importSession(scope, JSON.parse(JSON.stringify(document)));
      const read = await store.getSnapshot(scope, { sessionId: 's' });
      expect(read?.state?.artifacts).toEqual(binary.artifacts);
      expect(await maintenance.verify()).toEqual([]);
    });

    test('S252: an export has the texts, and goes in elsewhere', async () => {
      const { turn, maintenance, timeline, store, scope } = useKit();
      await turn('s', { state: first });
      await turn('s', { state: second });
      const document = await maintenance.exportSession(scope, 's');
      if (document === undefined) expect.fail('nothing was exported');
      await timeline.deleteSession(scope, 's');
      await maintenance.importSession(scope, JSON.parse(JSON.stringify(document)));
      const read = await store.getSnapshot(scope, { sessionId: 's' });
      expect(read?.state?.artifacts).toEqual(second.artifacts);
      expect(await maintenance.verify()).toEqual([]);
    });
  });
}
