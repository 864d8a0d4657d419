import { fileURLToPath } from 'node:url';
import { defineConfig } from 'vitest/config';
import root from '../vitest.config.ts';

const { projects: _, ...test } = root.test ?? {};

/** Tests of the built site: see docs/decisions/0194. */
export default defineConfig({
  ...root,
  root: fileURLToPath(new URL('..', import.meta.url)),
  test: { ...test, include: ['site/*.test.ts'] },
});
