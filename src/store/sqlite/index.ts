/**
 * The SQLite store, on `node:sqlite`.
 *
 * @module
 */

export type { BackupReport } from '../backup.ts';
export type { Encryption } from '../sql/content/cipher.ts';
export type { SqlStore } from '../sql/sql-store.ts';
export { backupSqlite, restoreSqlite } from './backup.ts';
export { type SqliteStoreOptions, sqliteStore } from './sqlite-store.ts';
