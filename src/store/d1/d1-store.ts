import { invalid } from '../../core/error.ts';
import { createIds } from '../../core/id.ts';
import { checkOptions, type OptionNames } from '../../core/options.ts';
import { type Clock, systemClock } from '../../core/time.ts';
import type { Encryption } from '../sql/content/cipher.ts';
import type { QueryOptions } from '../sql/database/driver.ts';
import { type SqlStore, storeOver } from '../sql/sql-store.ts';
import { type D1Binding, d1Driver } from './driver.ts';

/** Options of `d1Store`. */
export interface D1StoreOptions extends QueryOptions {
  /** Encrypts content with your key. @default none */
  readonly encryption?: Encryption;
  /** Milliseconds for which the events of a run are kept after its end. @default 60000 */
  readonly eventsTtl?: number;
  /** The clock for timers; stored times are the database's. @default the system clock */
  readonly clock?: Clock;
  /** @default time-ordered UUIDs */
  readonly newId?: () => string;
}

const optionNames: OptionNames<D1StoreOptions> = {
  onQuery: 'function',
  encryption: true,
  eventsTtl: 'number',
  clock: 'object',
  newId: 'function',
};

/**
 * A store in a D1 database of Cloudflare, which belongs to it. Any number of Workers may use it.
 *
 * @example
 * const app = waymark({ store: d1Store(env.DB), model });
 */
export function d1Store(db: D1Binding, options: D1StoreOptions = {}): SqlStore {
  checkOptions(options, optionNames, 'd1Store()');
  if (typeof db?.prepare !== 'function' || typeof db.batch !== 'function') {
    throw invalid(
      'd1Store() needs a D1 database: pass the binding of `d1_databases` in wrangler.json, such as `env.DB`.',
    );
  }
  const { encryption, eventsTtl, onQuery } = options;
  const { clock = systemClock, newId = createIds(clock) } = options;
  const driver = d1Driver({ db, clock, newId, onQuery });
  return storeOver({ name: 'd1', driver, encryption, clock, newId, eventsTtl });
}
