export type { BackupReport } from '../backup.ts';
export type { Encryption, EncryptionKey } from '../sql/content/cipher.ts';
export type { QueryOptions } from '../sql/database/database.ts';
export type { SqlStore } from '../sql/sql-store.ts';
export { backupPostgres } from './backup.ts';
export type { PostgresBackupOptions } from './backup-file.ts';
export { type PostgresStoreOptions, postgresStore } from './postgres-store.ts';
export { restorePostgres } from './restore.ts';
