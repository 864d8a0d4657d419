import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { build } from 'vite';
import type { TestProject } from 'vitest/node';

declare module 'vitest' {
  interface ProvidedContext {
    /** The folder of the built Studio. */
    studio: string;
  }
}

/** Builds the Studio once for all of its tests. */
export async function setup(project: TestProject): Promise<() => Promise<void>> {
  const root = fileURLToPath(new URL('../../../studio/', import.meta.url));
  const outDir = await mkdtemp(join(tmpdir(), 'waymark-studio-'));
  await build({
    configFile: join(root, 'vite.config.ts'),
    logLevel: 'error',
    mode: 'production',
    // A test runner's NODE_ENV would make it React's development form.
    define: { 'process.env.NODE_ENV': '"production"' },
    oxc: { jsx: { runtime: 'automatic', development: false } },
    build: { outDir },
  });
  project.provide('studio', outDir);
  return () => rm(outDir, { recursive: true, force: true });
}
