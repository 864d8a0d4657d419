export type { BackupReport } from '../backup.ts';
export type { Encryption, EncryptionKey } from '../sql/content/cipher.ts';
export type { SqlStore } from '../sql/sql-store.ts';
export { backupPostgres, type PostgresBackupOptions, restorePostgres } from './backup.ts';
export { type PostgresStoreOptions, postgresStore } from './postgres-store.ts';
