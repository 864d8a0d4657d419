import type { PoolClient } from 'pg';
import { isWaymarkError } from '../../core/error.ts';
import { toReadError } from '../rules/errors.ts';
import type { Database, WriteOptions } from '../sql/database/database.ts';
import type { Plan, Statement } from '../sql/database/query.ts';
import { checkTables } from './check.ts';
import { isConflict, isLost, toStoreError } from './errors.ts';
import type { PostgresValue, Queryable, Statements } from './statements.ts';

/** Connections: a pool, or something like it. */
export interface Connections extends Queryable {
  connect(): Promise<PoolClient>;
}

/** Reading and writing through connections. */
export interface Access
  extends Required<Pick<Database, 'read' | 'readInSteps' | 'write' | 'check'>> {
  /** Runs one statement that is a transaction by itself, in one round trip. */
  query<Row>(which: Statement<Row>, values: readonly PostgresValue[]): Promise<readonly Row[]>;
}

const attempts = 5;

const noSync = 'SET LOCAL synchronous_commit TO off';

/**
 * For transactions that look at many rows. Where most rows of a table are alike, Postgres expects to come across such a row soon and reads
 * the table from its beginning, which takes a second for the few rows that differ.
 */
const byIndex = 'SET LOCAL enable_seqscan TO off; SET LOCAL jit TO off';

interface AccessOptions {
  readonly opened: () => Promise<Connections>;
  readonly statements: Statements;
  readonly schema: string;
  /** Whether everything is done in transactions that find rows by indexes, as in maintenance. Default `false`. */
  readonly isByIndex?: boolean;
}

/** Access to the tables of a schema. */
export function accessTo({ opened, statements, schema, isByIndex = false }: AccessOptions): Access {
  const begin = (kind: string, ...settings: readonly string[]): string =>
    [kind, ...settings, ...(isByIndex ? [byIndex] : [])].join('; ');

  const inTransaction = async <Result>(
    pool: Connections,
    plan: () => Plan<Result>,
    { durable = true, within }: WriteOptions = {},
  ): Promise<Result> => {
    const client = await take(pool);
    let broken: unknown;
    try {
      await client.query(durable ? begin('BEGIN') : begin('BEGIN', noSync));
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
      // Turns read without a transaction, for the sake of the round trips: what was read in pieces while something was removed does
      // not fit its hash, and is read again.
      for (let left = attempts; ; left--) {
        try {
          return isByIndex ? await inTransaction(pool, plan) : await statements.run(pool, plan());
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
        await client.query(begin('BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY'));
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
          if (options.single === true && !isByIndex) return await statements.run(pool, plan());
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
  };
}

/** A connection for several statements. One that breaks between two of them says so by an event that must be heard. */
export async function take(pool: Connections): Promise<PoolClient> {
  const client = await pool.connect();
  client.on('error', ignore);
  return client;
}

/** Gives a connection back. */
export function give(client: PoolClient, isBroken = false): void {
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

/** A listener that does nothing; also the handler of rejections that can be ignored. */
export function ignore(): undefined {
  return undefined;
}
