import type { Client, Pool } from 'pg';
import { failedPrecondition, invalid } from '../../core/error.ts';
import { createIds } from '../../core/id.ts';
import { checkOptions, type OptionNames } from '../../core/options.ts';
import { type Clock, systemClock } from '../../core/time.ts';
import type { Encryption } from '../sql/content/cipher.ts';
import type { QueryOptions } from '../sql/database/driver.ts';
import { type SqlStore, storeOver } from '../sql/sql-store.ts';
import { postgresDriver } from './driver.ts';
import { createSender } from './send-runs.ts';

/** Where the database is: a connection string, for which the store makes a pool, or a pool of yours. */
type Source =
  | {
      /** The connection string. `undefined` is an error, so that a missing environment variable is noticed. */
      readonly connectionString: string | undefined;
      /** Maximum number of connections in that pool. @default 10 */
      readonly max?: number;
      readonly pool?: never;
    }
  | { readonly pool: Pool; readonly connectionString?: never; readonly max?: never };

/** Options of `postgresStore`: a connection string or a pool, and more. */
export type PostgresStoreOptions = Source &
  QueryOptions & {
    /** The schema of the store's tables; created if it does not exist. @default 'waymark' */
    readonly schema?: string;
    /**
     * Whether connections go through a transaction pooler, such as PgBouncer or that of a managed Postgres. If so, the store
     * keeps no state on them. @default detected when the store opens
     */
    readonly pooled?: boolean;
    /** A connection string that bypasses the pooler, for notifications. @default none: behind a pooler, the store polls every second */
    readonly directUrl?: string | undefined;
    /** Encrypts content with your key. @default none */
    readonly encryption?: Encryption;
    /** Milliseconds for which the events of a run are kept after its end. @default 60000 */
    readonly eventsTtl?: number;
    /** The clock for timers. Stored times come from the database. @default the system clock */
    readonly clock?: Clock;
    /** @default time-ordered UUIDs */
    readonly newId?: () => string;
  };

const optionNames: OptionNames<PostgresStoreOptions> = {
  connectionString: true,
  max: true,
  pool: true,
  pooled: true,
  directUrl: true,
  onQuery: true,
  schema: true,
  encryption: true,
  eventsTtl: true,
  clock: true,
  newId: true,
};

/** A store in a schema of a Postgres database (14 or later), through the package `pg`. Any number of processes may use it. */
export function postgresStore(options: PostgresStoreOptions): SqlStore {
  const { schema = 'waymark', encryption, eventsTtl, onQuery } = options;
  const { clock = systemClock, newId = createIds(clock) } = options;
  checkOptions(options, optionNames, 'postgresStore()');
  checkSource(options);
  checkSchema(schema);
  const { pooled, directUrl } = options;
  const driver = postgresDriver({
    pooled,
    openDirect: directUrl === undefined ? undefined : () => openDirect(directUrl),
    openPool: () => openPool(options),
    ownsPool: options.pool === undefined,
    schema,
    clock,
    newId,
    onQuery,
  });
  return storeOver({ name: 'postgres', driver, encryption, clock, newId, eventsTtl }, createSender);
}

// An undefined connection string would make `pg` connect to whatever its own environment variables name.
function checkSource({ connectionString, pool }: Source): void {
  if (pool !== undefined || (typeof connectionString === 'string' && connectionString !== ''))
    return;
  throw invalid(
    'The Postgres store needs a `connectionString` or a `pool`. Is the environment variable with the connection string set?',
  );
}

// It is part of the names of prepared statements, which Postgres cuts at 63 bytes.
export function checkSchema(schema: string): void {
  if (/^[a-z_][a-z0-9_]{0,29}$/i.test(schema)) return;
  throw invalid(
    `"${schema}" is not a schema name. Expected 1 to 30 letters, digits and underscores.`,
  );
}

async function openPool({ pool, connectionString, max = 10 }: Source): Promise<Pool> {
  if (pool !== undefined) return pool;
  const { default: pg } = await loadPg();
  return new pg.Pool({ connectionString, max });
}

async function openDirect(connectionString: string): Promise<Client> {
  const { default: pg } = await loadPg();
  return new pg.Client({ connectionString });
}

/** The package `pg`, which is not ours. */
export async function loadPg(): Promise<typeof import('pg')> {
  try {
    return await import('pg');
  } catch (cause) {
    throw failedPrecondition(
      'The Postgres store needs the package "pg". Install it: npm install pg',
      {
        cause,
      },
    );
  }
}
