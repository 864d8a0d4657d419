/** From an empty folder to the first answer of an agent of one's own, with the package as it is built. */
import { execFileSync, spawn } from 'node:child_process';
import { cpSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { tempFolder } from './support/command.ts';

const root = resolve(import.meta.dirname, '../..');
const bin = (name: string): string => join(root, 'node_modules/.bin', name);
const folder = tempFolder();
const installed = join(folder.path, 'waymark');
const project = join(folder.path, 'my-agents');
const waymark = join(project, 'node_modules/.bin/waymark');

// Built into a folder of its own: other tests build into the repository's.
beforeAll(() => {
  mkdirSync(installed);
  cpSync(join(root, 'package.json'), join(installed, 'package.json'));
  cpSync(join(root, 'templates'), join(installed, 'templates'), { recursive: true });
  symlinkSync(join(root, 'node_modules'), join(installed, 'node_modules'));
  execFileSync(bin('tsdown'), ['--out-dir', join(installed, 'dist'), '--silent'], { cwd: root });
});
afterAll(() => folder.remove());

/** What `npm install` does, without a network. */
function install(): void {
  const { dependencies } = JSON.parse(readFileSync(join(project, 'package.json'), 'utf8')) as {
    readonly dependencies: Record<string, string>;
  };
  for (const name of Object.keys(dependencies)) {
    const target = join(project, 'node_modules', name);
    mkdirSync(dirname(target), { recursive: true });
    symlinkSync(name === 'waymark' ? installed : join(root, 'node_modules', name), target);
  }
  mkdirSync(dirname(waymark), { recursive: true });
  symlinkSync(join(installed, 'dist/cli.mjs'), waymark);
}

const run = (command: string, args: readonly string[], cwd: string): string =>
  execFileSync(command, args, {
    cwd,
    encoding: 'utf8',
    stdio: 'pipe',
    env: { ...process.env, NO_COLOR: '1' },
  });
const init = (...args: string[]): string =>
  run(process.execPath, [join(installed, 'dist/cli.mjs'), 'init', ...args], folder.path);

describe('the first minutes', () => {
  test('a new project answers after one command', () => {
    expect(init('my-agents')).toContain('npm start');
    install();
    const answer = run(waymark, ['chat', 'desk', 'Where is order 7?'], project);
    expect(answer).toContain('← look_up_order {"order":"7","item":"Desk lamp","paid":40}');
  });

  test('its test passes', () => {
    expect(run(process.execPath, ['--test'], project)).toMatch(/pass 1\n/);
  });

  test('npm start serves it, and the session of before is there', async () => {
    const { scripts } = JSON.parse(readFileSync(join(project, 'package.json'), 'utf8'));
    const [, ...args] = String(scripts.start).split(' ');
    const dev = spawn(waymark, [...args, '--port', '0'], { cwd: project });
    try {
      let printed = '';
      for await (const text of dev.stdout) {
        printed += String(text);
        if (/^ {2}desk/m.test(printed)) break;
      }
      const [, url = ''] = /Server +(http:\S+)/.exec(printed) ?? [];
      const response = await fetch(`${url}/agents/desk/sessions`);
      expect(await response.json()).toMatchObject({ items: [{ agent: 'desk', turnCount: 1 }] });
    } finally {
      dev.kill('SIGINT');
      await new Promise((ended) => dev.once('exit', ended));
    }
  });

  test('init leaves a folder with files in it alone', () => {
    const again = (...options: string[]): string =>
      run(waymark, ['init', '--json', ...options], project);
    expect(() => again()).toThrow(/is not empty/);
    writeFileSync(join(project, 'agents.ts'), '// mine\n');
    expect(JSON.parse(again('--force'))).toMatchObject({ files: [] });
    expect(readFileSync(join(project, 'agents.ts'), 'utf8')).toBe('// mine\n');
  });
});
