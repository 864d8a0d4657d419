import { readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { defineConfig } from 'tsdown';

const bundled = ['valibot', 'mutative', '@noble/hashes', 'croner', 'ignore', 'yaml'];

/** A file of `src` and all that it imports besides types. */
function graphOf(path: string, found: Set<string> = new Set()): Set<string> {
  if (found.has(path)) return found;
  found.add(path);
  const source = readFileSync(path, 'utf8');
  for (const [, types, name = ''] of source.matchAll(
    /^(?:import|export) (type )?[^;]*?from '(\.[^']+)'/gm,
  )) {
    if (types === undefined) graphOf(resolve(path, '..', name), found);
  }
  return found;
}

const src = resolve(import.meta.dirname, 'src');
const ofClient = graphOf(resolve(src, 'client/index.ts'));
const ofReact = graphOf(resolve(src, 'react/index.ts'));
const ofApp = graphOf(resolve(src, 'index.ts'));

/** Escapes other characters in literals: one of them makes V8 read the whole file as two bytes a character, which takes longer. */
function inAscii(code: string): string {
  return code.replace(
    /[^\0-\x7f]/g,
    (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );
}

export default defineConfig({
  entry: {
    index: 'src/index.ts',
    a2a: 'src/a2a/index.ts',
    acp: 'src/acp/index.ts',
    testing: 'src/testing/index.ts',
    'testing-contract': 'src/testing/contract.ts',
    store: 'src/store/index.ts',
    sqlite: 'src/store/sqlite/index.ts',
    libsql: 'src/store/libsql/index.ts',
    d1: 'src/store/d1/index.ts',
    'durable-object': 'src/durable-object/index.ts',
    pglite: 'src/store/pglite/index.ts',
    sql: 'src/sql/index.ts',
    file: 'src/store/file/index.ts',
    postgres: 'src/store/postgres/index.ts',
    'pg-boss': 'src/engine/pg-boss/index.ts',
    server: 'src/server/index.ts',
    // For runtimes in which no server can be started.
    'server-fetch': 'src/server/fetch-only.ts',
    client: 'src/client/index.ts',
    react: 'src/react/index.ts',
    mcp: 'src/mcp/index.ts',
    replay: 'src/replay/index.ts',
    prices: 'src/prices/index.ts',
    workspace: 'src/workspace/index.ts',
    engine: 'src/engine/index.ts',
    messages: 'src/messages/index.ts',
    'replay-vitest': 'src/replay/vitest/index.ts',
    cli: 'src/cli/main.ts',
  },
  format: 'esm',
  platform: 'node',
  target: 'es2024',
  // Declarations come from the compiler itself (tsconfig.build.json): the types of valibot schemas are inferred.
  dts: false,
  // Most of an import is finding and compiling modules: these come along, without what we do not use of them. See
  // docs/decisions/0001; their licences are in THIRD-PARTY-NOTICES.md.
  // The entry that Node would get is the development build.
  alias: {
    mutative: 'mutative/dist/mutative.esm.production.min.mjs',
    // The entry for Node is CommonJS, which needs modules that other runtimes do not have.
    yaml: resolve(import.meta.dirname, 'node_modules/yaml/browser/index.js'),
  },
  // Finding a module takes longer than reading it: what every app loads is one file, apart from what browsers load too.
  outputOptions: {
    // Half of an import is parsing. The comments are in the declarations.
    comments: { jsdoc: false },
    codeSplitting: {
      groups: [
        { name: 'with-client', test: (id) => ofApp.has(id) && ofClient.has(id), priority: 3 },
        { name: 'with-react', test: (id) => ofApp.has(id) && ofReact.has(id), priority: 2 },
        { name: 'app', test: (id) => ofApp.has(id), priority: 1 },
      ],
    },
  },
  plugins: [
    {
      name: 'ascii',
      // Earlier hooks run before the code is printed the last time.
      generateBundle(_options, bundle) {
        for (const file of Object.values(bundle)) {
          if (file.type === 'chunk') file.code = inAscii(file.code);
        }
      },
    },
  ],
  deps: { alwaysBundle: bundled, onlyBundle: bundled },
});
