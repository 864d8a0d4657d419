/** What is published: documentation for readers and coding agents, with its images, and workflows whose commands exist. */
import { execFileSync } from 'node:child_process';
import { cpSync, existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { expect, test } from 'vitest';
import { parse } from 'yaml';

const root = resolve(import.meta.dirname, '../..');
const read = (path: string): string => readFileSync(join(root, path), 'utf8');

/** The files that npm would pack, of a copy without the build and the sources: compressing those takes long and shows nothing. */
function packedFiles(): Set<string> {
  const folder = mkdtempSync(join(tmpdir(), 'waymark-packed-'));
  for (const path of ['package.json', 'docs', ...readdirSync(root).filter(isPage)]) {
    cpSync(join(root, path), join(folder, path), { recursive: true });
  }
  const printed = execFileSync('npm', ['pack', '--dry-run', '--json', '--ignore-scripts'], {
    cwd: folder,
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'ignore'],
  });
  rmSync(folder, { recursive: true });
  const [{ files }] = JSON.parse(printed) as [{ files: { path: string }[] }];
  return new Set(files.map(({ path }) => path));
}

const isPage = (name: string): boolean => /^LICENSE$|\.(md|txt)$/.test(name);

test('the package has the documentation, and everything of it that the README shows or links to', () => {
  const packed = packedFiles();
  const linked = [...read('README.md').matchAll(/\]\((docs\/[^)#]+)|(?:src|srcset)="([^"]+)"/g)];
  const missing = linked
    .map(([, link, image]) => link ?? image ?? '')
    .filter((path) => !packed.has(path));
  expect(linked.length).toBeGreaterThan(5);
  expect(missing).toEqual([]);
  for (const path of ['LICENSE', 'CHANGELOG.md', 'SECURITY.md', 'VERSIONING.md', 'llms.txt']) {
    expect(packed).toContain(path);
  }
  expect([...packed].filter((path) => path.startsWith('docs/snippets/'))).toEqual([]);
  const listed = [...read('llms.txt').matchAll(/\]\(([^)]+)\)/g)].map(([, path = '']) => path);
  expect(listed.length).toBeGreaterThan(20);
  expect(listed.filter((path) => !packed.has(path))).toEqual([]);
  const pages = [...packed].filter((path) => path.startsWith('docs/') && path.endsWith('.md'));
  const unresolved = pages.flatMap((page) =>
    [...read(page).matchAll(/\]\((?!https?:|#)([^)#\s]+)/g)]
      .map(([, link = '']) => join(dirname(page), link))
      .filter((path) => !packed.has(path))
      .map((path) => `${page}: ${path}`),
  );
  expect(unresolved).toEqual([]);
});

const workflows = readdirSync(join(root, '.github/workflows'));

test.each(workflows)('the commands of the workflow %s exist', (name) => {
  const workflow = parse(read(`.github/workflows/${name}`)) as {
    jobs: Record<string, { steps: { run?: string }[] }>;
  };
  const { scripts } = JSON.parse(read('package.json')) as { scripts: Record<string, string> };
  const commands = Object.values(workflow.jobs).flatMap(({ steps }) =>
    steps.flatMap(({ run }) => (run === undefined ? [] : [run])),
  );
  for (const command of commands) {
    const [, script] = /^npm (?:run )?(\S+)$/.exec(command) ?? [];
    if (script !== undefined && script !== 'ci') expect(scripts).toHaveProperty([script]);
    if (command.startsWith('.ci/')) expect(existsSync(join(root, command))).toBe(true);
  }
  expect(commands).toContain('.ci/run');
});

test('the forms for issues are valid YAML with a name and a body', () => {
  const forms = readdirSync(join(root, '.github/ISSUE_TEMPLATE')).filter(
    (name) => name !== 'config.yml',
  );
  for (const name of forms) {
    expect(parse(read(`.github/ISSUE_TEMPLATE/${name}`))).toMatchObject({
      name: expect.any(String),
      description: expect.any(String),
      body: expect.any(Array),
    });
  }
});
