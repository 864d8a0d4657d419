import { fileURLToPath } from 'node:url';
import { defineConfig } from 'vitest/config';
import root from '../../vitest.config.ts';

const { projects: _, ...test } = root.test ?? {};

/** Compiles modules with Svelte's runes, for the browser: on a server nothing reacts. */
const svelteModules = {
  name: 'svelte-modules',
  async transform(code: string, id: string) {
    const [filename = ''] = id.split('?');
    if (!filename.endsWith('.svelte.js')) return undefined;
    // Loaded here: checks of the whole project load this file without the packages of this folder.
    const { compileModule } = await import('svelte/compiler');
    return compileModule(code, { filename, generate: 'client', dev: false }).js;
  },
};

/** Tests with frameworks that are too heavy for everybody's `npm ci`: see docs/decisions/0104. */
export default defineConfig({
  ...root,
  root: fileURLToPath(new URL('../..', import.meta.url)),
  plugins: [svelteModules],
  ssr: { resolve: { conditions: ['svelte', 'module', 'node', 'development|production'] } },
  test: {
    ...test,
    include: ['test/interop/*.test.ts'],
    server: { deps: { inline: [/@ai-sdk\/svelte/] } },
  },
});
