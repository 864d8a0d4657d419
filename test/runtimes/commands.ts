import { existsSync, symlinkSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { ContractRuntime } from '../../src/testing/engine-contract/contract-process.ts';

const require = createRequire(import.meta.url);

/** The runtimes that execute Node's packages and files. */
export type RuntimeName = 'node' | 'node22' | 'bun' | 'deno';

/** How a file is executed by each runtime. */
export const runtimes: Readonly<Record<RuntimeName, Required<ContractRuntime>>> = {
  node: { execPath: process.execPath, execArgv: [] },
  // The oldest version that the package supports.
  node22: { execPath: installed('node', 'bin/node'), execArgv: [] },
  bun: { execPath: installed('bun', 'bin/bun.exe'), execArgv: [] },
  deno: { execPath: installed('deno', 'deno'), execArgv: ['run', '--allow-all', '--quiet'] },
};

// The scripts in `.bin` start the program as a child, which a signal to the script would not reach.
function installed(name: string, path: string): string {
  return join(dirname(require.resolve(`${name}/package.json`)), path);
}

/** The root of the project. */
export const root: string = fileURLToPath(new URL('../..', import.meta.url));

/** Lets files of this folder find the built package by its name, as its users do. */
export function linkPackage(): void {
  const link = join(root, 'test/runtimes/node_modules/waymark');
  if (!existsSync(link)) symlinkSync(root, link, 'dir');
}
