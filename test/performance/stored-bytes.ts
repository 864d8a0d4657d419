import { readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import type { Pool } from 'pg';

/** The size of a SQLite database whose log was written back. */
export function fileSize(path: string): number {
  const db = new DatabaseSync(path);
  db.prepare('PRAGMA wal_checkpoint(TRUNCATE)').get();
  db.close();
  return statSync(path).size;
}

/** The size of all files in a folder. */
export function folderSize(path: string): number {
  const names = readdirSync(path, { recursive: true, encoding: 'utf8' });
  return names.reduce((sum, name) => {
    const stat = statSync(join(path, name), { throwIfNoEntry: false });
    return sum + (stat?.isFile() ? stat.size : 0);
  }, 0);
}

/** The size of the tables of a Postgres schema with their indexes. */
export async function tablesSize(pool: Pool, schema: string): Promise<number> {
  const { rows } = await pool.query<{ bytes: string }>(
    `SELECT sum(pg_total_relation_size(oid)) AS bytes FROM pg_class
     WHERE relkind = 'r' AND relnamespace = $1::regnamespace`,
    [schema],
  );
  return Number(rows[0]?.bytes);
}
