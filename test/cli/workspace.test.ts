/** files, checkout, diff and restore of an agent with a workspace. */
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { waymark } from 'waymark';
import { sqliteStore } from 'waymark/sqlite';
import { scriptedModel } from 'waymark/testing';
import { directory } from 'waymark/workspace';
import { command, tempFolder } from './support/command.ts';

const folder = tempFolder();
const project = join(folder.path, 'project');
const file = join(folder.path, 'agents.ts');
const run = (...args: string[]) => command(folder.path, [...args, '--file', file]);
let one = '';
let two = '';

beforeAll(async () => {
  writeFileSync(
    file,
    `import { waymark } from 'waymark';
import { sqliteStore } from 'waymark/sqlite';
import { scriptedModel } from 'waymark/testing';
import { directory } from 'waymark/workspace';
export const app = waymark({ model: scriptedModel([]), store: sqliteStore('waymark.db') });
app.defineAgent({ name: 'coder', workspace: directory('project') });
`,
  );
  mkdirSync(project);
  writeFileSync(join(project, 'a.txt'), 'one\ntwo\nthree\n');
  writeFileSync(join(project, 'run.sh'), 'x', { mode: 0o755 });
  const model = scriptedModel({ patterns: [], otherwise: 'Yes.' });
  const app = waymark({ model, store: sqliteStore(join(folder.path, 'waymark.db')) });
  const coder = app.defineAgent({ name: 'coder', workspace: directory(project) });
  const first = await coder.run('first');
  writeFileSync(join(project, 'a.txt'), 'one\n2\nthree\n');
  writeFileSync(join(project, 'new.txt'), 'new');
  const second = await coder.run('second', { sessionId: first.sessionId });
  [one, two] = [first.snapshotId ?? '', second.snapshotId ?? ''];
  await app.close();
});
afterAll(() => folder.remove());

test('files lists sizes and paths', async () => {
  const { stdout, stderr } = await run('files', one);
  expect(stdout + stderr).toBe('14     a.txt\n1   x  run.sh\n');
  const { items } = JSON.parse((await run('files', two, '--json')).stdout);
  expect(items).toMatchObject([{ path: 'a.txt' }, { path: 'new.txt' }, { path: 'run.sh' }]);
});

test('diff shows the changed lines of files', async () => {
  const { stdout } = await run('diff', one, two);
  expect(stdout).toContain('Files');
  expect(stdout).toMatch(/~ a\.txt\n {6}one\n {4}- two\n {4}\+ 2\n {6}three/);
  expect(stdout).toContain('+ new.txt');
});

test('checkout writes the files into a new folder, and restore into the workspace', async () => {
  const out = await run('checkout', one, 'elsewhere');
  expect(out.stdout).toBe(`Wrote the files of ${one} to elsewhere.\n`);
  expect(readFileSync(join(folder.path, 'elsewhere/a.txt'), 'utf8')).toBe('one\ntwo\nthree\n');
  const again = await run('checkout', one, 'elsewhere');
  expect(again.code).not.toBe(0);
  expect(again.stderr).toContain('empty');
  await run('restore', one, '--keep-files');
  expect(readFileSync(join(project, 'a.txt'), 'utf8')).toBe('one\n2\nthree\n');
  await run('restore', two);
  await run('restore', one);
  expect(readFileSync(join(project, 'a.txt'), 'utf8')).toBe('one\ntwo\nthree\n');
});
