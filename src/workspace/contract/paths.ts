import { invalid } from '../../core/error.ts';

/** Names that are never part of a tree: the data of git and of workspaces, packages that can be installed again, and secrets. */
export function isAlwaysIgnored(name: string): boolean {
  // A quick exit for nearly all names.
  if (!suspicious.test(name)) return false;
  const plain = name
    .replace(/[\u200c-\u200f\u202a-\u202e\u206a-\u206f\ufeff]/g, '')
    .replace(/[. ]+$/, '')
    .toLowerCase();
  return (
    plain === '.git' ||
    plain === 'git~1' ||
    plain === metadataFolder ||
    plain === 'node_modules' ||
    isSecret(plain)
  );
}

/** The folder for the metadata of a workspace. */
export const metadataFolder = '.waymark';

// Some file systems take these for the names below: other case, characters without width, dots and spaces at the end, short names.
const suspicious = /^[\u200c-\u200f\u202a-\u202e\u206a-\u206f\ufeff]*[.gn]/i;

function isSecret(name: string): boolean {
  return name === '.env' || (name.startsWith('.env.') && name !== '.env.example');
}

/** Whether tools may not even read a path: secrets, and the data of git and of workspaces. */
export function isPrivate(path: string): boolean {
  return path.split('/').some((name) => isAlwaysIgnored(name) && name !== 'node_modules');
}

/** Refuses a path that leads out of a folder: absolute, or with `..`. */
export function checkRelative(path: string): void {
  const isOdd = (name: string): boolean => name === '' || name === '.' || name === '..';
  if (isText(path) && !path.split('/').some(isOdd)) return;
  throw invalid(
    `${JSON.stringify(path)} is no path in a workspace. Use a relative path such as "src/index.ts", without "..".`,
  );
}

/** Refuses a path that no tree has: outside of it, or with a name that is always ignored. */
export function checkTreePath(path: string): void {
  checkRelative(path);
  const ignored = path.split('/').find(isAlwaysIgnored);
  if (ignored === undefined) return;
  throw invalid(
    `${JSON.stringify(path)} cannot be part of a workspace: "${ignored}" is always ignored.`,
  );
}

function isText(path: string): boolean {
  return path.isWellFormed() && !path.includes('\0');
}
