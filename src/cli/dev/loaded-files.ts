import { registerHooks } from 'node:module';
import { fileURLToPath } from 'node:url';

/** Tells of every file of the user's that is imported from now on: those outside of `node_modules`. */
export function onFileLoaded(listener: (path: string) => void): void {
  registerHooks({
    // Where a file is found, not where it is read: one that cannot be read is going to be mended.
    resolve(specifier, context, next) {
      const resolved = next(specifier, context);
      const { url } = resolved;
      if (url.startsWith('file:') && !url.includes('/node_modules/')) listener(fileURLToPath(url));
      return resolved;
    },
  });
}
