import { fileURLToPath } from 'node:url';
import { defineConfig } from 'vitest/config';
import root from '../../vitest.config.ts';

/** Tests with frameworks that are too heavy for everybody's `npm ci`: see docs/decisions/0104. */
export default defineConfig({
  ...root,
  root: fileURLToPath(new URL('../..', import.meta.url)),
  test: {
    ...root.test,
    include: ['test/interop/*.test.ts'],
    exclude: ['**/node_modules/**'],
    typecheck: { enabled: false },
  },
});
