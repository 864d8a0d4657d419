/**
 * The store and the engine of a Durable Object on Cloudflare.
 *
 * @module
 */

export type { ObjectStorage } from '../store/durable-object/driver.ts';
export type { Encryption } from '../store/sql/content/cipher.ts';
export type { SqlStore } from '../store/sql/sql-store.ts';
export {
  type DurableObjectOptions,
  type DurableObjectParts,
  durableObject,
} from './durable-object.ts';
