/**
 * The Postgres store, for several processes and machines.
 *
 * @module
 */

export type { BackupReport } from '../backup.ts';
export type { Encryption } from '../sql/content/cipher.ts';
export type { QueryOptions } from '../sql/database/driver.ts';
export type { SqlStore } from '../sql/sql-store.ts';
export { type PostgresStoreOptions, postgresStore } from './postgres-store.ts';
export { restorePostgres } from './restore.ts';
