import { setTimeout as sleep } from 'node:timers/promises';
import { type Status, WaymarkError } from 'waymark';
import {
  type Driver,
  type Hint,
  type Plan,
  type SqlValue,
  sqliteDialect,
  sqliteText,
  type UpgradeOptions,
  upgradeSqlite,
} from 'waymark/sql';

/** The parts of `@libsql/client` that the driver uses. */
export interface LibsqlClient {
  execute(sql: string): Promise<unknown>;
  transaction(mode: 'read' | 'write'): Promise<LibsqlTransaction>;
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
  readonly lastInsertRowid?: bigint | undefined;
}

/** How often listeners look whether another process has changed something. */
const pollMs = 1_000;

/** Milliseconds for which a transaction waits for other processes. */
const patienceMs = 30_000;

/** A driver for libSQL and Turso. It runs one transaction at a time, because the database has one writer. */
export function libsqlDriver(
  client: LibsqlClient,
  { now = Date.now, ...upgrade }: { readonly now?: () => number } & UpgradeOptions = {},
): Driver {
  const listeners = new Map<string, Set<() => void>>();
  let poll: NodeJS.Timeout | undefined;
  let last: Promise<unknown> = Promise.resolve();
  let isClosed = false;

  const transact = async <Result>(
    mode: 'read' | 'write',
    plan: () => Plan<Result>,
  ): Promise<Result> => {
    if (isClosed) throw new WaymarkError('FAILED_PRECONDITION', 'The store has been closed.');
    const until = Date.now() + patienceMs;
    for (;;) {
      try {
        const transaction = await client.transaction(mode);
        try {
          const result = await runPlan(transaction, plan(), now());
          await transaction.commit();
          return result;
        } finally {
          transaction.close();
        }
      } catch (error) {
        if (codeOf(error) !== 'SQLITE_BUSY' || Date.now() > until) throw toStoreError(error);
        await sleep(5);
      }
    }
  };
  const inTurn = <Result>(mode: 'read' | 'write', plan: () => Plan<Result>): Promise<Result> => {
    const done = last.then(() => transact(mode, plan));
    last = done.catch(() => {});
    return done;
  };
  const tell = (hints: readonly Hint[]): void => {
    for (const hint of hints) for (const heard of listeners.get(keyOf(hint)) ?? []) heard();
  };

  return {
    dialect: sqliteDialect,
    async open() {
      if (isClosed) throw new WaymarkError('FAILED_PRECONDITION', 'The store has been closed.');
      await client.execute('PRAGMA journal_mode = WAL').catch(() => {});
      await client.execute('PRAGMA secure_delete = ON').catch(() => {});
      await inTurn('write', () => upgradeSqlite(upgrade));
    },
    read: (plan) => inTurn('read', plan),
    async write(plan, { within, hints = [] } = {}) {
      if (within !== undefined) {
        throw new WaymarkError('FAILED_PRECONDITION', 'This store has no shared transactions.');
      }
      const result = await inTurn('write', plan);
      tell(hints);
      return result;
    },
    tell,
    listen(hint, listener) {
      const key = keyOf(hint);
      const own = listeners.get(key) ?? new Set();
      listeners.set(key, own.add(listener));
      poll ??= setInterval(() => {
        for (const all of [...listeners.values()]) for (const heard of [...all]) heard();
      }, pollMs).unref();
      return () => {
        own.delete(listener);
        if (own.size === 0 && listeners.get(key) === own) listeners.delete(key);
        if (listeners.size > 0) return;
        clearInterval(poll);
        poll = undefined;
      };
    },
    async close() {
      if (isClosed) return;
      isClosed = true;
      await last;
      clearInterval(poll);
      client.close();
    },
  };
}

/** Runs a plan in a transaction, query by query. All of its statements see the same time. */
async function runPlan<Result>(
  transaction: LibsqlTransaction,
  plan: Plan<Result>,
  moment: number,
): Promise<Result> {
  let step = plan.next([]);
  while (step.done !== true) {
    const { statement, values } = step.value;
    // There is one writer, so there is nothing to lock.
    if (statement.onlyLocks === true) {
      step = plan.next([]);
      continue;
    }
    const { sql, takesTime } = sqliteText(statement);
    const args = takesTime ? [...values, moment] : [...values];
    const result = await transaction.execute({ sql, args });
    step = plan.next(
      statement.inserted === undefined
        ? rowsOf(result)
        : [{ row_id: Number(result.lastInsertRowid) }],
    );
  }
  return step.value;
}

function rowsOf({ columns, rows }: LibsqlResult): readonly unknown[] {
  return rows.map((row) =>
    Object.fromEntries(columns.map((column, at) => [column, toValue(row[at])])),
  );
}

function toValue(value: unknown): unknown {
  return value instanceof ArrayBuffer ? new Uint8Array(value) : value;
}

function keyOf({ kind, id }: Hint): string {
  return `${kind} ${id}`;
}

const statuses: Readonly<Record<string, Status>> = {
  SQLITE_BUSY: 'UNAVAILABLE',
  SQLITE_READONLY: 'FAILED_PRECONDITION',
  SQLITE_FULL: 'RESOURCE_EXHAUSTED',
  SQLITE_CORRUPT: 'DATA_LOSS',
  SQLITE_NOTADB: 'DATA_LOSS',
  // The connection broke, or the server had an error: what was asked for may have been done.
  HRANA_WEBSOCKET_ERROR: 'UNAVAILABLE',
  HRANA_CLOSED_ERROR: 'UNAVAILABLE',
  SERVER_ERROR: 'UNAVAILABLE',
};

function toStoreError(error: unknown): unknown {
  const code = codeOf(error);
  if (error instanceof WaymarkError || code === undefined) return error;
  const text = error instanceof Error ? error.message : String(error);
  return new WaymarkError(statuses[code] ?? 'INTERNAL', `libSQL: ${text}`, { cause: error });
}

function codeOf(error: unknown): string | undefined {
  const { code } = error as { readonly code?: unknown };
  return typeof code === 'string' ? code : undefined;
}
