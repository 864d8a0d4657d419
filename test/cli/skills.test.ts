/** skills, show and diff of an agent with skills. */
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { waymark } from 'waymark';
import { sqliteStore } from 'waymark/sqlite';
import { scriptedModel } from 'waymark/testing';
import { command, tempFolder } from './support/command.ts';

const folder = tempFolder();
const skills = join(folder.path, 'skills');
const file = join(folder.path, 'agents.ts');
const run = (...args: string[]) => command(folder.path, [...args, '--file', file]);
let one = '';
let two = '';

function write(body: string): void {
  mkdirSync(join(skills, 'notes'), { recursive: true });
  const head = '---\nname: notes\ndescription: Writes notes.\n---\n';
  writeFileSync(join(skills, 'notes/SKILL.md'), head + body);
}

beforeAll(async () => {
  writeFileSync(
    file,
    `import { waymark } from 'waymark';
import { sqliteStore } from 'waymark/sqlite';
import { scriptedModel } from 'waymark/testing';
export const app = waymark({ model: scriptedModel([]), store: sqliteStore('waymark.db') });
app.defineAgent({ name: 'writer', skills: './skills' });
`,
  );
  const load = { toolCalls: [{ name: 'load_skill', input: { name: 'notes' } }] };
  const app = waymark({
    model: scriptedModel([load, 'One.', load, 'Two.']),
    store: sqliteStore(join(folder.path, 'waymark.db')),
    skills,
  });
  const writer = app.defineAgent({ name: 'writer' });
  write('First.');
  const first = await writer.run('Write');
  write('Second.');
  const second = await writer.run('Write', { sessionId: first.sessionId });
  [one, two] = [first.snapshotId ?? '', second.snapshotId ?? ''];
  await app.close();
});
afterAll(() => folder.remove());

test('S839 skills lists names and versions, and diff and show have the same versions', async () => {
  const { stdout } = await run('skills');
  expect(stdout).toMatch(/^writer {2}notes {2}[0-9a-f]{12} {2}Writes notes\.\n$/);
  const { items } = JSON.parse((await run('skills', '--json')).stdout);
  const version = items[0].version.slice(0, 12);
  const { stdout: changes } = await run('diff', one, two);
  expect(changes).toMatch(new RegExp(`Skills\n\\s*~ notes {2}[0-9a-f]{12} → ${version}`));
  const { stdout: shown } = await run('show', two);
  expect(shown).toMatch(new RegExp(`Skills\n\\s*notes {2}${version}`));
});

test('skills fails for a folder that is not a skill', async () => {
  mkdirSync(join(skills, 'empty'));
  const { code, stderr } = await run('skills');
  expect(code).toBe(2);
  expect(stderr).toContain('The skill "./skills/empty" has no file SKILL.md.');
});
