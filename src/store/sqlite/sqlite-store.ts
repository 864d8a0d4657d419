import { createIds } from '../../core/id.ts';
import { checkChoice, checkOptions, type OptionNames } from '../../core/options.ts';
import { type Clock, systemClock } from '../../core/time.ts';
import type { Encryption } from '../sql/content/cipher.ts';
import type { QueryOptions } from '../sql/database/driver.ts';
import { type SqlStore, storeOver } from '../sql/sql-store.ts';
import { sqliteDriver } from './driver.ts';

export interface SqliteStoreOptions extends QueryOptions {
  /**
   * `normal` survives a crash of the process but may lose the most recent turns in a power cut; `full` waits for the
   * disk once per turn. @default 'normal'
   */
  readonly durability?: 'normal' | 'full';
  /** Maximum size of the file in bytes; writes beyond it are `RESOURCE_EXHAUSTED`. @default unlimited */
  readonly maxSize?: number;
  /** Encrypts content with your key. @default none */
  readonly encryption?: Encryption;
  /** Milliseconds for which the events of a run are kept after its end. @default 60000 */
  readonly eventsTtl?: number;
  /** @default the system clock */
  readonly clock?: Clock;
  /** @default time-ordered UUIDs */
  readonly newId?: () => string;
}

const optionNames: OptionNames<SqliteStoreOptions> = {
  onQuery: true,
  durability: true,
  maxSize: true,
  encryption: true,
  eventsTtl: true,
  clock: true,
  newId: true,
};

/**
 * A store in one SQLite file, with Node's built-in `node:sqlite`. Several processes can use the file concurrently.
 * `:memory:` keeps the store in memory; a `file:` URL can have SQLite's parameters.
 */
export function sqliteStore(path: string | URL, options: SqliteStoreOptions = {}): SqlStore {
  const { durability = 'normal', maxSize, encryption, eventsTtl, onQuery } = options;
  const { clock = systemClock, newId = createIds(clock) } = options;
  checkOptions(options, optionNames, 'sqliteStore()');
  checkChoice(durability, ['normal', 'full'], 'durability of sqliteStore()');
  const driver = sqliteDriver({ path, durability, maxSize, clock, newId, onQuery });
  return storeOver({ name: 'sqlite', driver, encryption, clock, newId, eventsTtl });
}
