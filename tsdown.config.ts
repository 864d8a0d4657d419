import { defineConfig } from 'tsdown';

export default defineConfig({
  entry: {
    index: 'src/index.ts',
    testing: 'src/testing/index.ts',
    'testing-contract': 'src/testing/contract.ts',
    sqlite: 'src/store/sqlite/index.ts',
    file: 'src/store/file/index.ts',
    postgres: 'src/store/postgres/index.ts',
    'pg-boss': 'src/engine/pg-boss/index.ts',
    server: 'src/server/index.ts',
    client: 'src/client/index.ts',
    react: 'src/react/index.ts',
    cli: 'src/cli/main.ts',
  },
  format: 'esm',
  platform: 'node',
  target: 'es2024',
  // Declarations come from the compiler itself (tsconfig.build.json): the types of valibot schemas are inferred.
  dts: false,
  // Dependencies stay dependencies; nothing is bundled.
  deps: { onlyBundle: [] },
});
