import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, renameSync, rmSync } from 'node:fs';
import { basename, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { bundlesVariable } from './test-folder.ts';

const root = fileURLToPath(new URL('../..', import.meta.url));

/**
 * The path of a script for child processes, bundled with everything it imports. Node starts a bundle three times faster than
 * several hundred source files. Each script is bundled once per test run.
 */
export function bundleChild(script: URL): string {
  const source = fileURLToPath(script);
  const folder = process.env[bundlesVariable];
  if (folder === undefined) return source;
  const name = source.slice(root.length).replaceAll(/[^\w]+/g, '-');
  const target = join(folder, name);
  if (!existsSync(target)) {
    const made = join(folder, `${name}.${process.pid}`);
    mkdirSync(made, { recursive: true });
    const options = ['--platform', 'node', '--format', 'esm', '--log-level', 'silent'];
    const command = join(root, 'node_modules/.bin/rolldown');
    execFileSync(command, [source, ...options, '--dir', made], { cwd: root, stdio: 'pipe' });
    try {
      renameSync(made, target);
    } catch {
      // Another worker was faster.
      rmSync(made, { recursive: true });
    }
  }
  return join(target, basename(source).replace(/\.ts$/, '.js'));
}
