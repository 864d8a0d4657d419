import { existsSync } from 'node:fs';
import { rename, rm } from 'node:fs/promises';
import { backup, DatabaseSync } from 'node:sqlite';
import { failedPrecondition, WaymarkError } from '../../core/error.ts';
import { type BackupReport, checkFree, notThere } from '../backup.ts';
import { code } from '../sql/values/codes.ts';
import { toStoreError } from './errors.ts';
import { addSumFunctions } from './row-sums.ts';

// All pages in one step, which sees the database as it was when the step began. Smaller steps start over whenever another
// process writes between two of them, and might never finish.
const everyPage = 2 ** 31 - 1;

/** Milliseconds that opening the database may wait for a writer. */
const patience = 30_000;

/**
 * Copies the store in a SQLite file to another file while it is in use. Writers do not wait, and the thread stays free. The copy
 * is a store like the original: it has every turn that had ended when the backup began.
 */
export async function backupSqlite(path: string, target: string): Promise<BackupReport> {
  await checkFree(target);
  return await copyTo(path, target, 'store');
}

/**
 * Restores a backup to a path that has no store yet. Unfinished background runs continue when an app opens it.
 */
export async function restoreSqlite(source: string, path: string): Promise<BackupReport> {
  await checkFree(path);
  return await copyTo(source, path, 'backup', (db) => {
    // Their workers do not use this store, so do not wait for their leases or count a crash.
    db.exec(`UPDATE runs SET ttl = 0 WHERE mode <> ${code.attached}`);
  });
}

async function copyTo(
  from: string,
  to: string,
  what: string,
  change: (db: DatabaseSync) => void = () => {},
): Promise<BackupReport> {
  if (!existsSync(from)) throw notThere(`SQLite ${what}`, from);
  const unfinished = `${to}.tmp`;
  try {
    const source = new DatabaseSync(from, { readOnly: true, timeout: patience });
    try {
      checkStore(source, from);
      await backup(source, unfinished, { rate: everyPage });
    } finally {
      source.close();
    }
    const copy = new DatabaseSync(unfinished);
    addSumFunctions(copy);
    let sessions: number;
    try {
      change(copy);
      checkWhole(copy, from);
      sessions = Number(copy.prepare('SELECT COUNT(*) AS count FROM sessions').get()?.count);
    } finally {
      copy.close();
    }
    await rename(unfinished, to);
    return { sessions };
  } catch (error) {
    for (const end of ['', '-wal', '-shm', '-journal']) {
      await rm(`${unfinished}${end}`, { force: true });
    }
    throw toStoreError(error, from);
  }
}

function checkStore(db: DatabaseSync, path: string): void {
  const tables = db.prepare(
    `SELECT COUNT(*) AS count FROM sqlite_schema WHERE type = 'table' AND name IN ('meta', 'snapshots')`,
  );
  if (tables.get()?.count === 2) return;
  throw failedPrecondition(`The database "${path}" holds no Waymark store.`);
}

function checkWhole(db: DatabaseSync, path: string): void {
  const [first] = db.prepare('PRAGMA quick_check(1)').all();
  if (first?.quick_check === 'ok') return;
  throw new WaymarkError('DATA_LOSS', `The database "${path}" is damaged: ${first?.quick_check}`);
}
