import { expect, test } from 'vitest';
import { type Folder, folderTree } from './folder-tree.ts';

function names({ name, folders, files, count }: Folder): unknown {
  return [name, count, folders.map(names), files.map((file) => file.name)];
}

test('files are in their folders, and folders that only lead to others are joined', () => {
  const paths = ['a.txt', 'docs/x/y/one.md', 'docs/x/y/two.md', 'src/index.ts', 'src/lib/b.ts'];
  const tree = folderTree(paths.map((path) => ({ path, type: 'file', size: 1 })));
  expect(names(tree)).toEqual([
    '',
    5,
    [
      ['docs/x/y', 2, [], ['one.md', 'two.md']],
      ['src', 2, [['lib', 1, [], ['b.ts']]], ['index.ts']],
    ],
    ['a.txt'],
  ]);
});
