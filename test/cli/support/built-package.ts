import { execFileSync } from 'node:child_process';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { bin, buildOnce, root } from '../../support/build-once.ts';

/**
 * Where the package is, built as it is published, once per test run. A command starts from it in a third of the time that it
 * takes from several hundred source files.
 */
function builtPackage(): string {
  return buildOnce('package', (folder) => {
    const options = ['--out-dir', folder, '--no-clean', '--logLevel', 'silent'];
    execFileSync(bin('tsdown'), options, { cwd: root, stdio: 'pipe' });
  });
}

const hooks = fileURLToPath(new URL('./find-package.ts', import.meta.url));

/** Options of Node and variables with which the files that it runs find the built package under its name. */
export function withBuiltPackage(): { options: string[]; env: Record<string, string> } {
  return { options: ['--import', hooks], env: { WAYMARK_TEST_PACKAGE: builtPackage() } };
}

/** The script of the command line. */
export function builtCommand(): string {
  return join(builtPackage(), 'cli.mjs');
}
