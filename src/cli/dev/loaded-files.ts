import { registerHooks } from 'node:module';
import { fileURLToPath } from 'node:url';

/** Tells of every file of the user's that is loaded from now on: those outside of `node_modules`. */
export function onFileLoaded(listener: (path: string) => void): void {
  registerHooks({
    load(url, context, next) {
      if (url.startsWith('file:') && !url.includes('/node_modules/')) listener(fileURLToPath(url));
      return next(url, context);
    },
  });
}
