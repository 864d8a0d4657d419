import { statSync } from 'node:fs';
import type { Connection } from './connection.ts';

/** Bytes by which the log gets shorter at a time. On a slow file system this takes 8 ms. */
const step = 4 * 1024 * 1024;

/**
 * Makes a write-ahead log shorter, if it is longer than a few megabytes: it grows while a long session is verified, and SQLite empties it in
 * one go. Returns whether it is still long; `false` when there is nothing to be done, or when another connection reads from it.
 */
export function shortenLog(db: Connection): boolean {
  const size = sizeOf(`${db.file}-wal`);
  if (size <= step) return false;
  db.exec(`PRAGMA journal_size_limit = ${size - step}`);
  try {
    // The next change is then written to the beginning of the log, and cuts it off at the limit.
    if (db.get('PRAGMA wal_checkpoint(RESTART)')?.busy === 1) return false;
    db.exec(`PRAGMA user_version = ${Number(db.get('PRAGMA user_version')?.user_version)}`);
  } finally {
    db.exec('PRAGMA journal_size_limit = -1');
  }
  return sizeOf(`${db.file}-wal`) < size;
}

function sizeOf(path: string): number {
  return statSync(path, { throwIfNoEntry: false })?.size ?? 0;
}
