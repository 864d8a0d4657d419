import { defineConfig } from 'tsdown';

export default defineConfig({
  entry: {
    index: 'src/index.ts',
    testing: 'src/testing/index.ts',
    'testing-contract': 'src/testing/contract.ts',
    store: 'src/store/index.ts',
    sqlite: 'src/store/sqlite/index.ts',
    file: 'src/store/file/index.ts',
    postgres: 'src/store/postgres/index.ts',
    'pg-boss': 'src/engine/pg-boss/index.ts',
    server: 'src/server/index.ts',
    client: 'src/client/index.ts',
    react: 'src/react/index.ts',
    mcp: 'src/mcp/index.ts',
    cli: 'src/cli/main.ts',
  },
  format: 'esm',
  platform: 'node',
  target: 'es2024',
  // Declarations come from the compiler itself (tsconfig.build.json): the types of valibot schemas are inferred.
  dts: false,
  // Most of an import is finding and compiling modules: these two come along, without what we do not use of them. See
  // docs/decisions/0001; their licences are in THIRD-PARTY-NOTICES.md.
  // The entry that Node would get is the development build.
  alias: { mutative: 'mutative/dist/mutative.esm.production.min.mjs' },
  deps: { alwaysBundle: ['valibot', 'mutative'], onlyBundle: ['valibot', 'mutative'] },
});
