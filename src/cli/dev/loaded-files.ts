import { globSync } from 'node:fs';
// All of it: Bun has no `registerHooks`, and a missing name would be a syntax error.
import * as nodeModule from 'node:module';
import { dirname, join, resolve, sep } from 'node:path';
import { fileURLToPath } from 'node:url';
import { packageRoot } from '../package-root.ts';

/** Calls the listener for each file that is imported from now on, except those of packages. */
export function onFileLoaded(entry: string, listener: (path: string) => void): void {
  // At runtime it may be missing, whatever its types say.
  const { registerHooks } = nodeModule as Partial<typeof nodeModule>;
  if (registerHooks === undefined) {
    for (const path of sourceFiles(entry)) listener(path);
    return;
  }
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

// Where imports cannot be observed, every source file next to the entry and below counts as imported.
function sourceFiles(entry: string): readonly string[] {
  const folder = dirname(resolve(entry));
  const found = globSync('**/*.{ts,tsx,mts,js,mjs,json}', {
    cwd: folder,
    exclude: (name) => name === 'node_modules' || name === 'dist',
  });
  return [resolve(entry), ...found.slice(0, mostFiles).map((name) => join(folder, name))];
}

const mostFiles = 1000;
