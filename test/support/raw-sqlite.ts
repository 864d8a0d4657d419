import { DatabaseSync } from 'node:sqlite';

/** A SQLite file as somebody other than the store opens it: what they write leaves the checksums of rows as they are. */
export function openRaw(path: string): DatabaseSync {
  const db = new DatabaseSync(path);
  db.function('waymark_row_sum', { varargs: true }, () => 0);
  db.function('waymark_next_sum', { varargs: true }, (sum) => sum);
  return db;
}
