import { describe, expect, type TestContext, test } from 'vitest';
import { withTree } from '../../protocol/artifacts.ts';
import type { SessionState } from '../../session/session-state.ts';
import { encodeNode, type NodeEntry } from '../../session/tree-node.ts';
import type { Claim, FileSupport } from '../../store/contract/store.ts';
import { hashOfBytes } from '../../store/rules/file-pieces.ts';
import { type Kit, refused, stateOf, type UseKit } from './kit.ts';

const contentOf = (text: string): Uint8Array => new TextEncoder().encode(text);

function file(name: string, text: string): NodeEntry {
  const bytes = contentOf(text);
  return { kind: 'file', name, size: bytes.length, hash: hashOfBytes(bytes) };
}

function folder(
  name: string,
  entries: readonly NodeEntry[],
): { entry: NodeEntry; node: Uint8Array } {
  const node = encodeNode(entries);
  return { entry: { kind: 'folder', name, hash: hashOfBytes(node) }, node };
}

/** A state with a tree, whose content is one text. */
function stateWith(hash: string): SessionState {
  const state = stateOf({ messages: [{ role: 'user', content: [{ text: 'hi' }] }] });
  return { ...state, artifacts: withTree(state.artifacts, hash) };
}

/** A tree of one folder with one file. */
function treeOf(text: string) {
  const inner = folder('inner', [file('file.txt', text)]);
  const top = folder('', [inner.entry]);
  return {
    nodes: [inner.node, top.node],
    contents: [contentOf(text)],
    hash: hashOfBytes(top.node),
  };
}

type Trees = FileSupport & Required<Pick<FileSupport, 'writeTree' | 'readTree'>>;

/** Trees of workspaces, of a store that keeps them. */
export function treeContract(useKit: UseKit): void {
  const kitOf = ({ skip }: TestContext): Kit => {
    const kit = useKit();
    skip(kit.files.writeTree === undefined, 'The store keeps no trees.');
    return kit;
  };
  const treesOf = ({ files }: Kit): Trees => files as Trees;
  const save = async (kit: Kit, held: Claim, text: string): Promise<string> => {
    const { hash, ...write } = treeOf(text);
    expect(await treesOf(kit).writeTree({ scope: kit.scope, run: held }, write)).toEqual([]);
    return hash;
  };
  const isThere = async (kit: Kit, sessionId: string, hash: string): Promise<boolean> =>
    (await treesOf(kit).readTree({ scope: kit.scope, sessionId }, [hash]))[0] !== undefined;

  describe('trees', () => {
    test('S811: are read as they were stored, and what is missing is told', async (context) => {
      const kit = kitOf(context);
      const held = await kit.claim('s');
      const { hash, nodes, contents } = treeOf('one');
      const holder = { scope: kit.scope, run: held };
      const missing = await treesOf(kit).writeTree(holder, { nodes, contents: [] });
      expect(missing).toEqual(contents.map(hashOfBytes));
      expect(await treesOf(kit).writeTree(holder, { nodes: nodes.slice(1), contents })).toEqual(
        nodes.slice(0, 1).map(hashOfBytes),
      );
      expect(await save(kit, held, 'one')).toBe(hash);
      // Everything is there by now.
      expect(await treesOf(kit).writeTree(holder, { nodes, contents: [] })).toEqual([]);
      await kit.commit(held, { state: stateWith(hash) });
      const place = { scope: kit.scope, sessionId: 's' };
      const hashes = nodes.map(hashOfBytes);
      const read = await treesOf(kit).readTree(place, [...hashes, 'f'.repeat(64)]);
      expect(read.map((each) => each && [...each])).toEqual([
        ...nodes.map((node) => [...node]),
        undefined,
      ]);
      const opened = await kit.files.open(place, hashOfBytes(contentOf('one')));
      expect(opened?.size).toBe(3);
      expect(await kit.maintenance.verify()).toEqual([]);
    });

    test('S811: a state cannot name a tree that is not stored', async (context) => {
      const kit = kitOf(context);
      const held = await kit.claim('s');
      const { hash } = treeOf('never stored');
      await refused(kit.commit(held, { state: stateWith(hash) }), 'FAILED_PRECONDITION');
    });

    test('S811: later turns and forks share a tree, which goes with the last of them', async (context) => {
      const kit = kitOf(context);
      const held = await kit.claim('s');
      const first = await save(kit, held, 'one');
      const { snapshot } = await kit.commit(held, { state: stateWith(first) });
      const next = await kit.claim('s');
      const second = await save(kit, next, 'two');
      await kit.commit(next, { state: stateWith(second) });
      await kit.timeline.fork(kit.scope, snapshot.snapshotId, {
        sessionId: 'fork',
        snapshotId: kit.id(),
      });
      await kit.timeline.deleteSession(kit.scope, 's');
      expect(await isThere(kit, 'fork', first)).toBe(true);
      expect(await kit.maintenance.verify()).toEqual([]);
      await kit.timeline.deleteSession(kit.scope, 'fork');
      expect(await isThere(kit, 'fork', first)).toBe(false);
      expect(await kit.maintenance.verify()).toEqual([]);
    });

    test('S811: the tree of a run that ends without it goes', async (context) => {
      const kit = kitOf(context);
      const held = await kit.claim('s');
      const hash = await save(kit, held, 'given up');
      await kit.runs.release(held);
      await kit.turn('s', { state: stateOf({ messages: [] }) });
      await kit.maintenance.prune({ keepLast: 1 });
      expect(await isThere(kit, 's', hash)).toBe(false);
      expect(await kit.maintenance.verify()).toEqual([]);
    });

    test('S811: a stale attempt cannot store a tree', async (context) => {
      const kit = kitOf(context);
      const held = await kit.claim('s');
      const { hash: _, ...write } = treeOf('one');
      const stale = { scope: kit.scope, run: { runId: held.runId, attempt: held.attempt + 1 } };
      await refused(treesOf(kit).writeTree(stale, write), 'ABORTED');
    });

    test('S812: exports carry trees, and imports check them', async (context) => {
      const kit = kitOf(context);
      const { scope, maintenance } = kit;
      const held = await kit.claim('s');
      const hash = await save(kit, held, 'one');
      await kit.commit(held, { state: stateWith(hash) });
      const document = await maintenance.exportSession(scope, 's');
      if (document === undefined) expect.fail('there is no session');
      expect(document.format).toBe(4);
      await maintenance.importSession(scope, document, { sessionId: 'copy' });
      expect(await isThere(kit, 'copy', hash)).toBe(true);
      const { nodes, ...content } = document.content;
      expect(Object.keys(nodes as object)).toHaveLength(2);
      const changed = { ...(nodes as object), [hash]: btoa('something else') };
      for (const bad of [content, { ...content, nodes: changed }]) {
        const damaged = { ...document, content: bad };
        await refused(
          maintenance.importSession(scope, damaged, { sessionId: 'damaged' }),
          'DATA_LOSS',
        );
      }
      expect(await maintenance.verify()).toEqual([]);
    });
  });
}
