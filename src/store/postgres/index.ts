export type { BackupReport } from '../backup.ts';
export type { Encryption, EncryptionKey } from '../sql/content/cipher.ts';
export type { QueryOptions } from '../sql/database/database.ts';
export type { SqlStore } from '../sql/sql-store.ts';
export { type PostgresStoreOptions, postgresStore } from './postgres-store.ts';
export { type PostgresBackupOptions, restorePostgres } from './restore.ts';
