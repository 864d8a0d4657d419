import { mkdtemp, rm, stat } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { sqliteStore } from '../../src/store/sqlite/index.ts';
import { type MeasuredStore, storeCosts } from '../support/store-cost.ts';

const tables = ['sessions', 'branches', 'views', 'messages', 'blobs', 'snapshots', 'runs'];

async function open(): Promise<MeasuredStore> {
  const folder = await mkdtemp(join(tmpdir(), 'waymark-sqlite-cost-'));
  const path = join(folder, 'store.db');
  let names: string[] = [];
  const store = sqliteStore(path, { onQuery: (name) => names.push(name) });
  const look = <Result>(read: (db: DatabaseSync) => Result): Result => {
    const db = new DatabaseSync(path);
    try {
      return read(db);
    } finally {
      db.close();
    }
  };
  return {
    store,
    queries() {
      const seen = names;
      names = [];
      return seen;
    },
    rows: async () =>
      look((db) => {
        const counts = tables.map((table) => {
          const row = db.prepare(`SELECT COUNT(*) AS count FROM ${table}`).get();
          return [table, Number(row?.count)] as const;
        });
        return Object.fromEntries(counts);
      }),
    async size() {
      look((db) => db.exec('PRAGMA wal_checkpoint(TRUNCATE)'));
      return (await stat(path)).size;
    },
    async close() {
      await store.close?.();
      await rm(folder, { recursive: true });
    },
  };
}

storeCosts('the SQLite store', open, {
  queriesPerTurn: 8,
  // 28 KB of it are the empty tables of the search, 4 KB that of reservations, 40 KB those of memory, 12 KB that of effects.
  toolTurns: 835_344,
  overhead: 512,
});
