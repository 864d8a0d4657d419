import { fileURLToPath } from 'node:url';
import { defineConfig } from 'vitest/config';
import root from '../../vitest.config.ts';

const { projects: _, ...test } = root.test ?? {};

/** Tests with frameworks that are too heavy for everybody's `npm ci`: see docs/decisions/0104. */
export default defineConfig({
  ...root,
  root: fileURLToPath(new URL('../..', import.meta.url)),
  test: { ...test, include: ['test/interop/*.test.ts'] },
});
