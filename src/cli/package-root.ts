import { existsSync, readFileSync } from 'node:fs';
import { dirname, join, sep } from 'node:path';

/** The folder of this package: the nearest one with a manifest, built or not. */
export function packageRoot(): string {
  let folder = import.meta.dirname;
  while (!existsSync(join(folder, 'package.json')) && dirname(folder) !== folder) {
    folder = dirname(folder);
  }
  return folder;
}

/** Whether a file belongs to the user, and not to a package. */
export function isUsersFile(path: string): boolean {
  const root = packageRoot();
  const isOurs = ['src', 'dist'].some((name) => path.startsWith(join(root, name) + sep));
  return !isOurs && !path.includes(`${sep}node_modules${sep}`);
}

export function version(): string {
  const manifest = JSON.parse(readFileSync(join(packageRoot(), 'package.json'), 'utf8'));
  return String(manifest.version ?? '');
}
