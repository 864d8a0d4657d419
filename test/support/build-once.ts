import { existsSync, mkdirSync, renameSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { bundlesVariable } from './test-folder.ts';

/** The root of the repository. */
export const root: string = fileURLToPath(new URL('../..', import.meta.url));

/** The path of a program that the repository's packages bring. */
export const bin = (name: string): string => join(root, 'node_modules/.bin', name);

/** The folder that `build` fills, built once per test run by the first worker that needs it. */
export function buildOnce(name: string, build: (folder: string) => void): string {
  const folder = process.env[bundlesVariable];
  if (folder === undefined) throw new Error('Only a test run has a folder for what it builds.');
  const target = join(folder, name);
  if (existsSync(target)) return target;
  const made = join(folder, `${name}.${process.pid}`);
  mkdirSync(made, { recursive: true });
  build(made);
  try {
    renameSync(made, target);
  } catch {
    // Another worker was faster.
    rmSync(made, { recursive: true });
  }
  return target;
}
