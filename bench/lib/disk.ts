import { execFileSync } from 'node:child_process';
import { chmodSync, lstatSync, mkdirSync, mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** Bytes that a file or a directory takes on the disk, all of its blocks counted. */
export function allocated(path: string): number {
  const stat = lstatSync(path, { throwIfNoEntry: false });
  if (stat === undefined) return 0;
  const own = stat.blocks * 512;
  if (!stat.isDirectory()) return own;
  return readdirSync(path).reduce((sum, name) => sum + allocated(join(path, name)), own);
}

/**
 * Bytes of a SQLite database, what is still in its write-ahead log included. Another process asks: two SQLite libraries in one
 * process would lose each other's locks, and nothing may be checkpointed for the question's sake.
 */
export function databaseFileBytes(file: string): number {
  const program = `
    const db = new (require('node:sqlite').DatabaseSync)(process.argv[1], { readOnly: true });
    const of = (name) => Object.values(db.prepare('PRAGMA ' + name).get())[0];
    console.log(of('page_count') * of('page_size'));`;
  return Number(execFileSync(process.execPath, ['--eval', program, file], { encoding: 'utf8' }));
}

/** A folder for what is measured, and a way to be rid of it. */
export function createScratch(): { readonly path: string; remove(): void } {
  const path = mkdtempSync(join(tmpdir(), 'waymark-bench-'));
  // Postgres does not run as root, and must get through to its own folder.
  chmodSync(path, 0o755);
  const remove = (): void => rmSync(path, { recursive: true, force: true });
  // Whoever stops the run leaves nothing behind either.
  process.once('exit', remove);
  return { path, remove };
}

/** The same path, as an empty folder. */
export function emptyFolder(path: string): string {
  rmSync(path, { recursive: true, force: true });
  mkdirSync(path, { recursive: true });
  return path;
}
