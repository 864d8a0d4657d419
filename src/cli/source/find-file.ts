import { existsSync, statSync } from 'node:fs';
import { relative, resolve } from 'node:path';
import { WaymarkError } from '../../core/error.ts';

/** Where a file of agents is looked for, in this order. */
const usualFiles = ['agents.ts', 'agents.js', 'agents.mjs', 'src/agents.ts', 'src/agents.js'];

/** The file of agents that is meant: the given one, or the first of the usual ones. */
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
    `There is no file of agents here (${usualFiles.join(', ')}). Name one with --file, a server with --url, or make a project with "waymark init".`,
  );
}

/** A path as a person in this folder would write it. */
export function shownPath(path: string, cwd: string): string {
  const short = relative(cwd, path);
  return short.startsWith('..') ? path : short;
}

function isFile(path: string): boolean {
  return existsSync(path) && statSync(path).isFile();
}
