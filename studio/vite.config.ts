import { fileURLToPath } from 'node:url';
import react from '@vitejs/plugin-react';
import { defineConfig } from 'vite';

export default defineConfig({
  root: fileURLToPath(new URL('.', import.meta.url)),
  // The studio may be mounted anywhere, so it names its files relative to its page.
  base: './',
  plugins: [react()],
  build: {
    outDir: fileURLToPath(new URL('../dist/studio', import.meta.url)),
    emptyOutDir: true,
    target: 'es2023',
    // The policy of the page takes no data: script or style, and the few assets there are stay files.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    reportCompressedSize: false,
    // A test holds the size of the first load.
    chunkSizeWarningLimit: 1_000,
  },
  // `vite studio` while `waymark dev` serves the agents beside it.
  server: {
    proxy: {
      '^/(agents|studio/(traces|calls|turns|rerun|sources|tools))\\b': 'http://127.0.0.1:3000',
    },
  },
});
