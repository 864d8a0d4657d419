import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import pg from 'pg';
import { afterAll, beforeAll } from 'vitest';
import { postgresStore } from '../../src/store/postgres/index.ts';
import { sqliteStore } from '../../src/store/sqlite/index.ts';
import type { OpenedStore } from '../../src/testing/store-contract/kit.ts';
import { storeContract } from '../../src/testing/store-contract/store-contract.ts';
import { movableClock } from '../support/movable-clock.ts';
import { startPostgres, type TestPostgres } from '../support/postgres.ts';
import { type PostgresClock, postgresClock } from '../support/postgres-clock.ts';
import { openRaw } from '../support/raw-sqlite.ts';
import { type OpenDatabase, storeTampering } from '../support/store-tampering.ts';

let postgres: TestPostgres;
let clock: PostgresClock;
beforeAll(async () => {
  postgres = await startPostgres();
  clock = await postgresClock(postgres.connectionString);
});
afterAll(async () => {
  await clock.close();
  await postgres.stop();
});

const encryption = { key: new Uint8Array(32).fill(3) };
let schemas = 0;

async function openSqlite(): Promise<OpenedStore> {
  const folder = await mkdtemp(join(tmpdir(), 'waymark-encrypted-'));
  const { clock, advance } = movableClock();
  const open = () => sqliteStore(join(folder, 'store.db'), { clock, encryption });
  let store = open();
  return {
    store,
    searchesText: false,
    advance,
    async reopen() {
      await store.close?.();
      store = open();
      return store;
    },
    async close() {
      await store.close?.();
      await rm(folder, { recursive: true });
    },
  };
}

async function openPostgres(): Promise<OpenedStore> {
  const { connectionString } = clock;
  const schema = `encrypted_${schemas++}`;
  const open = () => postgresStore({ connectionString, schema, max: 4, encryption });
  let store = open();
  return {
    store,
    searchesText: false,
    advance: (ms) => clock.advance(ms),
    async reopen() {
      await store.close?.();
      store = open();
      return store;
    },
    close: async () => store.close?.(),
  };
}

const long = process.env.LONG === '1';
storeContract('sqlite, encrypted', openSqlite, { runs: long ? 200 : 5 });
// Both SQL stores encrypt by the same code; the short run takes the quicker of them.
if (long) storeContract('postgres, encrypted', openPostgres, { runs: 100 });

storeTampering('the SQLite store', async (): Promise<OpenDatabase> => {
  const folder = await mkdtemp(join(tmpdir(), 'waymark-tampering-'));
  const path = join(folder, 'store.db');
  return {
    open: (given) => sqliteStore(path, given === undefined ? {} : { encryption: given }),
    async sql(statements) {
      const db = openRaw(path);
      db.exec(statements.replace(/@(\w+)/g, '$1').replace(/#(\w+)#/g, "x'$1'"));
      db.close();
    },
    close: () => rm(folder, { recursive: true }),
  };
});

storeTampering('the Postgres store', async (): Promise<OpenDatabase> => {
  const { connectionString } = postgres;
  const schema = `tampering_${schemas++}`;
  return {
    open: (given) =>
      postgresStore({ connectionString, schema, max: 2, ...(given && { encryption: given }) }),
    async sql(statements) {
      const client = new pg.Client({ connectionString });
      await client.connect();
      const text = statements.replace(/@(\w+)/g, `${schema}.$1`);
      await client.query(text.replace(/#(\w+)#/g, "'\\x$1'"));
      await client.end();
    },
    close: async () => {},
  };
});
