export type { Encryption, EncryptionKey } from '../sql/content/vault.ts';
export type { SqlStore } from '../sql/sql-store.ts';
export { type PostgresStoreOptions, postgresStore } from './postgres-store.ts';
