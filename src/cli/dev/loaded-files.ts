import { registerHooks } from 'node:module';
import { join, sep } from 'node:path';
import { fileURLToPath } from 'node:url';
import { packageRoot } from '../package-root.ts';

/** Tells of every file of the user's that is imported from now on: those outside of packages, this one included. */
export function onFileLoaded(listener: (path: string) => void): void {
  const root = packageRoot();
  const packaged = ['src', 'dist'].map((name) => join(root, name) + sep);
  const isUsers = (path: string): boolean =>
    !path.includes(`${sep}node_modules${sep}`) && !packaged.some((part) => path.startsWith(part));
  registerHooks({
    // Where a file is found, not where it is read: one that cannot be read is going to be mended.
    resolve(specifier, context, next) {
      const resolved = next(specifier, context);
      const path = resolved.url.startsWith('file:') ? fileURLToPath(resolved.url) : undefined;
      if (path !== undefined && isUsers(path)) listener(path);
      return resolved;
    },
  });
}
