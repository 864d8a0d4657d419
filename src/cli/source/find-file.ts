import { existsSync, statSync } from 'node:fs';
import { relative, resolve } from 'node:path';
import { WaymarkError } from '../../core/error.ts';

/** The default files, in this order. */
const usualFiles = ['agents.ts', 'agents.js', 'agents.mjs', 'src/agents.ts', 'src/agents.js'];

/** The given file, or the first default file that exists. */
export function findAgentsFile(given: string | undefined, cwd: string): string {
  if (given !== undefined) {
    const path = resolve(cwd, given);
    if (isFile(path)) return path;
    throw new WaymarkError('NOT_FOUND', `There is no file ${given}.`);
  }
  const found = usualFiles.map((name) => resolve(cwd, name)).find(isFile);
  if (found !== undefined) return found;
  throw new WaymarkError(
    'NOT_FOUND',
    `There is no file with an app here (${usualFiles.join(', ')}). Name a file with --file or a server with --url, or create a project with "waymark init".`,
  );
}

/** A path relative to the current folder, where it is below it. */
export function shownPath(path: string, cwd: string): string {
  const short = relative(cwd, path);
  return short.startsWith('..') ? path : short;
}

function isFile(path: string): boolean {
  return existsSync(path) && statSync(path).isFile();
}
