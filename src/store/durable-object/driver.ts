import { createKeyedEmitter } from '../../core/async/emitter.ts';
import { getOrMake } from '../../core/get-or-make.ts';
import type { Clock } from '../../core/time.ts';
import { noSharedTransactions, storeClosed, toReadError } from '../rules/errors.ts';
import { type Driver, hintKey } from '../sql/database/driver.ts';
import type { Plan, Query, SqlValue, Statement } from '../sql/database/query.ts';
import { limitHeartbeats, limiting } from '../sql/runs/run-writes.ts';
import { checkSize } from '../sqlite/cloudflare.ts';
import { returningText, sqliteDialect } from '../sqlite/dialect.ts';
import { upgradeSqlite } from '../sqlite/migrate.ts';
import { toStoreError } from './errors.ts';

/** The parts of `ctx.storage` of a Durable Object with SQLite that the store uses. */
export interface ObjectStorage {
  /** The SQLite database of the object. */
  readonly sql: {
    exec(
      query: string,
      ...values: (string | number | null | Uint8Array)[]
    ): {
      readonly columnNames: readonly string[];
      raw(): Iterable<readonly unknown[]>;
    };
  };
  /** Runs synchronous code in a transaction. */
  transactionSync<Result>(work: () => Result): Result;
  /** The time of the alarm, in milliseconds since 1970. */
  getAlarm(): Promise<number | null>;
  /** Sets the alarm, of which an object has one. */
  setAlarm(time: number): Promise<void>;
}

interface ObjectOptions {
  readonly storage: ObjectStorage;
  readonly clock: Clock;
  readonly newId: () => string;
  readonly onQuery: ((name: string) => void) | undefined;
  /** Called after each write of runs, before anything else happens in the object. */
  readonly onRuns: () => void;
}

/** The database of an object: one process, whose statements run at once. */
export function objectDriver({ storage, clock, newId, onQuery, onRuns }: ObjectOptions): Driver {
  const emitter = createKeyedEmitter(hintKey);
  let isReady = false;
  let isClosed = false;

  let hasChangedRuns = false;
  const execute = <Result>(plan: Plan<Result>): Result => {
    const time = clock.now();
    let step = plan.next([]);
    while (step.done !== true) step = plan.next(query(step.value, time));
    return step.value;
  };
  const query = ({ statement, values }: Query, time: number): readonly unknown[] => {
    // Nothing else runs meanwhile.
    if (statement.onlyLocks === true) return [];
    onQuery?.(statement.name);
    checkSize(values);
    const { sql, takesTime, changesRuns } = getOrMake(texts, statement, () => textOf(statement));
    if (changesRuns) hasChangedRuns = true;
    return rowsOf(storage.sql.exec(sql, ...values, ...(takesTime ? [time] : [])));
  };
  const open = (): void => {
    if (isClosed) throw storeClosed();
    if (isReady) return;
    storage.transactionSync(() => execute(upgradeSqlite({ path: place, newId, hasHeader: false })));
    isReady = true;
  };
  const transact = <Result>(plan: () => Plan<Result>): Result => {
    open();
    hasChangedRuns = false;
    const result = storage.transactionSync(() => execute(plan()));
    if (hasChangedRuns) onRuns();
    return result;
  };

  return {
    dialect: sqliteDialect,
    isLocal: true,
    async open() {
      try {
        open();
      } catch (error) {
        throw toStoreError(error, place);
      }
    },
    async read(plan) {
      try {
        open();
        return execute(plan());
      } catch (error) {
        throw toReadError(toStoreError(error, place));
      }
    },
    async write(plan, { within, hints = [] } = {}) {
      if (within !== undefined) throw noSharedTransactions();
      try {
        const result = await limiting(
          async () => transact(plan),
          async () => transact(limitHeartbeats),
        );
        for (const hint of hints) emitter.emit(hint);
        return result;
      } catch (error) {
        throw toStoreError(error, place);
      }
    },
    tell(hints) {
      for (const hint of hints) emitter.emit(hint);
    },
    listen: (hint, listener) => emitter.subscribe(hint, listener),
    async close() {
      isClosed = true;
    },
  };
}

/** The name of the database in errors. */
const place = 'Durable Object';

type Text = ReturnType<typeof textOf>;
const texts = new WeakMap<Statement, Text>();

/** The text of a statement, and whether it may start a run or change when one expires. */
function textOf(statement: Statement) {
  const { sql, takesTime } = returningText(statement);
  const changesRuns = /\b(INTO|UPDATE|FROM) runs\b/.test(sql) && !/^\s*(SELECT|WITH)/.test(sql);
  return { sql, takesTime, changesRuns };
}

function rowsOf(cursor: ReturnType<ObjectStorage['sql']['exec']>): readonly unknown[] {
  const { columnNames } = cursor;
  return Array.from(cursor.raw(), (row) =>
    Object.fromEntries(columnNames.map((name, at) => [name, toValue(row[at])])),
  );
}

function toValue(value: unknown): SqlValue {
  // The platform gives only these.
  return value instanceof ArrayBuffer ? new Uint8Array(value) : (value as SqlValue);
}
