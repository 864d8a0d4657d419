import { getOrMake } from '../../core/get-or-make.ts';
import { backoff, type Clock, systemClock } from '../../core/time.ts';
import { noSharedTransactions, storeClosed, toReadError } from '../rules/errors.ts';
import type { Driver } from '../sql/database/driver.ts';
import { polledHints } from '../sql/database/polled-hints.ts';
import { type Plan, run, type SqlValue, type Statement, statement } from '../sql/database/query.ts';
import { limitHeartbeats, limiting } from '../sql/runs/run-writes.ts';
import { returningText, sqliteDialect, sqliteServerDialect } from '../sqlite/dialect.ts';
import { stillBusy } from '../sqlite/errors.ts';
import { upgradeSqlite } from '../sqlite/migrate.ts';
import { stepsWithoutSums } from '../sqlite/schema.ts';
import { isBusy, toStoreError } from './errors.ts';

/** The parts of a client of `@libsql/client` that the store uses. */
export interface LibsqlClient {
  /** `file` for a database on this machine. */
  readonly protocol: string;
  /** Runs a statement by itself. */
  execute(sql: string): Promise<LibsqlResult>;
  /** Begins a transaction. */
  transaction(mode: 'read' | 'write'): Promise<LibsqlTransaction>;
  /** Closes all connections. */
  close(): void;
}

interface LibsqlTransaction {
  execute(query: { readonly sql: string; readonly args: SqlValue[] }): Promise<LibsqlResult>;
  commit(): Promise<void>;
  close(): void;
}

interface LibsqlResult {
  readonly columns: readonly string[];
  readonly rows: readonly Readonly<Record<number, unknown>>[];
}

export interface LibsqlOptions {
  readonly openClient: () => Promise<LibsqlClient>;
  /** Whether the client is the store's own to close. */
  readonly ownsClient: boolean;
  /** The address of the database without secrets, for errors. */
  readonly address: string;
  readonly clock: Clock;
  readonly newId: () => string;
  readonly onQuery: ((name: string) => void) | undefined;
}

const busyDelays = { baseMs: 2, maxMs: 50 };

// A writer that is still in the way after this long is not just busy.
const patience = 30_000;

export function libsqlDriver(options: LibsqlOptions): Driver {
  const { clock, address, newId, onQuery } = options;
  const hints = polledHints(clock);
  let opening: Promise<LibsqlClient> | undefined;
  let last: Promise<unknown> = Promise.resolve();
  let isClosed = false;

  const opened = (): Promise<LibsqlClient> => {
    if (isClosed) return Promise.reject(storeClosed());
    opening ??= open().catch((error: unknown) => {
      opening = undefined;
      throw toStoreError(error, address);
    });
    return opening;
  };
  const open = async (): Promise<LibsqlClient> => {
    const client = await options.openClient();
    try {
      if (isFile(client)) {
        await retry(() => client.execute('PRAGMA journal_mode = WAL'));
        // As in SQLite's store: a power cut may take the last turns. Only reaches all connections where there is one.
        await client.execute('PRAGMA synchronous = NORMAL');
      }
      const upgrade = () => upgradeSqlite({ path: address, newId, steps: tables });
      await retry(() => transact(client, 'write', upgrade));
      return client;
    } catch (error) {
      if (options.ownsClient) client.close();
      throw error;
    }
  };

  /** Tries again while a transaction of another process is in the way. */
  const retry = async <Result>(attempt: () => Promise<Result>): Promise<Result> => {
    let waited = 0;
    for (let tries = 1; ; tries++) {
      try {
        return await attempt();
      } catch (error) {
        if (!isBusy(error)) throw error;
        if (waited >= patience) throw stillBusy(address, waited, error);
      }
      const pause = backoff(tries, busyDelays);
      // Real time: the other process knows nothing of an app's clock.
      await systemClock.sleep(pause);
      waited += pause;
    }
  };

  const transact = async <Result>(
    client: LibsqlClient,
    mode: 'read' | 'write',
    plan: () => Plan<Result>,
  ): Promise<Result> => {
    const transaction = await client.transaction(mode);
    try {
      // Each connection has a setting of its own. Deleted content must not stay readable in free pages.
      if (mode === 'write' && isFile(client)) {
        await transaction.execute({ sql: 'PRAGMA secure_delete = ON', args: [] });
      }
      const time = isFile(client) ? clock.now() : undefined;
      const result = await runPlan(transaction, plan(), time);
      await transaction.commit();
      return result;
    } finally {
      // Undoes what was not committed.
      transaction.close();
    }
  };

  const runPlan = async <Result>(
    transaction: LibsqlTransaction,
    plan: Plan<Result>,
    time: number | undefined,
  ): Promise<Result> => {
    let step = plan.next([]);
    while (step.done !== true) {
      const { statement, values } = step.value;
      // There is one writer at a time.
      if (statement.onlyLocks === true) {
        step = plan.next([]);
        continue;
      }
      onQuery?.(statement.name);
      const { sql, takesTime } = textOf(statement, time === undefined);
      const args = takesTime && time !== undefined ? [...values, time] : [...values];
      const result = await transaction.execute({ sql, args });
      step = plan.next(rowsOf(result));
    }
    return step.value;
  };

  /** One at a time: the database has one writer, and others would only try again and again. A file has one connection. */
  const inTurn = <Result>(work: () => Promise<Result>): Promise<Result> => {
    const done = last.then(() => retry(work));
    last = done.catch(() => {});
    return done;
  };

  return {
    dialect: sqliteDialect,
    async open() {
      await opened();
    },
    async read(plan) {
      const client = await opened();
      try {
        const work = () => transact(client, 'read', plan);
        return await (isFile(client) ? inTurn(work) : retry(work));
      } catch (error) {
        throw toReadError(toStoreError(error, address));
      }
    },
    async write(plan, { within, hints: changes = [] } = {}) {
      if (within !== undefined) throw noSharedTransactions();
      const client = await opened();
      const write = <Result>(own: () => Plan<Result>): Promise<Result> =>
        inTurn(() => transact(client, 'write', own));
      try {
        const result = await limiting(
          () => write(plan),
          () => write(limitHeartbeats),
        );
        hints.tell(changes);
        return result;
      } catch (error) {
        throw toStoreError(error, address);
      }
    },
    async check() {
      const client = await opened();
      // A server looks after its own files.
      if (!isFile(client)) return [];
      try {
        const { rows } = await client.execute('PRAGMA integrity_check(20)');
        const faults = rows.map((row) => String(row[0])).filter((line) => line !== 'ok');
        return faults.map((fault) => `The database is damaged: ${fault}.`);
      } catch (error) {
        throw toStoreError(error, address);
      }
    },
    async scrub() {
      const client = await opened();
      if (!isFile(client)) return;
      const empty = async (): Promise<void> => {
        await transact(client, 'write', () => run(mergeIndex));
        const result = await client.execute('PRAGMA wal_checkpoint(TRUNCATE)');
        // A reader keeps the log from being emptied; it says so in the first column.
        if (Number(result.rows[0]?.[0]) === 1) throw busyLog;
      };
      await inTurn(empty).catch((error: unknown) => {
        throw toStoreError(error, address);
      });
    },
    tell: hints.tell,
    listen: hints.listen,
    async close() {
      if (isClosed) return;
      isClosed = true;
      hints.close();
      const client = await opening?.catch(() => undefined);
      await last;
      if (options.ownsClient) client?.close();
    },
  };
}

/** The tables without a setting of the full-text index under which SQLite 3.45, the version of libSQL, damages it. */
const tables = stepsWithoutSums.map((step) => step.replace(/^.*'secure-delete'.*$/m, ''));

/** Removes deleted words from the full-text index. */
const mergeIndex = statement(
  'search_merge',
  `INSERT INTO @search_words(search_words) VALUES('optimize')`,
);

// Has the shape of what libSQL throws, so that it is waited for in the same way.
const busyLog = Object.assign(new Error('The log is being read.'), { code: 'SQLITE_BUSY' });

function isFile({ protocol }: LibsqlClient): boolean {
  return protocol === 'file';
}

type Text = ReturnType<typeof returningText>;
const texts = [new WeakMap<Statement, Text>(), new WeakMap<Statement, Text>()] as const;

/** The text of a statement, with the time as a parameter or from the server's clock. */
function textOf(statement: Statement, byServer: boolean): Text {
  const dialect = byServer ? sqliteServerDialect : sqliteDialect;
  return getOrMake(texts[byServer ? 1 : 0], statement, () => returningText(statement, dialect));
}

function rowsOf({ columns, rows }: LibsqlResult): readonly unknown[] {
  return rows.map((row) =>
    Object.fromEntries(columns.map((column, place) => [column, toValue(row[place])])),
  );
}

function toValue(value: unknown): unknown {
  return value instanceof ArrayBuffer ? new Uint8Array(value) : value;
}
