import { WaymarkError } from './error.ts';

// Not in `platform.ts`, whose declarations are part of public ones: apps without the types of Node could not compile them.

interface FileSystem {
  readonly fs: typeof import('node:fs/promises');
  readonly path: typeof import('node:path');
}

/** The modules for files and their paths; UNIMPLEMENTED where there are none. */
export function fileSystem(): FileSystem {
  const load = globalThis.process?.getBuiltinModule;
  const fs = load?.('node:fs/promises');
  const path = load?.('node:path');
  if (fs && path) return { fs, path };
  throw new WaymarkError('UNIMPLEMENTED', 'Files can be read only in Node, Bun and Deno.');
}
