import { describe, expect, test } from 'vitest';
import { emptyState, hashState } from '../../session/session-state.ts';
import type {
  MemoryScope,
  MemorySpan,
  MemoryWrite,
  TurnMemoryVersion,
} from '../../store/contract/store.ts';
import { exchange, type Kit, refused, type UseKit } from './kit.ts';

const place = { family: 'family', lane: 'lane' };

/** A scope of its own for each test: stores of several tests may be one. */
function scopeOf({ scope }: Kit): MemoryScope {
  return { key: JSON.stringify([scope.agent, 'app', '']) };
}

function versionOf(
  kit: Kit,
  seq: number,
  text: string,
  change: Partial<TurnMemoryVersion> = {},
): TurnMemoryVersion {
  const id = kit.id();
  return { scope: scopeOf(kit).key, id, entry: id, value: { text }, seq, message: 1, ...change };
}

/** The memory of a turn that writes versions to a lane and continues a path. */
function writeOf(
  versions: readonly TurnMemoryVersion[],
  path: readonly MemorySpan[],
  change: Partial<MemoryWrite> = {},
): MemoryWrite {
  return { place, versions, note: { path, given: [] }, ...change };
}

/** Versions of entries that come with commits, and follow the heads of sessions. */
export function memoryContract(useKit: UseKit): void {
  const textsOf = async (kit: Kit): Promise<readonly unknown[]> => {
    const { versions, count } = await kit.memory.read(scopeOf(kit), 0);
    expect(count).toBe(versions.length);
    return versions.map(({ value }) => value);
  };
  const families = (kit: Kit): { readonly family: string; readonly lane: string } => {
    const family = `${place.family} ${kit.scope.agent}`;
    return { family, lane: `${place.lane} ${kit.scope.agent}` };
  };

  describe('memory', () => {
    test('S814 a commit saves what its turn has written with its source, and one that is refused does not', async () => {
      const kit = useKit();
      const { claim, commit, memory, scope } = kit;
      const own = families(kit);
      const held = await claim('s');
      const first = versionOf(kit, 1, 'one');
      const path = [[own.lane, 1, 1]] as const;
      await commit(held, { memory: writeOf([first], path, { place: own }) });
      const again = commit(held, { memory: writeOf([versionOf(kit, 2, 'two')], path) });
      await refused(again, 'ABORTED');
      const { versions } = await memory.read(scopeOf(kit), 0);
      const source = { ...own, agent: scope.agent, sessionId: 's', seq: 1, message: 1 };
      expect(versions).toMatchObject([
        { id: first.id, entry: first.entry, value: { text: 'one' }, source },
      ]);
      expect(versions[0]?.source?.snapshotId).toBe(held.runId);
      const [{ no } = { no: 0 }] = versions;
      expect(await memory.read(scopeOf(kit), no)).toEqual({ versions: [], count: 1 });
      expect(await memory.session(scope, 's')).toEqual({ ...own, last: 1, headId: held.runId });
      expect(await memory.session(scope, 'none')).toEqual({ last: 0 });
      expect(await memory.note(undefined, held.runId)).toMatchObject({
        family: own.family,
        path,
        given: [],
      });
      expect(await memory.note('someone', held.runId)).toBeUndefined();
      expect(await memory.note(undefined, kit.id())).toBeUndefined();
    });

    test('S815 the paths of a family are those of its heads; a snapshot without a note has that of its parent', async () => {
      const kit = useKit();
      const { turn, memory, timeline, scope } = kit;
      const own = families(kit);
      const paths = [[[own.lane, 1, 1]], [[own.lane, 1, 2]]] as const;
      const one = await turn('s', {
        memory: writeOf([versionOf(kit, 1, 'one')], paths[0], { place: own }),
      });
      const two = await turn('s', { memory: writeOf([versionOf(kit, 2, 'two')], paths[1]) });
      const three = await turn('s');
      expect((await memory.note(undefined, three.snapshot.snapshotId))?.path).toEqual(paths[1]);
      const heads = async () => (await memory.heads([own.family, 'none'])).get(own.family);
      expect(await heads()).toEqual([paths[1]]);
      await timeline.restore(scope, one.snapshot.snapshotId);
      expect(await heads()).toEqual([paths[0]]);
      await timeline.restore(scope, two.snapshot.snapshotId);
      expect(await heads()).toEqual([paths[1]]);
    });

    test('S816 a fork has the path of its snapshot, and a lane of its own in the same family', async () => {
      const kit = useKit();
      const { turn, memory, timeline, scope } = kit;
      const own = families(kit);
      const path = [[own.lane, 1, 1]] as const;
      const before = await turn('s');
      const early = { sessionId: 'early', snapshotId: kit.id(), memory: own };
      await timeline.fork(scope, before.snapshot.snapshotId, early);
      const one = await turn('s', {
        memory: writeOf([versionOf(kit, 1, 'one')], path, { place: own }),
      });
      const late = { sessionId: 'late', snapshotId: kit.id(), memory: own };
      await timeline.fork(scope, one.snapshot.snapshotId, late);
      expect((await memory.note(undefined, early.snapshotId))?.path).toEqual([]);
      expect((await memory.note(undefined, late.snapshotId))?.path).toEqual(path);
      const places = ['s', 'early', 'late'].map((each) => memory.session(scope, each));
      const found = await Promise.all(places);
      expect(new Set(found.map(({ family }) => family))).toEqual(new Set([own.family]));
      expect(new Set(found.map(({ lane }) => lane)).size).toBe(3);
      const heads = (await memory.heads([own.family])).get(own.family) ?? [];
      expect([...heads].sort((a, b) => a.length - b.length)).toEqual([[], path, path]);
    });

    test('S817 a checkpoint keeps what a turn has written for its next attempt, and shows it to no reader', async () => {
      const kit = useKit();
      const { claim, commit, runs, memory } = kit;
      const held = await claim('s', { mode: 'accepted' });
      const pending = [versionOf(kit, 1, 'pending')];
      const state = exchange(emptyState, 'checkpoint');
      const given = [kit.id()];
      const note = { path: [], given, pending };
      await runs.checkpoint(held, {
        ...{ state, stateHash: hashState(state), inputsDone: 0, midTurn: true },
        memory: { place: families(kit), versions: [], note },
      });
      expect(await textsOf(kit)).toEqual([]);
      expect(await memory.note(undefined, held.runId)).toMatchObject(note);
      await commit(held, { memory: writeOf(pending, [[families(kit).lane, 1, 1]]) });
      expect(await textsOf(kit)).toEqual([{ text: 'pending' }]);
      expect(await memory.note(undefined, held.runId)).not.toHaveProperty('pending');
    });

    test('S818 deleting a session deletes its versions and later ones of their entries, also from the files', async () => {
      const kit = useKit();
      const { turn, memory, timeline, scope, opened } = kit;
      const own = families(kit);
      const first = versionOf(kit, 1, 'canary-of-a-session');
      const path = [[own.lane, 1, 1]] as const;
      await turn('s', { memory: writeOf([first], path, { place: own }) });
      const { entry } = first;
      const later = { scope: first.scope, id: kit.id(), entry, value: { text: 'canary-later' } };
      await memory.add(later);
      const other = { scope: first.scope, id: kit.id(), entry: kit.id(), value: { text: 'stays' } };
      await memory.add(other);
      const forgotten = { scope: first.scope, id: kit.id(), entry: other.entry };
      await turn('t', {
        memory: writeOf([{ ...forgotten, seq: 1, message: 0 }], [], {
          place: { ...own, lane: kit.id() },
        }),
      });
      expect(await textsOf(kit)).toHaveLength(4);
      await timeline.deleteSession(scope, 's');
      expect(await textsOf(kit)).toEqual([{ text: 'stays' }, undefined]);
      await timeline.deleteSession(scope, 't');
      expect(await textsOf(kit)).toEqual([{ text: 'stays' }]);
      expect((await opened.dump?.()) ?? '').not.toContain('canary');
    });

    test('S818 erasing an owner deletes what the owner wrote, also where others read it', async () => {
      const kit = useKit();
      const { turn, memory, maintenance, scope, opened } = kit;
      const { key } = scopeOf(kit);
      const owner = `ann-${kit.id()}`;
      const ann = { ...scope, owner };
      const own = families(kit);
      const path = [[own.lane, 1, 1]] as const;
      const write = writeOf([versionOf(kit, 1, 'canary-turn')], path, { place: own });
      await turn('s', { scope: ann, memory: write });
      const mine = { scope: key, id: kit.id(), entry: kit.id(), value: { text: 'canary-call' } };
      await memory.add(mine, owner);
      await memory.add({ ...mine, id: kit.id(), value: { text: 'canary-of-others' } });
      await memory.add({ scope: key, id: kit.id(), entry: kit.id(), value: { text: 'stays' } });
      const alone = `carl-${kit.id()}`;
      const call = { scope: key, id: kit.id(), entry: kit.id(), value: { text: 'canary-alone' } };
      await memory.add(call, alone);
      await maintenance.eraseOwner(owner);
      expect(await maintenance.eraseOwner(alone)).toBe(0);
      expect(await textsOf(kit)).toEqual([{ text: 'stays' }]);
      expect((await opened.dump?.()) ?? '').not.toContain('canary');
    });

    test('S819 entries are removed with all their versions, and only in their scope', async () => {
      const kit = useKit();
      const { memory } = kit;
      const { key } = scopeOf(kit);
      const entry = kit.id();
      await memory.add({ scope: key, id: kit.id(), entry, value: { text: 'one' } });
      await memory.add({ scope: key, id: kit.id(), entry, value: { text: 'two' } });
      const other = { key: `${key} ` };
      await memory.remove(other, [entry]);
      expect(await textsOf(kit)).toHaveLength(2);
      await memory.add({ scope: other.key, id: kit.id(), entry, value: { text: 'elsewhere' } });
      await memory.remove(other, [entry]);
      expect((await memory.read(other, 0)).count).toBe(0);
      expect(await textsOf(kit)).toHaveLength(2);
      await memory.remove({ key }, [entry]);
      expect(await textsOf(kit)).toEqual([]);
    });

    test('S820 an export has what a session wrote to the memory of its owner, and an import restores it', async () => {
      const kit = useKit();
      const { turn, memory, maintenance, timeline, scope } = kit;
      const owner = `ann-${kit.id()}`;
      const ann = { ...scope, owner };
      const own = families(kit);
      const key = JSON.stringify(['facts', 'owner', owner]);
      const path = [[own.lane, 1, 2]] as const;
      const versions = [versionOf(kit, 1, 'mine', { scope: key }), versionOf(kit, 2, 'of the app')];
      await turn('s', { scope: ann, memory: writeOf(versions, path, { place: own }) });
      const document = await maintenance.exportSession(ann, 's');
      if (document === undefined) expect.fail('no document');
      expect(JSON.stringify(document)).not.toContain('of the app');
      const read = () => memory.read({ key, owner }, 0);
      const before = (await read()).versions;
      await timeline.deleteSession(ann, 's');
      expect((await read()).versions).toEqual([]);
      const { headId = '' } = await maintenance.importSession(ann, document);
      const [again] = (await read()).versions;
      expect({ ...again, no: 0 }).toEqual({ ...before[0], no: 0 });
      expect((await memory.note(owner, headId))?.path).toEqual(path);
      await maintenance.importSession(ann, document, { sessionId: 'copy' });
      const all = (await read()).versions;
      expect(all.map(({ value }) => value)).toEqual([{ text: 'mine' }, { text: 'mine' }]);
      expect(new Set(all.map(({ entry }) => entry)).size).toBe(2);
      await timeline.deleteSession(ann, 's');
      expect((await read()).versions).toHaveLength(1);
      const bob = { ...scope, owner: `bob-${kit.id()}` };
      await maintenance.importSession(bob, document);
      const theirs = JSON.stringify(['facts', 'owner', bob.owner]);
      expect((await memory.read({ key: theirs, owner: bob.owner }, 0)).count).toBe(1);
      expect((await read()).count).toBe(1);
    });

    test('memory outlives the store', async () => {
      const kit = useKit();
      if (kit.opened.reopen === undefined) return;
      const { turn } = kit;
      const own = families(kit);
      const path = [[own.lane, 1, 1]] as const;
      await turn('s', { memory: writeOf([versionOf(kit, 1, 'kept')], path, { place: own }) });
      const reopened = await kit.reopen();
      expect(await textsOf(reopened)).toEqual([{ text: 'kept' }]);
      expect((await reopened.memory.heads([own.family])).get(own.family)).toEqual([path]);
      expect(await reopened.maintenance.verify()).toEqual([]);
    });
  });
}
