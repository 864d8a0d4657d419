// #region imports
import { DatabaseSync } from 'node:sqlite';
import { WaymarkError } from 'waymark';
import {
  type Driver,
  type Hint,
  type Plan,
  type SqlStore,
  type SqlValue,
  sqliteDialect,
  sqliteText,
  sqlStore,
  upgradeSqlite,
} from 'waymark/sql';

// #endregion

interface Options {
  /** The time in milliseconds. */
  readonly now?: () => number;
}

// #region plan
/** Runs the queries of a plan. All of them see the same time. */
function execute<Result>(db: DatabaseSync, plan: Plan<Result>, time: number): Result {
  let step = plan.next([]);
  while (step.done !== true) {
    const { statement, values } = step.value;
    let rows: readonly unknown[] = [];
    // There is one writer at a time, so there is nothing to lock.
    if (statement.onlyLocks !== true) {
      const { sql, takesTime } = sqliteText(statement);
      const parameters: SqlValue[] = takesTime ? [...values, time] : [...values];
      const prepared = db.prepare(sql);
      rows =
        statement.inserted === undefined
          ? prepared.all(...parameters)
          : [{ row_id: Number(prepared.run(...parameters).lastInsertRowid) }];
    }
    step = plan.next(rows);
  }
  return step.value;
}
// #endregion

// #region driver
/** A driver for one process, over Node's SQLite. */
export function smallDriver(path: string, { now = Date.now }: Options = {}): Driver {
  let db: DatabaseSync | undefined;
  const listeners = new Map<string, Set<() => void>>();
  const keyOf = ({ kind, id }: Hint): string => `${kind} ${id}`;
  const tell = (hints: readonly Hint[]): void => {
    for (const hint of hints) for (const heard of listeners.get(keyOf(hint)) ?? []) heard();
  };

  const transact = <Result>(begin: string, plan: () => Plan<Result>): Result => {
    const own = db;
    if (own === undefined) throw new WaymarkError('FAILED_PRECONDITION', 'The store is closed.');
    try {
      own.exec(begin);
      const result = execute(own, plan(), now());
      own.exec('COMMIT');
      return result;
    } catch (error) {
      if (own.isTransaction) own.exec('ROLLBACK');
      throw toStoreError(error);
    }
  };

  return {
    dialect: sqliteDialect,
    // Statements take no round trip.
    isLocal: true,
    async open() {
      db ??= new DatabaseSync(path);
      db.exec('PRAGMA journal_mode = WAL; PRAGMA secure_delete = ON');
      transact('BEGIN IMMEDIATE', () => upgradeSqlite({ path }));
    },
    read: async (plan) => transact('BEGIN', plan),
    async write(plan, { within, hints = [] } = {}) {
      if (within !== undefined) {
        throw new WaymarkError('FAILED_PRECONDITION', 'This store has no shared transactions.');
      }
      const result = transact('BEGIN IMMEDIATE', plan);
      tell(hints);
      return result;
    },
    tell,
    listen(hint, listener) {
      const own = listeners.get(keyOf(hint)) ?? new Set();
      listeners.set(keyOf(hint), own.add(listener));
      return () => own.delete(listener);
    },
    async close() {
      db?.close();
      db = undefined;
    },
  };
}
// #endregion

// #region errors
function toStoreError(error: unknown): unknown {
  const { errcode, message } = error as { readonly errcode?: number; readonly message?: string };
  // Errors of the plan reject as they are.
  if (error instanceof WaymarkError || errcode === undefined) return error;
  const code = errcode & 0xff;
  const status = code === 13 ? 'RESOURCE_EXHAUSTED' : code === 11 ? 'DATA_LOSS' : 'UNAVAILABLE';
  return new WaymarkError(status, `The database failed: ${message}.`, { cause: error });
}
// #endregion

// #region store
/** A store with every capability of the SQLite store. */
export function smallStore(path: string, options?: Options): SqlStore {
  return sqlStore({ name: 'small', driver: smallDriver(path, options) });
}
// #endregion
