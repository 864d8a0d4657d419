/**
 * The store for Cloudflare D1.
 *
 * @module
 */

export type { Encryption } from '../sql/content/cipher.ts';
export type { SqlStore } from '../sql/sql-store.ts';
export { type D1StoreOptions, d1Store } from './d1-store.ts';
export type { D1Binding } from './driver.ts';
