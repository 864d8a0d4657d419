import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { sqliteStore } from '../../src/store/sqlite/index.ts';
import { type KeyedDatabase, storeEncryption } from '../support/store-encryption.ts';

async function create(): Promise<KeyedDatabase> {
  const folder = await mkdtemp(join(tmpdir(), 'waymark-sqlite-encryption-'));
  const path = join(folder, 'store.db');
  return {
    open: (encryption) => sqliteStore(path, encryption === undefined ? {} : { encryption }),
    async dump() {
      const files = await readdir(folder);
      const texts = files.map((file) => readFile(join(folder, file), 'latin1'));
      return (await Promise.all(texts)).join('\n');
    },
    async documents() {
      const db = new DatabaseSync(path);
      const row = db.prepare('SELECT COUNT(*) AS count FROM blobs').get();
      db.close();
      return Number(row?.count);
    },
    close: () => rm(folder, { recursive: true }),
  };
}

storeEncryption('the SQLite store', create);
