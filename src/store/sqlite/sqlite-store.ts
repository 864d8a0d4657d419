import { createIds, type NewId } from '../../core/id.ts';
import { type Clock, systemClock } from '../../core/time/clock.ts';
import { createCipher, type Encryption } from '../sql/content/cipher.ts';
import type { QueryOptions } from '../sql/database/database.ts';
import { type SqlStore, sqlStore } from '../sql/sql-store.ts';
import { sqliteDatabase } from './database.ts';

export interface SqliteStoreOptions extends QueryOptions {
  /**
   * `normal` survives a crash of the process but may lose the last moments in a power cut; `full` waits for the disk once
   * a turn. @default 'normal'
   */
  readonly durability?: 'normal' | 'full';
  /** Bytes that the file may take; what would need more is `RESOURCE_EXHAUSTED`. @default as many as the disk has */
  readonly maxSize?: number;
  /** Seals content under your key. @default none */
  readonly encryption?: Encryption;
  /** Milliseconds for which the events of a run are kept after its end. @default 60000 */
  readonly eventsTtl?: number;
  /** @default the clock of the machine */
  readonly clock?: Clock;
  /** @default time-ordered UUIDs */
  readonly newId?: NewId;
}

/**
 * A store in one SQLite file, by Node's own `node:sqlite`: no server, nothing to install. Several processes may use the
 * file at once. `:memory:` keeps it in memory, for this store alone; a `file:` URL may carry SQLite's own parameters.
 */
export function sqliteStore(path: string | URL, options: SqliteStoreOptions = {}): SqlStore {
  const { durability = 'normal', maxSize, encryption, eventsTtl = 60_000, onQuery } = options;
  const { clock = systemClock, newId = createIds(clock) } = options;
  const cipher = createCipher(encryption, 'binary');
  const db = sqliteDatabase({ path, durability, maxSize, clock, newId, cipher, onQuery });
  return sqlStore({ name: 'sqlite', db, cipher, clock, newId, eventsTtl });
}
