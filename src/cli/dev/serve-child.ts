import { globSync } from 'node:fs';
import * as nodeModule from 'node:module';
import { dirname, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { messageOf, toErrorBody } from '../../core/error.ts';
import { isUsersFile } from '../package-root.ts';
import { type ServeFileOptions, serveFile } from './serve-file.ts';
import type { ChildMessage } from './supervise.ts';

/** Serves a file under a supervisor, and reports to it. Ends when the supervisor asks for it, or is gone. */
export async function serveChild(options: ServeFileOptions): Promise<void> {
  const tell = (message: ChildMessage): void => void process.send?.(message);
  // Ctrl-C reaches the whole process group; the supervisor handles it.
  process.on('SIGINT', () => {});
  const told = Promise.withResolvers<void>();
  // The supervisor sends one message: that this process is to close.
  process.on('message', () => told.resolve());
  process.on('disconnect', () => told.resolve());
  onFileLoaded(resolve(options.cwd, options.path), (path) => tell({ type: 'loaded', path }));
  const file = await serveFile(options).catch((error: unknown) => {
    const stack = error instanceof Error ? causeOf(error).stack : undefined;
    tell({ type: 'failed', error: { ...toErrorBody(error), message: messageOf(error) }, stack });
  });
  if (file) tell({ type: 'serving', served: file.served });
  await told.promise;
  await file?.close();
}

function causeOf(error: Error): Error {
  return error.cause instanceof Error ? error.cause : error;
}

// All of it: Bun has no `registerHooks`, and a missing name would be a syntax error.

/** Calls the listener for each file that is imported from now on, except those of packages. */
function onFileLoaded(entry: string, listener: (path: string) => void): void {
  // At runtime it may be missing, whatever its types say.
  const { registerHooks } = nodeModule as Partial<typeof nodeModule>;
  if (registerHooks === undefined) {
    for (const path of sourceFiles(entry)) listener(path);
    return;
  }
  registerHooks({
    // On resolve, not on load: a file with a syntax error must be watched, too.
    resolve(specifier, context, next) {
      const resolved = next(specifier, context);
      const path = resolved.url.startsWith('file:') ? fileURLToPath(resolved.url) : undefined;
      if (path !== undefined && isUsersFile(path)) listener(path);
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
  return [resolve(entry), ...found.slice(0, maxFiles).map((name) => join(folder, name))];
}

const maxFiles = 1000;
