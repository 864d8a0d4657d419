/**
 * The store for libSQL and Turso.
 *
 * @module
 */

export type { Encryption } from '../sql/content/cipher.ts';
export type { SqlStore } from '../sql/sql-store.ts';
export type { LibsqlClient } from './driver.ts';
export { type LibsqlStoreOptions, libsqlStore } from './libsql-store.ts';
