import type { PoolClient } from 'pg';
import { hasStatus } from '../../core/error.ts';
import { toReadError } from '../rules/errors.ts';
import type { Driver, Hint, WriteOptions } from '../sql/database/driver.ts';
import { type Plan, Refused } from '../sql/database/query.ts';
import { checkTables } from './check.ts';
import { give, take } from './connection.ts';
import { isConflict, isFunctionMissing, isLost, toStoreError } from './errors.ts';
import { collectCall, concludeCall, generalCall, isRefusal } from './guarded-writes.ts';
import type { ShapeFunctions } from './shape-functions.ts';
import type { Queryable, Statements } from './statements.ts';

/** Connections: a pool, or something like it. */
export interface Connections extends Queryable {
  connect(): Promise<PoolClient>;
}

export type Access = Required<Pick<Driver, 'read' | 'write' | 'check'>>;

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
  /** Whether the function of guarded writes is there, once the database is open. */
  hasFunction(): boolean;
  /** The functions for writes of frequent shapes. */
  readonly shapes: ShapeFunctions;
  /** Whether everything is done in transactions that find rows by indexes, as in maintenance. Default `false`. */
  readonly isByIndex?: boolean;
  /** The channel and the payload of hints. */
  hintOf(hints: readonly Hint[]): readonly [channel: string, payload: string];
  /** Tells listeners everywhere. */
  tell(hints: readonly Hint[], reach?: 'process'): void;
}

export function accessTo(options: AccessOptions): Access {
  const { opened, statements, schema, isByIndex = false } = options;
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

  /** Sends a guarded write in one round trip; `undefined` when it takes a transaction of single statements. */
  const atOnce = async <Result>(
    pool: Connections,
    plan: () => Plan<Result>,
    { guarded = '', durable = true, hints = [] }: WriteOptions,
  ): Promise<{ readonly result: Result } | undefined> => {
    const sent = collectCall(plan(), hints.length === 0 ? undefined : options.hintOf(hints));
    if (sent === undefined) return undefined;
    const { call, values } = options.shapes.callOf(guarded, sent) ?? generalCall(guarded, sent);
    try {
      const [row] = await statements.query(pool, call, [...values, String(durable)]);
      const result = concludeCall(plan(), sent, row?.answers);
      options.tell(hints, 'process');
      return { result };
    } catch (error) {
      if (isRefusal(error)) throw new Refused();
      if (isFunctionMissing(error)) options.shapes.forget(call);
      else if (!isConflict(error)) throw error;
      return undefined;
    }
  };

  return {
    async read(plan) {
      const pool = await opened();
      // Turns read without a transaction, for the sake of the round trips: what was read in pieces while something was removed does
      // not fit its hash, and is read again.
      for (let left = attempts; ; left--) {
        try {
          return isByIndex ? await inTransaction(pool, plan) : await statements.run(pool, plan());
        } catch (thrown) {
          const error = toReadError(thrown);
          if (!hasStatus(error, 'DATA_LOSS') || left <= 1) throw toStoreError(error);
        }
      }
    },
    async write(plan, how = {}) {
      const pool = await opened();
      for (let left = attempts; ; left--) {
        try {
          const isFirst =
            left === attempts && how.guarded !== undefined && how.within === undefined;
          const isCall = isFirst && !isByIndex && options.hasFunction();
          const done = isCall ? await atOnce(pool, plan, how) : undefined;
          if (done !== undefined) return done.result;
          const result = await inTransaction(pool, plan, how);
          if (how.hints !== undefined) options.tell(how.hints);
          return result;
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
