/**
 * The store for PGlite, Postgres within the process or the browser.
 *
 * @module
 */

export type { Encryption } from '../sql/content/cipher.ts';
export type { SqlStore } from '../sql/sql-store.ts';
export type { PgliteDatabase } from './connections.ts';
export { type PgliteStoreOptions, pgliteStore } from './pglite-store.ts';
