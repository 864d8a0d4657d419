import { registerHooks } from 'node:module';
import { join, sep } from 'node:path';
import { fileURLToPath } from 'node:url';
import { packageRoot } from '../package-root.ts';

/** Calls the listener for each file that is imported from now on, except those of packages. */
export function onFileLoaded(listener: (path: string) => void): void {
  const root = packageRoot();
  const packaged = ['src', 'dist'].map((name) => join(root, name) + sep);
  const isUsers = (path: string): boolean =>
    !path.includes(`${sep}node_modules${sep}`) && !packaged.some((part) => path.startsWith(part));
  registerHooks({
    // On resolve, not on load: a file with a syntax error must be watched, too.
    resolve(specifier, context, next) {
      const resolved = next(specifier, context);
      const path = resolved.url.startsWith('file:') ? fileURLToPath(resolved.url) : undefined;
      if (path !== undefined && isUsers(path)) listener(path);
      return resolved;
    },
  });
}
