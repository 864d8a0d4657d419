export type { Encryption, EncryptionKey } from '../sql/content/vault.ts';
export type { SqlStore } from '../sql/sql-store.ts';
export { type SqliteStoreOptions, sqliteStore } from './sqlite-store.ts';
