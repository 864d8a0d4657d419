import { describe, expect, test } from 'vitest';
import { createSha256 } from '../../core/platform.ts';
import { filePart } from '../../protocol/artifacts.ts';
import { hashState, type SessionState } from '../../session/session-state.ts';
import type { Claim, FilePlace, OpenFile, StoredFile } from '../../store/contract/store.ts';
import { type Kit, refused, say, stateOf, type UseKit } from './kit.ts';

/** Bytes that look random. */
function bytesOf(length: number, seed = 1): Uint8Array<ArrayBuffer> {
  const bytes = new Uint8Array(length);
  for (let at = 0, value = seed; at < length; at++) {
    value = (Math.imul(value, 1_103_515_245) + 12_345) >>> 0;
    bytes[at] = value >>> 16;
  }
  return bytes;
}

async function* inChunks(
  bytes: Uint8Array,
  length = 100_000,
): AsyncGenerator<Uint8Array<ArrayBufferLike>> {
  for (let at = 0; at < bytes.length; at += length) yield bytes.subarray(at, at + length);
}

function hashOf(bytes: Uint8Array): string {
  const sum = createSha256();
  sum.update(bytes);
  return sum.hex();
}

async function readAll(
  file: OpenFile | undefined,
  from = 0,
  to = file?.size ?? 0,
): Promise<Uint8Array> {
  if (file === undefined) expect.fail('the file is not in the store');
  const bytes = new Uint8Array(to - from);
  let at = 0;
  for await (const piece of file.read(from, to)) {
    bytes.set(piece, at);
    at += piece.length;
  }
  expect(at).toBe(bytes.length);
  return bytes;
}

function stateWith(...files: readonly StoredFile[]): SessionState {
  const artifacts = files.map((file, at) => ({
    name: `file-${at}`,
    parts: [filePart({ ...file, contentType: 'application/octet-stream' })],
  }));
  return stateOf({ messages: [say('user', 'hi'), say('model', 'HI')], artifacts });
}

// Three pieces of a store, the last of them short.
const bytes = bytesOf(600_000);
const other = bytesOf(300_001, 7);

/** Files that are stored and read in pieces. */
export function fileContract(useKit: UseKit): void {
  const place = ({ scope }: Kit, sessionId: string, held?: Claim): FilePlace => ({
    scope,
    sessionId,
    ...(held && { runId: held.runId }),
  });
  const save = ({ files, scope }: Kit, held: Claim, content = bytes): Promise<StoredFile> =>
    files.write({ scope, run: held }, inChunks(content));
  /** A turn that saves files. */
  const turnWith = async (kit: Kit, sessionId: string, ...contents: Uint8Array<ArrayBuffer>[]) => {
    const held = await kit.claim(sessionId);
    const stored: StoredFile[] = [];
    for (const content of contents) stored.push(await save(kit, held, content));
    const { snapshot } = await kit.commit(held, { state: stateWith(...stored) });
    return { snapshotId: snapshot.snapshotId, stored };
  };
  const isThere = async (kit: Kit, sessionId: string, hash: string): Promise<boolean> =>
    (await kit.files.open(place(kit, sessionId), hash)) !== undefined;

  describe('files', () => {
    test('S626: are read as they were stored, whole and in ranges', async () => {
      const kit = useKit();
      const { stored } = await turnWith(kit, 's', bytes, new Uint8Array(0), bytesOf(1));
      expect(stored.map(({ size }) => size)).toEqual([600_000, 0, 1]);
      expect(stored.map(({ hash }) => hash)).toEqual(
        [bytes, new Uint8Array(0), bytesOf(1)].map(hashOf),
      );
      const file = await kit.files.open(place(kit, 's'), hashOf(bytes));
      expect(file?.size).toBe(600_000);
      expect(hashOf(await readAll(file))).toBe(hashOf(bytes));
      const ranges = [
        [0, 1],
        [262_143, 262_145],
        [262_144, 524_288],
        [599_999, 600_000],
        [600_000, 600_000],
        [1, 599_999],
      ] as const;
      for (const [from, to] of ranges) {
        expect(await readAll(file, from, to)).toEqual(bytes.slice(from, to));
      }
      for await (const piece of file?.read(0, 600_000) ?? []) {
        expect(piece.length).toBeLessThanOrEqual(262_144);
        break;
      }
      const empty = await kit.files.open(place(kit, 's'), hashOf(new Uint8Array(0)));
      expect((await readAll(empty)).length).toBe(0);
      expect(await kit.files.open(place(kit, 's'), hashOf(other))).toBeUndefined();
      expect(await kit.maintenance.verify()).toEqual([]);
    });

    test('S627: later turns, branches and forks share a file, which goes with the last of them', async () => {
      const kit = useKit();
      const { turn, timeline, maintenance, scope } = kit;
      const { snapshotId, stored } = await turnWith(kit, 's', bytes, other);
      const [file = expect.fail('no file'), second = expect.fail('no file')] = stored;
      // The next turn names one of them again, without storing it.
      await turn('s', { state: stateWith(file) });
      await timeline.fork(scope, snapshotId, { sessionId: 'fork', snapshotId: kit.id() });
      await timeline.restore(scope, snapshotId);
      await turn('s', { state: stateWith(file) });
      await turn('fork', { state: stateWith(second) });
      expect(await maintenance.verify()).toEqual([]);
      await maintenance.prune({ keepLast: 1 }, scope);
      expect(await maintenance.verify()).toEqual([]);
      expect(await readAll(await kit.files.open(place(kit, 's'), file.hash))).toEqual(bytes);
      expect(await readAll(await kit.files.open(place(kit, 'fork'), second.hash))).toEqual(other);
      await timeline.deleteSession(scope, 's');
      expect(await isThere(kit, 's', file.hash)).toBe(false);
      expect(await isThere(kit, 'fork', file.hash)).toBe(false);
      expect(await readAll(await kit.files.open(place(kit, 'fork'), second.hash))).toEqual(other);
      await timeline.deleteSession(scope, 'fork');
      expect(await isThere(kit, 'fork', second.hash)).toBe(false);
      expect(await maintenance.verify()).toEqual([]);
    });

    test('S627: equal content of two sessions is stored once, and stays while one has it', async () => {
      const kit = useKit();
      const { timeline, maintenance, scope } = kit;
      const owned = { ...scope, owner: 'ann' };
      await turnWith(kit, 'a', bytes);
      await turnWith(kit, 'b', bytes);
      const mine = await kit.claim('c', {}, owned);
      const file = await kit.files.write({ scope: owned, run: mine }, inChunks(bytes, 77_777));
      await kit.commit(mine, { state: stateWith(file) }, owned);
      await timeline.deleteSession(scope, 'a');
      expect(await isThere(kit, 'b', file.hash)).toBe(true);
      await maintenance.eraseOwner('ann');
      expect(await readAll(await kit.files.open(place(kit, 'b'), file.hash))).toEqual(bytes);
      await timeline.deleteSession(scope, 'b');
      expect(await isThere(kit, 'b', file.hash)).toBe(false);
      expect(await maintenance.verify()).toEqual([]);
    });

    test('S628: an open run keeps what it has stored; what its states do not name goes with it', async () => {
      const kit = useKit();
      const { claim, commit, runs, maintenance, scope } = kit;
      await kit.turn('s');
      const held = await claim('s');
      const [kept, unused] = [await save(kit, held), await save(kit, held, other)];
      expect(await maintenance.verify()).toEqual([]);
      await maintenance.prune({ keepLast: 1 }, scope);
      const inTurn = place(kit, 's', held);
      expect(await readAll(await kit.files.open(inTurn, unused.hash))).toEqual(other);
      await commit(held, { state: stateWith(kept) });
      expect(await maintenance.verify()).toEqual([]);
      expect(await kit.files.open(inTurn, unused.hash)).toBeUndefined();
      expect(await readAll(await kit.files.open(place(kit, 's'), kept.hash))).toEqual(bytes);
      const released = await claim('s');
      const lost = await save(kit, released, other);
      await runs.release(released);
      expect(await maintenance.verify()).toEqual([]);
      expect(await kit.files.open(place(kit, 's', released), lost.hash)).toBeUndefined();
    });

    test('S628: what a dead run has stored goes when another takes its session', async () => {
      const kit = useKit();
      const { claim, expire, maintenance, ttl } = kit;
      await kit.turn('s');
      const dead = await claim('s', { ttl });
      const { hash } = await save(kit, dead);
      await expire();
      const next = await claim('s');
      await kit.commit(next);
      expect(await maintenance.verify()).toEqual([]);
      expect(await kit.files.open(place(kit, 's', dead), hash)).toBeUndefined();
      await refused(save(kit, dead), 'ABORTED');
    });

    test('S628: a run that is taken over has the files of its checkpoint', async () => {
      const kit = useKit();
      const { claim, expire, runs, maintenance, scope, ttl } = kit;
      await kit.turn('s');
      const held = await claim('s', { mode: 'accepted', ttl });
      const file = await save(kit, held);
      const state = stateWith(file);
      const write = { state, stateHash: hashState(state), inputsDone: 0, midTurn: true };
      await runs.checkpoint(held, write);
      await expire();
      const [taken = expect.fail('nothing was taken over')] = await runs.takeOver({
        agents: [scope.agent],
        worker: 'another',
        ttl: 60_000,
        limit: 1,
      });
      expect(await maintenance.verify()).toEqual([]);
      await kit.commit(taken.claim, { state });
      expect(await maintenance.verify()).toEqual([]);
      expect(await readAll(await kit.files.open(place(kit, 's'), file.hash))).toEqual(bytes);
    });

    test('S628: a source that fails stores nothing, and its error is passed on', async () => {
      const kit = useKit();
      const held = await kit.claim('s');
      const failing = async function* (): AsyncGenerator<Uint8Array> {
        yield bytes;
        throw new RangeError('the source broke');
      };
      const writing = kit.files.write({ scope: kit.scope, run: held }, failing());
      await expect(writing).rejects.toThrow('the source broke');
      expect(await kit.files.open(place(kit, 's', held), hashOf(bytes))).toBeUndefined();
      // It can be stored after that.
      const file = await save(kit, held);
      await kit.commit(held, { state: stateWith(file) });
      expect(await kit.maintenance.verify()).toEqual([]);
    });

    test('S631: a state that names a file which is not in the store is refused', async () => {
      const kit = useKit();
      await kit.turn('s');
      const held = await kit.claim('s');
      const unknown = { hash: hashOf(other), size: other.length };
      await refused(kit.commit(held, { state: stateWith(unknown) }), 'FAILED_PRECONDITION');
      await kit.commit(held);
      expect(await kit.maintenance.verify()).toEqual([]);
      await refused(kit.files.open(place(kit, 's'), '../../etc/passwd'), 'INVALID_ARGUMENT');
    });

    test('S634: an export has the files of a session, and goes in elsewhere', async () => {
      const kit = useKit();
      const { maintenance, timeline, scope } = kit;
      const { stored } = await turnWith(kit, 's', bytes);
      const document = await maintenance.exportSession(scope, 's');
      if (document === undefined) expect.fail('nothing was exported');
      expect(document.format).toBe(3);
      await timeline.deleteSession(scope, 's');
      expect(await isThere(kit, 's', hashOf(bytes))).toBe(false);
      const text = JSON.stringify(document);
      const { files: _, ...without } = document.content;
      const incomplete = { ...document, content: without };
      await refused(maintenance.importSession(scope, incomplete), 'DATA_LOSS');
      await maintenance.importSession(scope, JSON.parse(text));
      const read = await kit.files.open(place(kit, 's'), stored[0]?.hash ?? '');
      expect(await readAll(read)).toEqual(bytes);
      expect(await maintenance.verify()).toEqual([]);
    });

    test('S634: an export whose files are too large for one document is refused', async () => {
      const kit = useKit();
      await turnWith(kit, 's', bytesOf(16 * 1024 * 1024 + 1));
      await refused(kit.maintenance.exportSession(kit.scope, 's'), 'RESOURCE_EXHAUSTED');
    });
  });
}
