import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { Workspace, WorkspaceFolder } from '../../workspace/contract/contract.ts';
import { diffTrees, emptyTree } from '../../workspace/contract/tree.ts';
import {
  applyTree,
  contentsOf,
  fileOf,
  linkTo,
  randomTree,
  readText,
  refused,
  shapeOf,
  treeOf,
} from './kit.ts';
import { lockContract } from './lock.ts';

/** A workspace for one test. */
export interface OpenedWorkspace {
  /** The workspace to test, whose folders are empty. */
  readonly workspace: Workspace;
  /** A path for a checkout, at which there is nothing. */
  readonly newPath: () => Promise<string>;
  /** Removes the workspace after the test. */
  readonly close: () => Promise<void>;
}

/**
 * Declares the conformance tests for workspaces. `open` returns a workspace with empty folders for each test.
 *
 * @example
 * workspaceContract('my sandbox', async () => {
 *   const sandbox = await startSandbox();
 *   return { workspace: sandbox.workspace, newPath: async () => mkPath(), close: () => sandbox.stop() };
 * });
 */
export function workspaceContract(
  name: string,
  open: () => Promise<OpenedWorkspace>,
  { runs = 20 }: { /** Number of random trees. @default 20 */ readonly runs?: number } = {},
): void {
  describe(`${name} workspace`, () => {
    let opened: OpenedWorkspace;
    let folder: WorkspaceFolder;
    beforeEach(async () => {
      opened = await open();
      folder = await opened.workspace.open({ agent: 'a', sessionId: 's' });
      await folder.lock({ runId: 'test' });
    });
    afterEach(() => opened.close());

    test('begins empty, and finds what was applied to it', async () => {
      expect((await folder.scan()).tree.entries.size).toBe(0);
      const tree = treeOf({
        'a.txt': 'one',
        'bin/run.sh': { text: '#!/bin/sh\n', isExecutable: true },
        'deep/er/b.txt': '',
        'empty/folder/': null,
        'here/is/a/link': linkTo('../../../a.txt'),
        'out-of-tree': linkTo('/etc/passwd'),
        'ünïcode 😀/new\nline': 'x',
      });
      await applyTree(folder, tree);
      const scan = await folder.scan();
      expect(shapeOf(scan.tree)).toEqual(shapeOf(tree.tree));
      expect(scan).toMatchObject({ count: 6, size: 14, skipped: [] });
      expect([...scan.tree.entries.keys()]).toEqual([...scan.tree.entries.keys()].sort());
      expect(await readText(folder, 'deep/er/b.txt')).toBe('');
      expect(await readText(folder, 'bin/run.sh')).toBe('#!/bin/sh\n');
      expect(await readText(folder, 'ünïcode 😀/new\nline')).toBe('x');
    });

    test('a folder that has not changed is the same object in the next scan', async () => {
      await applyTree(folder, treeOf({ 'a/b/c.txt': '1', 'd/e.txt': '2' }));
      const first = (await folder.scan()).tree;
      expect((await folder.scan()).tree).toBe(first);
      await applyTree(folder, treeOf({ 'a/b/c.txt': '1', 'd/e.txt': '3' }));
      const second = (await folder.scan()).tree;
      expect(second).not.toBe(first);
      expect(second.entries.get('a')).toBe(first.entries.get('a'));
      expect(second.entries.get('d')).not.toBe(first.entries.get('d'));
    });

    test('becomes any tree from any other', async () => {
      for (let seed = 1; seed <= runs; seed++) {
        const tree = randomTree(seed);
        await applyTree(folder, tree);
        expect(shapeOf((await folder.scan()).tree), `seed ${seed}`).toEqual(shapeOf(tree.tree));
      }
    });

    test('an entry becomes one of another type', async () => {
      const trees = [
        treeOf({ x: 'a file' }),
        treeOf({ 'x/y/z': 'in a folder' }),
        treeOf({ x: linkTo('elsewhere') }),
        treeOf({ 'x/': null }),
        treeOf({ x: { text: 'a file', isExecutable: true } }),
        treeOf({}),
      ];
      for (const from of trees) {
        for (const to of trees) {
          await applyTree(folder, from);
          await applyTree(folder, to);
          expect(shapeOf((await folder.scan()).tree)).toEqual(shapeOf(to.tree));
        }
      }
    });

    test('asks only for contents that it needs', async () => {
      await applyTree(folder, treeOf({ a: 'same', b: 'old' }));
      const target = treeOf({ a: { text: 'same', isExecutable: true }, b: 'new' });
      const asked: string[] = [];
      await folder.apply(diffTrees((await folder.scan()).tree, target.tree), {
        content: (file, path) => {
          asked.push(path);
          return target.content(file, path);
        },
      });
      expect(asked).toEqual(['b']);
      expect(shapeOf((await folder.scan()).tree)).toEqual(shapeOf(target.tree));
    });

    test.each(['', '.', '..', '../a', 'a/../b', '/a', 'a//b', 'a/', 'a\0b', '\ud800'])(
      'refuses the path %j',
      async (path) => {
        const { content } = contentsOf('x');
        const change = { path, after: fileOf('x') };
        await refused(folder.apply([change], { content }), 'INVALID_ARGUMENT');
        await refused(readText(folder, path), 'INVALID_ARGUMENT');
      },
    );

    test.each([
      '.git/config',
      'a/.git',
      '.GIT/x',
      'node_modules/x',
      '.waymark/x',
      '.env',
      '.env.local',
    ])('never writes to %s', async (path) => {
      const { content } = contentsOf('x');
      const change = { path, after: fileOf('x') };
      await refused(folder.apply([change], { content }), 'INVALID_ARGUMENT');
      expect((await folder.scan()).tree.entries.size).toBe(0);
    });

    test('stores the example of a file with secrets', async () => {
      const tree = treeOf({ '.env.example': 'KEY=', '.environment': '1', '.gitattributes': '' });
      await applyTree(folder, tree);
      expect(shapeOf((await folder.scan()).tree)).toEqual(shapeOf(tree.tree));
    });

    test('makes no change if one path is not as it was', async () => {
      await applyTree(folder, treeOf({ a: '1', b: '2', 'c/d': '3' }));
      const { tree } = await folder.scan();
      const wrong = [
        { path: 'b', before: fileOf('other'), after: fileOf('5') },
        { path: 'b', before: { type: 'link', target: 'x' } as const, after: fileOf('5') },
        { path: 'c', before: fileOf('3'), after: fileOf('5') },
        { path: 'missing', before: fileOf('3'), after: fileOf('5') },
      ];
      for (const change of wrong) {
        const changes = [{ path: 'a', before: fileOf('1'), after: fileOf('5') }, change];
        await refused(folder.apply(changes, contentsOf('5')), 'ABORTED');
        expect(shapeOf((await folder.scan()).tree)).toEqual(shapeOf(tree));
      }
    });

    test('makes no change if a content is wrong, fails or is aborted', async () => {
      await applyTree(folder, treeOf({ a: '1' }));
      const changes = [
        { path: 'a', before: fileOf('1') },
        { path: 'b', before: null, after: fileOf('2') },
        { path: 'c', before: null, after: fileOf('3') },
      ];
      await refused(folder.apply(changes, contentsOf('2', 'not three')), 'DATA_LOSS');
      const broken = new Error('the store is gone');
      const content = (): AsyncIterable<Uint8Array> => {
        throw broken;
      };
      await expect(folder.apply(changes, { content })).rejects.toBe(broken);
      const signal = AbortSignal.abort();
      await refused(folder.apply(changes, { ...contentsOf('2', '3'), signal }), 'CANCELLED');
      expect(shapeOf((await folder.scan()).tree)).toEqual(shapeOf(treeOf({ a: '1' }).tree));
    });

    test('a change without `before` replaces whatever there is, and keeps its permissions', async () => {
      await applyTree(folder, treeOf({ 'x/run': { text: '1', isExecutable: true } }));
      await folder.apply([{ path: 'x/run', after: fileOf('2') }], contentsOf('2'));
      await folder.apply([{ path: 'new/folder/file', after: fileOf('3') }], contentsOf('3'));
      const expected = treeOf({
        'x/run': { text: '2', isExecutable: true },
        'new/folder/file': '3',
      });
      expect(shapeOf((await folder.scan()).tree)).toEqual(shapeOf(expected.tree));
    });

    test('respects .gitignore files, the innermost first', async () => {
      const all = {
        '.gitignore': '*.log\nbuild/\n/top.txt\n!keep.log\n',
        'a.log': '1',
        'keep.log': '2',
        'build/x': '3',
        'top.txt': '4',
        'sub/.gitignore': '!*.log\nkeep.log\n',
        'sub/a.log': '5',
        'sub/keep.log': '6',
        'sub/top.txt': '7',
        'sub/build/x': '8',
        'all/.gitignore': '*\n',
        'all/x': '9',
      };
      await applyTree(folder, treeOf(all));
      const shown = ['.gitignore', 'keep.log', 'sub/.gitignore', 'sub/a.log', 'sub/top.txt'];
      const { tree } = await folder.scan();
      expect(Object.keys(shapeOf(tree))).toEqual(shown);
      // A folder that contains nothing but ignored paths is not listed either.
      expect(tree.entries.has('build')).toBe(false);
      expect(await readText(folder, 'build/x')).toBe('3');
    });

    test('an ignored file is not overwritten unless a scan includes it', async () => {
      await applyTree(folder, treeOf({ 'out/a.txt': 'mine' }));
      await applyTree(folder, treeOf({ 'out/a.txt': 'mine', '.gitignore': 'out\n' }));
      const { tree } = await folder.scan();
      expect(Object.keys(shapeOf(tree))).toEqual(['.gitignore']);
      const target = treeOf({ 'out/a.txt': 'theirs' });
      const { content } = target;
      await refused(folder.apply(diffTrees(tree, target.tree), { content }), 'FAILED_PRECONDITION');
      expect(await readText(folder, 'out/a.txt')).toBe('mine');
      const whole = (await folder.scan({ include: ['out/a.txt', 'out/missing'] })).tree;
      expect(Object.keys(shapeOf(whole))).toEqual(['.gitignore', 'out/a.txt']);
      await folder.apply(diffTrees(whole, target.tree), { content });
      expect(await readText(folder, 'out/a.txt')).toBe('theirs');
      expect(shapeOf((await folder.scan()).tree)).toEqual(shapeOf(target.tree));
    });

    test('what is in the way of an included path is included', async () => {
      await applyTree(
        folder,
        treeOf({ data: 'a file', '.gitignore': 'data\nfolder\n', 'folder/x': '1' }),
      );
      const { tree } = await folder.scan({ include: ['data/inner', 'folder'] });
      expect(Object.keys(shapeOf(tree))).toEqual(['.gitignore', 'data', 'folder/x']);
      const target = treeOf({ 'data/inner': 'in', folder: 'now a file' });
      await folder.apply(diffTrees(tree, target.tree), { content: target.content });
      expect(shapeOf((await folder.scan()).tree)).toEqual(shapeOf(target.tree));
    });

    test('reads files, and tells what it cannot read', async () => {
      const long = 'long '.repeat(100_000);
      await applyTree(folder, treeOf({ 'a/b': 'text', long }));
      expect(await readText(folder, 'long', fileOf(long).hash)).toBe(long);
      await refused(readText(folder, 'missing'), 'NOT_FOUND');
      await refused(readText(folder, 'a'), 'FAILED_PRECONDITION');
      await refused(readText(folder, 'a/b', fileOf('other').hash), 'ABORTED');
    });

    test('a scan can be aborted', async () => {
      await refused(folder.scan({ signal: AbortSignal.abort() }), 'CANCELLED');
    });

    test('writes a tree into a new or empty folder', async () => {
      const tree = treeOf({ 'a/b': 'text', run: { text: 'x', isExecutable: true }, 'c/': null });
      const path = await opened.newPath();
      await opened.workspace.checkout(path, tree);
      await refused(opened.workspace.checkout(path, tree), 'FAILED_PRECONDITION');
    });

    test('sessions share a folder, or have their own that begins with a tree', async () => {
      const { workspace } = opened;
      await applyTree(folder, treeOf({ a: '1' }));
      let starts = 0;
      const start = async () => {
        starts++;
        return treeOf({ b: '2' });
      };
      const again = await workspace.open({ agent: 'a', sessionId: 's', start });
      expect(again.id).toBe(folder.id);
      expect(shapeOf((await again.scan()).tree)).toEqual(shapeOf(treeOf({ a: '1' }).tree));
      const other = await workspace.open({ agent: 'a', sessionId: 't', start });
      await workspace.open({ agent: 'a', sessionId: 't', start });
      const owned = await workspace.open({ agent: 'a', owner: 'o', sessionId: 's' });
      expect(other.id === folder.id).toBe(!workspace.isPerSession);
      expect(owned.id === folder.id).toBe(!workspace.isPerSession);
      expect(starts).toBe(workspace.isPerSession ? 1 : 0);
      const begins = workspace.isPerSession ? treeOf({ b: '2' }).tree : treeOf({ a: '1' }).tree;
      expect(shapeOf((await other.scan()).tree)).toEqual(shapeOf(begins));
      if (workspace.isPerSession) expect((await owned.scan()).tree).toEqual(emptyTree);
    });

    lockContract(() => opened.workspace);
  });
}
