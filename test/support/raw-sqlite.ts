import { DatabaseSync } from 'node:sqlite';

/** Opens a SQLite file without the store: writes do not update the checksums of rows. */
export function openRaw(path: string): DatabaseSync {
  const db = new DatabaseSync(path);
  db.function('waymark_row_sum', { varargs: true }, () => 0);
  db.function('waymark_next_sum', { varargs: true }, (sum) => sum);
  return db;
}
