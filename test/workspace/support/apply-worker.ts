import fs, { createReadStream } from 'node:fs';
import { syncBuiltinESMExports } from 'node:module';
import { join } from 'node:path';
import type { TreeFolder, WorkspaceFolder } from '../../../src/workspace/index.ts';

// Makes a folder the same as another one: node apply-worker.js <folder> <source>. With CRASH_AT, the process ends itself like
// `kill -9` does, before the operation of this number that changes something on the disk.
const [, , path = '', source = ''] = process.argv;
const crashAt = Number(process.env.CRASH_AT ?? 0);
let operations = 0;
const step = (): void => {
  operations++;
  if (operations === crashAt) process.kill(process.pid, 'SIGKILL');
};

const changing = [
  'chmodSync',
  'linkSync',
  'mkdirSync',
  'renameSync',
  'rmSync',
  'rmdirSync',
  'symlinkSync',
  'unlinkSync',
  'writeFileSync',
  'writeSync',
] as const;

const { directory } = await import('../../../src/workspace/index.ts');
const { diffTrees } = await import('../../../src/workspace/contract/tree.ts');
const open = (at: string): Promise<WorkspaceFolder> =>
  directory(at).open({ agent: 'a', sessionId: 's' });
const target: TreeFolder = (await (await open(source)).scan()).tree;

for (const name of changing) {
  const original = fs[name] as (...args: unknown[]) => unknown;
  (fs as unknown as Record<string, unknown>)[name] = (...args: unknown[]) => {
    step();
    return original(...args);
  };
}
syncBuiltinESMExports();

const folder = await open(path);
const lock = await folder.lock({ runId: `restore-${process.pid}` });
const { tree: present, skipped } = await folder.scan();
console.log(JSON.stringify(skipped));
console.log('begins');
await folder.apply(diffTrees(present, target), {
  content: (_, file) => createReadStream(join(source, file)),
});
console.log('applied');
await lock.release();
console.log(`operations ${operations}`);
