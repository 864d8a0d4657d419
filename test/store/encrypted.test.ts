import { copyFile, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import pg from 'pg';
import { afterAll, beforeAll } from 'vitest';
import { postgresStore } from '../../src/store/postgres/index.ts';
import { sqliteStore } from '../../src/store/sqlite/index.ts';
import { storeContract } from '../../src/testing/store-contract/store-contract.ts';
import { openSqlite } from '../support/contract-stores.ts';
import { startPostgres, type TestPostgres } from '../support/postgres.ts';
import { openRaw } from '../support/raw-sqlite.ts';
import { type OpenDatabase, storeTampering } from '../support/store-tampering.ts';

let postgres: TestPostgres;
beforeAll(async () => {
  postgres = await startPostgres();
});
afterAll(async () => {
  await postgres.stop();
});

const encryption = { key: new Uint8Array(32).fill(3) };
let databases = 0;

storeContract('sqlite, encrypted', () => openSqlite(encryption), { runs: 5 });

/** A database file as an attacker sees it. */
async function databaseFile(copied?: string): Promise<OpenDatabase> {
  const folder = await mkdtemp(join(tmpdir(), 'waymark-tampering-'));
  const path = join(folder, 'store.db');
  if (copied !== undefined) await copyFile(copied, path);
  return {
    open: (given) => sqliteStore(path, given === undefined ? {} : { encryption: given }),
    async sql(statements) {
      const db = openRaw(path);
      db.exec(statements.replace(/@(\w+)/g, '$1').replace(/#(\w+)#/g, "x'$1'"));
      db.close();
    },
    copy: () => databaseFile(path),
    close: () => rm(folder, { recursive: true }),
  };
}

/** A database of the server as an attacker sees it. */
async function serverDatabase(copied?: string): Promise<OpenDatabase> {
  const name = `tampering_${databases++}`;
  await postgres.createDatabase(name, copied);
  const url = new URL(postgres.connectionString);
  url.pathname = name;
  const connectionString = url.href;
  return {
    open: (given) =>
      postgresStore({ connectionString, max: 2, ...(given && { encryption: given }) }),
    async sql(statements) {
      const client = new pg.Client({ connectionString });
      await client.connect();
      const text = statements.replace(/@(\w+)/g, 'waymark.$1');
      await client.query(text.replace(/#(\w+)#/g, "'\\x$1'"));
      await client.end();
    },
    copy: () => serverDatabase(name),
    close: async () => {},
  };
}

storeTampering('the SQLite store', databaseFile);
storeTampering('the Postgres store', serverDatabase);
