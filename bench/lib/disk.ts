import { chmodSync, lstatSync, mkdirSync, mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';

/** Bytes that a file or a directory takes on the disk, all of its blocks counted. */
export function allocated(path: string): number {
  const stat = lstatSync(path, { throwIfNoEntry: false });
  if (stat === undefined) return 0;
  const own = stat.blocks * 512;
  if (!stat.isDirectory()) return own;
  return readdirSync(path).reduce((sum, name) => sum + allocated(join(path, name)), own);
}

/** Brings what is still in the write-ahead log of a SQLite file into the file. */
export function emptyLog(path: string): void {
  const db = new DatabaseSync(path);
  db.prepare('PRAGMA wal_checkpoint(TRUNCATE)').get();
  db.close();
}

/** A folder for what is measured, and a way to be rid of it. */
export function createScratch(): { readonly path: string; remove(): void } {
  const path = mkdtempSync(join(tmpdir(), 'waymark-bench-'));
  // Postgres does not run as root, and must get through to its own folder.
  chmodSync(path, 0o755);
  return { path, remove: () => rmSync(path, { recursive: true, force: true }) };
}

/** The same path, as an empty folder. */
export function emptyFolder(path: string): string {
  rmSync(path, { recursive: true, force: true });
  mkdirSync(path, { recursive: true });
  return path;
}
