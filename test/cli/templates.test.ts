/** Every template of `waymark init`, with the built package. `test/interop` installs, checks and starts them. */
import { execFileSync } from 'node:child_process';
import { readdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { templateNames } from '../../src/cli/commands/init.ts';
import { withBuiltPackage } from './support/built-package.ts';
import { command, tempFolder } from './support/command.ts';

const root = resolve(import.meta.dirname, '../..');
const folder = tempFolder();
afterAll(() => folder.remove());

const everywhere = [
  '.gitignore',
  'README.md',
  'agents.ts',
  'desk.test.ts',
  'desk.ts',
  'model.ts',
  'package.json',
  'tsconfig.json',
];
const more: Readonly<Record<string, readonly string[]>> = {
  default: [],
  hono: ['auth.ts', 'server.ts'],
  next: ['app/api/[...path]/route.ts', 'app/layout.tsx', 'app/page.tsx'],
  worker: ['auth.ts', 'background.ts', 'docker-compose.yml'],
  cloudflare: ['.dev.vars', 'auth.ts', 'worker.ts', 'workers.d.ts', 'wrangler.json'],
};

beforeAll(async () => {
  for (const name of templateNames) {
    const { code } = await command(folder.path, ['init', `My ${name}`, '--template', name]);
    expect(code).toBe(0);
  }
  // What `npm install` would bring.
  symlinkSync(join(root, 'node_modules'), join(folder.path, 'node_modules'));
});

describe.each(templateNames)('the template %s', (name) => {
  const project = join(folder.path, `My ${name}`);

  test('has its files, its name, and how to use a real model', () => {
    const files = readdirSync(project, { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile())
      .map((entry) => join(entry.parentPath, entry.name).slice(project.length + 1));
    expect(files.sort()).toEqual([...everywhere, ...(more[name] ?? [])].sort());
    const manifest = JSON.parse(readFileSync(join(project, 'package.json'), 'utf8'));
    const { version } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));
    expect(manifest.name).toBe(`my-${name}`);
    expect(manifest.dependencies.waymark).toBe(`^${version}`);
    expect(readFileSync(join(project, 'README.md'), 'utf8')).toMatch(`# My ${name}\n`);
    expect(readFileSync(join(project, 'model.ts'), 'utf8')).toContain('OPENAI_API_KEY');
  });

  test('passes its own test', () => {
    const found = withBuiltPackage();
    const args = [...found.options, '--test', '--test-reporter', 'tap'];
    const env = { ...process.env, ...found.env, NODE_OPTIONS: '' };
    const printed = execFileSync(process.execPath, args, { cwd: project, encoding: 'utf8', env });
    expect(printed).toContain('# pass 1\n# fail 0');
  });
});

test('all templates compile as strictly as this repository does', () => {
  const config = join(folder.path, 'tsconfig.json');
  const { compilerOptions } = JSON.parse(readFileSync(join(root, 'tsconfig.json'), 'utf8'));
  const { rootDirs: _, ...options } = compilerOptions;
  const paths = Object.fromEntries(
    Object.entries(options.paths as Record<string, string[]>).map(([entry, [path = '']]) => [
      entry,
      [join(root, path)],
    ]),
  );
  writeFileSync(
    config,
    JSON.stringify({
      compilerOptions: { ...options, paths },
      include: ['My */**/*'],
    }),
  );
  const tsc = join(root, 'node_modules/.bin/tsc');
  expect(() => execFileSync(tsc, ['-p', config], { stdio: 'pipe' })).not.toThrow();
});

test('an unknown template is told which there are', async () => {
  const { code, stderr } = await command(folder.path, ['init', 'x', '--template', 'nextjs']);
  expect(code).toBe(2);
  expect(stderr).toContain('There is no template "nextjs". Did you mean "next"?');
  expect(stderr).toContain('Templates: default, hono, next, worker, cloudflare.');
});
