import { execFileSync, spawnSync } from 'node:child_process';
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';

const root = resolve(import.meta.dirname, '../..');
const manifest = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as {
  readonly bin: { readonly waymark: string };
  readonly exports: Record<string, Readonly<Record<string, string>> | string>;
  readonly dependencies: Record<string, string>;
  readonly peerDependencies: Record<string, string>;
};

/** A folder in which the package is installed as a user would have it: what is packed, and its dependencies, no more. */
let project: string;
let tarball: string;

beforeAll(() => {
  project = mkdtempSync(join(tmpdir(), 'waymark-built-'));
  // As `npm start` leaves it: without declarations.
  rmSync(join(root, 'dist/types'), { recursive: true, force: true });
  execFileSync('npm', ['pack', '--pack-destination', project], { cwd: root, stdio: 'pipe' });
  tarball = join(project, readdirSync(project).find((name) => name.endsWith('.tgz')) ?? '');
  const installed = join(project, 'node_modules/waymark');
  mkdirSync(installed, { recursive: true });
  execFileSync('tar', ['-xzf', tarball, '--strip-components=1', '-C', installed]);
  for (const name of Object.keys(manifest.dependencies)) link(name);
  writeFileSync(join(project, 'package.json'), '{ "type": "module" }');
}, 180_000);

afterAll(() => rmSync(project, { recursive: true, force: true }));

function link(name: string): void {
  const target = join(project, 'node_modules', name);
  mkdirSync(join(target, '..'), { recursive: true });
  symlinkSync(join(root, 'node_modules', name), target);
}

function bin(name: string, args: readonly string[], cwd = project): string {
  return execFileSync(join(root, 'node_modules/.bin', name), args, { cwd, encoding: 'utf8' });
}

function run(code: string): string {
  writeFileSync(join(project, 'main.mjs'), code);
  return bin('node', ['main.mjs']);
}

describe('the built package', () => {
  test('runs an agent with nothing installed but its own dependencies', () => {
    const printed = run(`
      import { memoryStore, waymark } from 'waymark';
      const app = waymark({ store: memoryStore() });
      const model = app.defineModel({ name: 'echo' }, async ({ messages }) => ({
        message: { role: 'model', content: [{ text: 'You said: ' + messages.at(-1).content[0].text }] },
        finishReason: 'stop',
      }));
      const chat = app.defineAgent({ name: 'chat', model });
      const { message, snapshotId } = await chat.runText('hello');
      console.log(message.content[0].text, typeof snapshotId);
      await app.close();
    `);
    expect(printed).toBe('You said: hello string\n');
  });

  test('contains every file that its manifest names, after an incomplete build', () => {
    const named = Object.values(manifest.exports).flatMap((entry) =>
      typeof entry === 'string' ? [entry] : Object.values(entry),
    );
    const missing = [...named, manifest.bin.waymark].filter(
      (path) => !existsSync(join(project, 'node_modules/waymark', path)),
    );
    expect(named.filter((path) => path.endsWith('.d.ts')).length).toBeGreaterThan(10);
    expect(missing).toEqual([]);
  });

  test('pulls in a handful of small dependencies', () => {
    expect(Object.keys(manifest.dependencies).sort()).toEqual([
      '@cfworker/json-schema',
      '@standard-schema/spec',
      'valibot',
    ]);
  });

  test('has every entry that it names, once the optional peers are installed', () => {
    for (const name of Object.keys(manifest.peerDependencies)) link(name);
    const entries = Object.keys(manifest.exports).filter((name) => name !== './package.json');
    // The contract suites register tests, and matchers extend `expect`: they load inside a test runner only.
    const inRunnerOnly = ['./testing/contract', './replay/vitest'];
    const printed = run(`
      for (const entry of ${JSON.stringify(entries)}) {
        if (${JSON.stringify(inRunnerOnly)}.includes(entry)) continue;
        const names = Object.keys(await import(entry.replace('.', 'waymark')));
        console.log(entry, names.length > 0);
      }
    `);
    const expected = entries.filter((entry) => !inRunnerOnly.includes(entry));
    expect(printed.trim().split('\n')).toEqual(expected.map((entry) => `${entry} true`));
  });

  test('loads as a few files, and nothing of a protocol', () => {
    const printed = run(`
      import { registerHooks } from 'node:module';
      const files = [];
      registerHooks({
        load(url, context, next) {
          if (url.includes('/waymark/dist/')) files.push(url.split('/dist/')[1]);
          return next(url, context);
        },
      });
      await import('waymark');
      console.log(files.join(' '));
    `);
    const files = printed.trim().split(' ');
    // Finding and linking a module takes about a millisecond. It was 50 files before they were grouped.
    expect(files.length).toBeLessThan(15);
    expect(files.filter((file) => /^(mcp|a2a|server|client|endpoint)/.test(file))).toEqual([]);
  });

  test('has types that a strict consumer compiles against', () => {
    writeFileSync(
      join(project, 'main.ts'),
      `
      import { waymark, memoryStore, type Output } from 'waymark';
      import { createClient } from 'waymark/client';
      const app = waymark({ store: memoryStore() });
      const chat = app.defineAgent({ name: 'chat' });
      export const output: Promise<Output> = chat.runText('hello');
      export const client = createClient({ url: 'http://127.0.0.1:1' });
      `,
    );
    const options = ['--noEmit', '--strict', '--target', 'es2024', '--module', 'nodenext'];
    const { stdout } = spawnSync(
      join(root, 'node_modules/.bin/tsc'),
      [...options, '--skipLibCheck', 'false', '--types', '', 'main.ts'],
      { cwd: project, encoding: 'utf8' },
    );
    expect(stdout).toBe('');
  });

  test.each(['20.19.0', '22.19.0', '24.6.0'])(
    'on Node %s the command says what it needs',
    (version) => {
      const pretend = `Object.defineProperty(process, 'versions', { value: { ...process.versions, node: '${version}' } })`;
      const { status, stderr } = spawnSync(
        join(root, 'node_modules/.bin/node'),
        ['--import', `data:text/javascript,${pretend}`, join(root, 'dist/cli.mjs'), '--help'],
        { encoding: 'utf8' },
      );
      expect(status).toBe(1);
      expect(stderr).toContain(
        `waymark needs Node 22 (22.20 or later) or Node 24.7 or later, and this is ${version}. `,
      );
      expect(bin('node', [join(root, 'dist/cli.mjs'), '--help'])).toContain('Usage');
    },
  );

  test('passes publint', () => {
    expect(() => bin('publint', ['run', '--strict', tarball])).not.toThrow();
  });

  test('holds nothing of Node in what a browser loads', () => {
    const dist = join(root, 'dist');
    const seen = new Set<string>();
    const visit = (file: string): void => {
      if (seen.has(file)) return;
      seen.add(file);
      const text = readFileSync(join(dist, file), 'utf8');
      expect(text).not.toMatch(/(?:from|import)\s*\(?["']node:/);
      for (const [, next] of text.matchAll(/from\s*["']\.\/([^"']+)["']/g)) visit(next ?? '');
    };
    visit('client.mjs');
    visit('react.mjs');
    expect(seen.size).toBeGreaterThan(1);
    expect(readdirSync(dist)).toContain('client.mjs');
  });
});
