import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { durableObject } from '../../src/durable-object/index.ts';
import type { Store } from '../../src/store/contract/store.ts';
import { d1Store } from '../../src/store/d1/index.ts';
import { fileStore } from '../../src/store/file/index.ts';
import { libsqlStore } from '../../src/store/libsql/index.ts';
import { memoryStore } from '../../src/store/memory/memory-store.ts';
import { pgliteStore } from '../../src/store/pglite/index.ts';
import { postgresStore } from '../../src/store/postgres/index.ts';
import { sqliteStore } from '../../src/store/sqlite/index.ts';

// A store says what it can do before it is opened, so none of these is: nothing is called.
const unused = (): never => {
  throw new Error('The store is not to be opened.');
};

function stores(): Readonly<Record<string, Store>> {
  const path = join(tmpdir(), 'waymark-docs-unopened');
  const sql = { exec: unused };
  return {
    memory: memoryStore(),
    files: fileStore(path),
    SQLite: sqliteStore(path),
    libSQL: libsqlStore({ url: `file:${path}` }),
    'Durable Object': durableObject({
      sql,
      transactionSync: unused,
      getAlarm: unused,
      setAlarm: unused,
    }).store,
    D1: d1Store({ prepare: unused, batch: unused }),
    PGlite: pgliteStore({ query: unused, transaction: unused } as never),
    Postgres: postgresStore({ connectionString: 'postgres://unopened' }),
  };
}

/** What stores can do beyond their capabilities. */
const more: readonly (readonly [string, (store: Store) => boolean])[] = [
  ['workspaces (`files.writeTree`)', ({ files }) => files?.writeTree !== undefined],
  ['encryption (`rotateKeys`)', (store) => 'rotateKeys' in store],
  ['handing a run over in your transaction', ({ runs }) => runs?.transactional === true],
];

/** A table of the stores with what each can do, by the capabilities that they declare. */
export function storeTable(): string {
  const all = Object.entries(stores());
  const names = new Set(
    all.flatMap(([, store]) =>
      Object.entries(store).flatMap(([name, value]) =>
        typeof value === 'object' && !Array.isArray(value) ? [name] : [],
      ),
    ),
  );
  const row = (title: string, has: (store: Store) => boolean): string =>
    `| ${title} | ${all.map(([, store]) => (has(store) ? 'yes' : '–')).join(' | ')} |`;
  return [
    `| | ${all.map(([name]) => name).join(' | ')} |`,
    `| --- |${all.map(() => ' --- |').join('')}`,
    ...[...names].map((name) => row(`\`${name}\``, (store) => name in store)),
    ...more.map(([title, has]) => row(title, has)),
  ].join('\n');
}
