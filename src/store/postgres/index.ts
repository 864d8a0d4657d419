export type { SqlStore } from '../sql/sql-store.ts';
export type { Encryption, EncryptionKey } from '../sql/vault.ts';
export { type PostgresStoreOptions, postgresStore } from './postgres-store.ts';
