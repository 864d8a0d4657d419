/** replay, and export --as-test. */
import { execFile } from 'node:child_process';
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { agentsFile, command, tempFolder } from './support/command.ts';

const folder = tempFolder();
const run = (...args: string[]) => command(folder.path, [...args, '--file', agentsFile]);
beforeAll(async () => {
  for (const text of ['hello', 'note tea of ada@example.com'])
    await run('chat', 'talker', text, '--session', 'trip');
});
afterAll(() => folder.remove());

test('replay tells what differs, and exits with 1 over the threshold', async () => {
  const same = await run('replay', 'trip', '--model', 'recorded');
  expect(same).toMatchObject({ code: 0 });
  expect(same.stdout).toMatch(/^0 of 2 turns differ, 0 skipped\./);
  // A recording in which the model said something else.
  const exported = await run('export', 'trip', '--out', 'trip.json');
  expect(exported.code).toBe(0);
  writeFileSync(
    join(folder.path, 'rewrite.mjs'),
    "export default (text) => text.replace('Message', 'Letter');",
  );
  await run('export', 'trip', '--out', 'changed.json', '--transform', 'rewrite.mjs');
  const changed = await run('replay', 'changed.json');
  expect(changed.code).toBe(1);
  expect(changed.stdout).toContain('trip turn 1\n  /text: "Letter 1." → "Message 1."');
  expect((await run('replay', 'changed.json', '--max', '50%')).code).toBe(0);
  expect((await run('replay', 'changed.json', '--ignore', 'text')).code).toBe(0);
  const json = JSON.parse((await run('replay', 'changed.json', '--report', 'json')).stdout);
  expect(json).toMatchObject({ divergent: 1, turns: [{ turnIndex: 0 }, { turnIndex: 1 }] });
  const written = await run('replay', 'changed.json', '--report', 'json', '--out', 'report.json');
  expect(written.stderr).toContain('Wrote the report to report.json: 1 of 2 turns differ');
  expect(readFileSync(join(folder.path, 'report.json'), 'utf8')).toContain('Letter 1.');
  expect(await run('replay', 'changed.json', '--report', 'html')).toMatchObject({ code: 2 });
  expect((await run('replay', 'nothing-of-this-name')).code).toBe(3);
  const unknown = await run('replay', '--agent', 'tlaker');
  expect(unknown).toMatchObject({ code: 3, stdout: '' });
  expect(unknown.stderr).toContain('No agent "tlaker" is defined. Did you mean "talker"?');
  expect(await run('replay')).toMatchObject({ code: 2 });
  expect(await run('replay', 'trip', '--max', 'few')).toMatchObject({ code: 2 });
  expect(await run('replay', 'trip', '--tools', 'dead')).toMatchObject({ code: 2 });
});

test('S614 replay with an unknown model fails, and reports no turns', async () => {
  const unknown = await run('replay', 'trip', '--model', 'nope');
  expect(unknown).toMatchObject({ code: 3, stdout: '' });
  expect(unknown.stderr).toContain('No model "nope"');
});

test('S429 replay runs custom agents only with --custom-agents, and says so', async () => {
  await run('chat', 'worker', 'go', '--session', 'work');
  const skipped = await run('replay', 'work');
  expect(skipped.code).toBe(3);
  expect(skipped.stdout).toContain('--custom-agents');
  const done = await run('replay', 'work', '--custom-agents');
  expect(done).toMatchObject({ code: 0 });
  expect(done.stdout).toMatch(/^0 of 1 turn differ/);
});

test('export --as-test writes a test that passes, without the texts that the transform removes', async () => {
  writeFileSync(
    join(folder.path, 'redact.mjs'),
    "export default (text) => text.replaceAll('ada@example.com', 'someone').replaceAll('tea', 'cup');",
  );
  const done = await run('export', 'trip', '--as-test', 'sessions', '--transform', 'redact.mjs');
  expect(done.code).toBe(0);
  const files = join(folder.path, 'sessions');
  expect(readdirSync(files)).toEqual(['trip.session.json', 'trip.test.ts']);
  const fixture = readFileSync(join(files, 'trip.session.json'), 'utf8');
  expect(fixture).not.toMatch(/ada@|tea/);
  expect(fixture).toContain('cup');
  // It runs in this project, which resolves the package by its name.
  const root = resolve(import.meta.dirname, '../..');
  const config = join(folder.path, 'vitest.config.mjs');
  const source = (path: string) => JSON.stringify(join(root, 'src', path));
  writeFileSync(
    config,
    `export default { root: ${JSON.stringify(files)}, resolve: { alias: [
      { find: /^waymark$/, replacement: ${source('index.ts')} },
      { find: /^waymark\\/replay$/, replacement: ${source('replay/index.ts')} },
      { find: /^waymark\\/testing$/, replacement: ${source('testing/index.ts')} },
      { find: /^waymark\\/sqlite$/, replacement: ${source('store/sqlite/index.ts')} },
      { find: /^vitest$/, replacement: ${JSON.stringify(join(root, 'node_modules/vitest/dist/index.js'))} },
    ] } };`,
  );
  const { stdout } = await promisify(execFile)(
    process.execPath,
    [join(root, 'node_modules/vitest/vitest.mjs'), 'run', '--config', config],
    { cwd: files, env: { ...process.env, NO_COLOR: '1', VITEST: '' } },
  );
  expect(stdout).toContain('1 passed');
});
