import type { Client, Pool, PoolClient } from 'pg';
import { isWaymarkError, WaymarkError } from '../../core/error.ts';
import type { NewId } from '../../core/id.ts';
import type { Clock } from '../../core/time/clock.ts';
import { toReadError } from '../rules/errors.ts';
import type { Cipher } from '../sql/content/cipher.ts';
import type { Database, Hint, WriteOptions } from '../sql/database/database.ts';
import { readMeta } from '../sql/database/meta.ts';
import { type Plan, type Statement, statement } from '../sql/database/query.ts';
import { checkTables } from './check.ts';
import { lockKey, postgresDialect } from './dialect.ts';
import { isConflict, isLost, toStoreError } from './errors.ts';
import { Listener } from './listener.ts';
import { migrate } from './migrate.ts';
import { OutgoingHints } from './outgoing-hints.ts';
import { goesThroughPooler } from './pooler.ts';
import { type PostgresValue, Statements } from './statements.ts';

export interface PostgresOptions {
  /** Creates the pool, when the store owns it. */
  readonly openPool: () => Promise<Pool>;
  /** Whether the pool is the store's own to end. */
  readonly ownsPool: boolean;
  /** Whether the pool's connections go through a transaction pooler; `undefined` to find out. */
  readonly pooled: boolean | undefined;
  /** Makes a connection to the server itself, not through a pooler. */
  readonly openDirect: (() => Promise<Client>) | undefined;
  readonly schema: string;
  readonly clock: Clock;
  readonly newId: NewId;
  readonly cipher: Cipher;
  readonly onQuery: ((name: string) => void) | undefined;
}

/** The database behind a pool. */
export interface PostgresDatabase extends Database {
  /** The key of the lock under which documents are found by their hash. */
  readonly blobLock: string;
  /** The channel on which hints go out. */
  readonly channel: string;
  /** Who this process is to those who hear its hints. */
  readonly sender: string;
  /** Runs one statement that is a transaction by itself, in one round trip. */
  query<Row>(which: Statement<Row>, values: readonly PostgresValue[]): Promise<readonly Row[]>;
}

const attempts = 5;

// Not awaited, and worth nothing after a crash: it must not wait for the disk, nor make others wait.
const notify = statement(
  'notify',
  `SELECT set_config('synchronous_commit', 'off', true), pg_notify($1, $2)`,
);

/** The tables of one schema in a Postgres database. */
export function postgresDatabase(options: PostgresOptions): PostgresDatabase {
  const { schema, clock, cipher, newId, onQuery } = options;
  const dialect = postgresDialect(schema);
  const statements = new Statements(dialect, schema, onQuery);
  const channel = `waymark ${schema}`.slice(0, 63);
  let opening: Promise<Pool> | undefined;
  let id = '';
  let isPooled = false;
  let isClosed = false;
  const sender = newId();

  const opened = (): Promise<Pool> => {
    if (isClosed) return Promise.reject(closed());
    opening ??= open().catch((error: unknown) => {
      opening = undefined;
      throw toStoreError(error);
    });
    return opening;
  };
  const open = async (): Promise<Pool> => {
    const pool = await options.openPool();
    // An idle connection that breaks must not end the process; the next query gets a new one.
    pool.on('error', ignore);
    // Nor one that breaks just before the caller gets it.
    pool.on('connect', hearErrors);
    try {
      id = await prepare(pool);
    } catch (error) {
      await letGo(pool);
      throw error;
    }
    return pool;
  };
  const prepare = async (pool: Pool): Promise<string> => {
    const client = await take(pool);
    try {
      isPooled = options.pooled ?? (await goesThroughPooler(client));
      if (isPooled) statements.stopNaming();
      await migrate(client, schema, newId);
      return await statements.run(client, readMeta(cipher));
    } finally {
      give(client);
    }
  };
  /** Ends a pool of the store's own; leaves another one as it was. */
  const letGo = async (pool: Pool): Promise<void> => {
    if (options.ownsPool) {
      await pool.end();
      return;
    }
    pool.off('error', ignore);
    pool.off('connect', hearErrors);
  };

  const listener = new Listener({
    clock,
    channel,
    sender,
    async createClient(): Promise<Client | undefined> {
      const pool = await opened();
      if (options.openDirect !== undefined) return await options.openDirect();
      // A pooler gives each transaction another connection of the server, so a LISTEN would have no effect.
      if (isPooled) return undefined;
      // A pool holds how its connections are made; one outside of it takes none away from its users.
      const { Client: Made, options: config } = pool as PoolParts;
      return new Made(config);
    },
  });

  const outgoing = new OutgoingHints(sender, async (payload) =>
    statements.query(await opened(), notify, [channel, payload]),
  );

  const inTransaction = async <Result>(
    pool: Pool,
    plan: () => Plan<Result>,
    { durable = true, within }: WriteOptions,
  ): Promise<Result> => {
    const client = await take(pool);
    let broken: unknown;
    try {
      await client.query(durable ? 'BEGIN' : 'BEGIN; SET LOCAL synchronous_commit TO off');
      const result = await statements.run(client, plan());
      await within?.({ query: (text, values) => client.query(text, [...values]) });
      await client.query('COMMIT');
      return result;
    } catch (error) {
      broken = await rollBack(client, error);
      throw error;
    } finally {
      give(client, broken !== undefined);
    }
  };

  return {
    dialect,
    blobLock: lockKey(schema, 'blobs'),
    channel,
    sender,
    transactional: true,
    get id() {
      return id;
    },
    open: async () => {
      await opened();
    },
    async query(which, values) {
      const pool = await opened();
      try {
        return await statements.query(pool, which, values);
      } catch (error) {
        throw isConflict(error) ? error : toStoreError(error);
      }
    },
    async read(plan) {
      const pool = await opened();
      // Without a transaction, for the sake of the round trips: what was read in pieces while something was removed does
      // not fit its hash, and is read again.
      for (let left = attempts; ; left--) {
        try {
          return await statements.run(pool, plan());
        } catch (thrown) {
          const error = toReadError(thrown);
          const isTorn = isWaymarkError(error) && error.status === 'DATA_LOSS';
          if (!isTorn || left <= 1) throw toStoreError(error);
        }
      }
    },
    async readInSteps(plan) {
      const pool = await opened();
      const client = await take(pool);
      let broken: unknown;
      try {
        await client.query('BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY');
        const result = await statements.run(client, plan());
        await client.query('COMMIT');
        return result;
      } catch (error) {
        broken = await rollBack(client, error);
        throw toStoreError(toReadError(error));
      } finally {
        give(client, broken !== undefined);
      }
    },
    async write(plan, options = {}) {
      const pool = await opened();
      for (let left = attempts; ; left--) {
        try {
          if (options.single === true) return await statements.run(pool, plan());
          return await inTransaction(pool, plan, options);
        } catch (error) {
          if (!isConflict(error) || left <= 1) throw toStoreError(error);
        }
      }
    },
    async check() {
      const pool = await opened();
      return checkTables(pool, schema).catch((error: unknown) => {
        throw toStoreError(error);
      });
    },
    // Rows that were removed stay in the files until Postgres vacuums them, as it does by itself.
    scrub: () => Promise.resolve(),
    tell(hints: readonly Hint[], reach) {
      for (const hint of hints) listener.tell(hint);
      if (reach !== 'process' && !isClosed) outgoing.tell(hints);
    },
    listen: (hint, heard) => listener.listen(hint, heard),
    async close() {
      await outgoing.settled();
      isClosed = true;
      await listener.close();
      const pool = await opening?.catch(ignore);
      if (pool !== undefined) await letGo(pool);
    },
  };
}

/** What a pool holds besides what its types say. */
type PoolParts = Pool & { readonly Client: new (config: object) => Client };

/** A connection for several statements. One that breaks between two of them says so by an event that must be heard. */
async function take(pool: Pool): Promise<PoolClient> {
  const client = await pool.connect();
  client.on('error', ignore);
  return client;
}

function hearErrors(client: PoolClient): void {
  client.on('error', ignore);
}

function give(client: PoolClient, isBroken = false): void {
  client.off('error', ignore);
  client.release(isBroken);
}

/** Ends a transaction that failed; gives the error when the connection is of no use any more. */
async function rollBack(client: PoolClient, error: unknown): Promise<unknown> {
  if (isLost(error)) return error;
  try {
    await client.query('ROLLBACK');
    return undefined;
  } catch (lost) {
    return lost;
  }
}

// A listener that does nothing; also the handler of rejections that can be ignored.
function ignore(): undefined {
  return undefined;
}

function closed(): WaymarkError {
  return new WaymarkError('FAILED_PRECONDITION', 'The store has been closed.');
}
