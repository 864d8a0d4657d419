import { fileURLToPath } from 'node:url';
import { defineConfig } from 'vitest/config';
import root from '../../vitest.config.ts';

const { projects: _, ...test } = root.test ?? {};

/** Tests that start other runtimes, from Node. */
export default defineConfig({
  ...root,
  root: fileURLToPath(new URL('../..', import.meta.url)),
  test: { ...test, include: ['test/runtimes/*.test.ts'] },
});
