import { fileURLToPath } from 'node:url';

const src = (path: string): string =>
  fileURLToPath(new URL(`../../../src/${path}`, import.meta.url));

/** For Vitest 4, which vitest-evals and evalite need. */
export default {
  root: fileURLToPath(new URL('.', import.meta.url)),
  resolve: {
    alias: [
      { find: /^waymark$/, replacement: src('index.ts') },
      { find: /^waymark\/replay\/vitest$/, replacement: src('replay/vitest/index.ts') },
      { find: /^waymark\/(replay|testing|store)$/, replacement: src('$1/index.ts') },
      {
        find: /^vitest$/,
        replacement: fileURLToPath(new URL('node_modules/vitest/dist/index.js', import.meta.url)),
      },
    ],
  },
  test: { include: ['*.eval-test.ts'] },
};
