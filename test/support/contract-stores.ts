import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { postgresStore } from '../../src/store/postgres/index.ts';
import { type Encryption, sqliteStore } from '../../src/store/sqlite/index.ts';
import type { OpenedStore } from '../../src/testing/store-contract/kit.ts';
import type { CleanSchemas } from './clean-schemas.ts';
import { writeEmptySqlite } from './empty-sqlite.ts';
import { movableClock } from './movable-clock.ts';
import type { PostgresClock } from './postgres-clock.ts';

/** An empty SQLite store in a file, for a test of the conformance suite. */
export async function openSqlite(encryption?: Encryption): Promise<OpenedStore> {
  const folder = await mkdtemp(join(tmpdir(), 'waymark-sqlite-'));
  const path = join(folder, 'store.db');
  const { clock, advance } = movableClock();
  await writeEmptySqlite(path, encryption);
  const open = () => sqliteStore(path, { clock, ...(encryption && { encryption }) });
  let store = open();
  return {
    store,
    ...(encryption && { searchesText: false }),
    advance,
    async reopen() {
      await store.close?.();
      store = open();
      await store.open?.();
      return store;
    },
    async close() {
      await store.close?.();
      await rm(folder, { recursive: true });
    },
    ...(encryption === undefined && {
      async dump() {
        const files = await readdir(folder);
        const texts = files.map((file) => readFile(join(folder, file), 'latin1'));
        return (await Promise.all(texts)).join('\n');
      },
    }),
  };
}

/** An empty Postgres store in a schema, for a test of the conformance suite. */
export async function openPostgres(
  { clock, schemas }: { readonly clock: PostgresClock; readonly schemas: CleanSchemas },
  encryption?: Encryption,
): Promise<OpenedStore> {
  const { connectionString } = clock;
  const schema = schemas.take();
  const open = () =>
    postgresStore({ connectionString, schema, max: 4, ...(encryption && { encryption }) });
  let store = open();
  return {
    store,
    ...(encryption && { searchesText: false }),
    advance: (ms) => clock.advance(ms),
    async reopen() {
      await store.close?.();
      store = open();
      await store.open?.();
      return store;
    },
    async close() {
      await store.close?.();
      await schemas.giveBack(schema);
    },
  };
}
