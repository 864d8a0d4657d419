import { getOrMake } from '../../core/get-or-make.ts';
import { backoff, type Clock, randomFraction, systemClock } from '../../core/time.ts';
import { noSharedTransactions, storeClosed, toReadError } from '../rules/errors.ts';
import {
  collectWrite,
  concludeWrite,
  isRowOf,
  placeholder,
  type RowOf,
  toParameter,
} from '../sql/database/collected-write.ts';
import type { Dialect } from '../sql/database/dialect.ts';
import type { Driver } from '../sql/database/driver.ts';
import { polledHints } from '../sql/database/polled-hints.ts';
import {
  type Plan,
  type Query,
  Refused,
  type SqlValue,
  type Statement,
} from '../sql/database/query.ts';
import { guardedStatements } from '../sql/runs/guarded-statements.ts';
import { checkSize } from '../sqlite/cloudflare.ts';
import { returningText, sqliteServerDialect } from '../sqlite/dialect.ts';
import { stillBusy } from '../sqlite/errors.ts';
import { upgradeSqlite } from '../sqlite/migrate.ts';
import { isFailedCheck, isRace, place, toStoreError } from './errors.ts';
import {
  begin,
  changedCheck,
  finish,
  guardCheck,
  type Lock,
  lockTables,
  makeTriggers,
  pass,
  prolong,
  readLock,
  type Sent,
  selectColumns,
  sent,
  type Table,
  toTables,
  undo,
} from './undo.ts';

/** The parts of a D1 database that the store uses. */
export interface D1Binding {
  /** A prepared statement. */
  prepare(query: string): D1Prepared;
  /** Runs the statements in one transaction. */
  batch(statements: D1Prepared[]): Promise<readonly { readonly results: readonly unknown[] }[]>;
}

interface D1Prepared {
  bind(...values: unknown[]): D1Prepared;
}

interface D1Options {
  readonly db: D1Binding;
  readonly clock: Clock;
  readonly newId: () => string;
  readonly onQuery: ((name: string) => void) | undefined;
}

/** SQLite's words, in transactions of which each statement is a round trip. */
const dialect: Dialect = {
  ...sqliteServerDialect,
  atOnce: { sessions: 10, rows: 100, statements: 40 },
};

const delays = { baseMs: 5, maxMs: 200, jitter: randomFraction };
/** How long a call waits for transactions of others, in milliseconds. */
const patience = 30_000;
/** How often a write is decided again by newer reads before it keeps others out. */
const attempts = 3;

/** A write came first, or a transaction is under way: nothing was written. */
class Overtaken extends Error {}
/** What a plan asks for depends on what it has just written. */
class NeedsTransaction extends Error {}

type Rows = readonly unknown[];

/** A query of a write, and its rows as far as they are known. */
interface Step {
  readonly statement: Statement;
  readonly values: readonly (SqlValue | RowOf)[];
  readonly rows?: Rows;
}

export function d1Driver({ db, clock, newId, onQuery }: D1Options): Driver {
  const hints = polledHints(clock);
  /** The tables, and the format of the triggers that were made for them. */
  let known: { readonly tables: readonly Table[]; readonly format: number } | undefined;
  let opening: Promise<void> | undefined;
  let isClosed = false;

  /** Runs statements: all of them or none. */
  const batch = async (statements: readonly Sent[]): Promise<readonly Rows[]> => {
    for (const { values } of statements) checkSize(values);
    try {
      const results = await db.batch(
        statements.map(({ sql, values }) => db.prepare(sql).bind(...values)),
      );
      return results.map(({ results: rows }) => rows.map(toRow));
    } catch (error) {
      if (isFailedCheck(error, changedCheck)) throw new Overtaken();
      throw isFailedCheck(error, guardCheck) ? new Refused() : error;
    }
  };
  const textOf = (query: Query): Sent => {
    onQuery?.(query.statement.name);
    return sent(sqlOf(query.statement), ...copied(query.values));
  };

  /** Tries again while other writes come first, and undoes what a process that has ended has left. */
  const retry = async <Result>(attempt: (tries: number) => Promise<Result>): Promise<Result> => {
    let waited = 0;
    for (let tries = 1; ; tries++) {
      try {
        return await attempt(tries);
      } catch (error) {
        if (!(error instanceof Overtaken)) throw error;
        if (waited >= patience) throw stillBusy(place, waited, error);
      }
      const lock = lockIn(await batch([readLock]));
      const { owner, is_expired: isExpired, fits, format } = lock;
      if (fits === 0 || format !== known?.format) await learnTables().catch(ignoreOvertaken);
      else if (owner !== null && isExpired === 1) {
        await batch(undo(owner, known.tables)).catch(ignoreOvertaken);
      } else if (owner !== null || tries > 1) {
        const pause = backoff(tries, delays);
        // Real time: the other process knows nothing of an app's clock.
        await systemClock.sleep(pause);
        waited += pause;
      }
    }
  };

  /** Reads which tables there are, and makes their triggers when the tables were made or upgraded. */
  const learnTables = async (): Promise<void> => {
    const answers = await batch([readLock, selectColumns]);
    const { fits, owner, version, format } = lockIn(answers);
    const tables = toTables(answers[1] ?? []);
    if (fits === 1) {
      known = { tables, format };
      return;
    }
    if (owner === null) await batch(makeTriggers(tables, version));
    throw new Overtaken();
  };

  const open = async (): Promise<void> => {
    if (isClosed) throw storeClosed();
    try {
      // Another process may open the database in the same moment, and make the same tables.
      for (let left = 5; ; left--) {
        try {
          await upgrade();
          break;
        } catch (error) {
          if (left === 0 || !isRace(error)) throw error;
        }
      }
      await retry(learnTables);
    } catch (error) {
      throw toStoreError(error);
    }
  };
  const upgrade = async (): Promise<void> => {
    const plan = upgradeSqlite({ path: place, newId, hasHeader: false });
    const writes: Sent[] = [];
    let step = plan.next([]);
    while (step.done !== true) {
      const query = textOf(step.value);
      const isRead = isSelect(query.sql);
      if (!isRead) writes.push(query);
      step = plan.next(isRead ? ((await batch([query]))[0] ?? []) : []);
    }
    const [found] = await batch([sent(`SELECT 1 FROM sqlite_schema WHERE name = '_waymark_lock'`)]);
    if (found?.length !== 0 && writes.length === 0) return;
    const work = (): Promise<unknown> => batch([...lockTables, pass(), ...writes]);
    await (found?.length === 0 ? work() : retry(work));
  };
  const opened = (): Promise<void> => {
    opening ??= open().catch((error: unknown) => {
      opening = undefined;
      throw error;
    });
    return opening;
  };

  /** Reads in the same moment whether a transaction is under way. */
  const look = async (query: Query): Promise<{ readonly version: number; readonly rows: Rows }> => {
    const answers = await batch([readLock, textOf(query)]);
    const { version, owner } = lockIn(answers);
    if (owner !== null) throw new Overtaken();
    return { version, rows: answers[1] ?? [] };
  };

  /** Sends a guarded write at once: a guard that gives no row ends the batch. */
  const sendGuarded = async <Result>(plan: () => Plan<Result>): Promise<Result> => {
    const steps = collectWrite(plan(), (statement) => guarded.has(statement));
    if (steps === undefined) return await decide(plan);
    const rows = await send(steps, pass());
    return concludeWrite(plan(), steps, (at) => rows[at] ?? []);
  };

  /** Sends the writes of a plan. Gives the rows of each query, by its place. */
  const send = async (steps: readonly Step[], first: Sent): Promise<readonly Rows[]> => {
    const statements = [first];
    const places: number[] = [];
    const referred = new Set(
      steps.flatMap(({ values }) => values.filter(isRowOf).map(({ rowOf }) => rowOf)),
    );
    for (const [at, step] of steps.entries()) {
      if (step.rows !== undefined || step.statement.onlyLocks === true) continue;
      const query = resolved(step);
      onQuery?.(step.statement.name);
      const isRead = isSelect(query.sql);
      if (step.statement.guards === true && isRead) {
        statements.push(
          sent(`UPDATE _waymark_lock SET holds = EXISTS(${query.sql})`, ...query.values),
        );
      }
      places[at] = statements.push(query) - 1;
      if (step.statement.guards === true && !isRead) {
        statements.push(sent('UPDATE _waymark_lock SET holds = changes() > 0'));
      }
      if (referred.has(at)) statements.push(noteRow(at, step.statement, query));
    }
    const results = await batch(statements);
    return steps.map(({ rows }, at) => rows ?? results[places[at] ?? -1] ?? []);
  };

  /** Reads what a plan asks for, collects what it writes, and sends that if nothing was written meanwhile. */
  const decide = async <Result>(plan: () => Plan<Result>): Promise<Result> => {
    const steps: Step[] = [];
    const written = new Set<string>();
    let version: number | undefined;
    const own = plan();
    let next = own.next([]);
    while (next.done !== true) {
      const { statement, values } = next.value;
      const sql = sqlOf(statement);
      if (statement.onlyLocks === true) {
        steps.push({ statement, values, rows: [] });
        next = own.next([]);
      } else if (isSelect(sql)) {
        if (sql.match(/\w+/g)?.some((name) => written.has(name))) throw new NeedsTransaction();
        const read = await look(next.value);
        version ??= read.version;
        if (version !== read.version) throw new Overtaken();
        steps.push({ statement, values, rows: read.rows });
        next = own.next(read.rows);
      } else {
        const gives = givesRow(statement, sql);
        if (!gives && /\bRETURNING\b/.test(sql)) throw new NeedsTransaction();
        const parameters = copied(values).map(toParameter);
        const isUnclear = (value: SqlValue | RowOf): boolean =>
          isRowOf(value)
            ? value.rowOf >= steps.length
            : typeof value === 'string' && /-\d{10}/.test(value);
        if (written.size > 0 && parameters.some(isUnclear)) throw new NeedsTransaction();
        for (const name of changedBy(sql)) written.add(name);
        steps.push({ statement, values: parameters });
        next = own.next(gives ? [{ row_id: placeholder(steps.length - 1) }] : []);
      }
    }
    if (written.size === 0) return next.value;
    const rows = await send(steps, pass(version));
    return concludeWrite(plan(), steps, (at) => rows[at] ?? []);
  };

  /** Runs a plan query by query, while others wait. */
  const transact = async <Result>(plan: () => Plan<Result>): Promise<Result> => {
    if (known === undefined) throw new Overtaken();
    const { tables, format } = known;
    const owner = newId();
    await batch([begin(owner, format)]);
    try {
      const own = plan();
      let waiting: Sent[] = [];
      let next = own.next([]);
      while (next.done !== true) {
        const { statement } = next.value;
        if (statement.onlyLocks === true) {
          next = own.next([]);
          continue;
        }
        const query = textOf(next.value);
        waiting.push(query);
        if (!isSelect(query.sql) && !/\bRETURNING\b/.test(query.sql)) {
          next = own.next([]);
          continue;
        }
        const results = await batch([prolong(owner), ...waiting]);
        waiting = [];
        next = own.next(results.at(-1) ?? []);
      }
      await batch([prolong(owner), ...waiting, ...finish(tables)]);
      return next.value;
    } catch (error) {
      // Otherwise the next one does it, after a while.
      if (!(error instanceof Overtaken)) await batch(undo(owner, tables)).catch(() => {});
      throw error;
    }
  };

  const writePlan = async <Result>(
    plan: () => Plan<Result>,
    isGuarded: boolean,
  ): Promise<Result> => {
    let needsTransaction = false;
    return await retry(async (tries) => {
      if (needsTransaction || (tries > attempts && !isGuarded)) return await transact(plan);
      try {
        return await (isGuarded ? sendGuarded(plan) : decide(plan));
      } catch (error) {
        if (!(error instanceof NeedsTransaction)) throw error;
        needsTransaction = true;
        return await transact(plan);
      }
    });
  };

  return {
    dialect,
    open: opened,
    async read(plan) {
      await opened();
      try {
        const own = plan();
        let next = own.next([]);
        while (next.done !== true) {
          const query = next.value;
          next = own.next((await retry(() => look(query))).rows);
        }
        return next.value;
      } catch (error) {
        throw toReadError(toStoreError(error));
      }
    },
    async write(plan, { within, guarded, hints: changes = [] } = {}) {
      if (within !== undefined) throw noSharedTransactions();
      await opened();
      try {
        const result = await writePlan(plan, guarded !== undefined);
        hints.tell(changes);
        return result;
      } catch (error) {
        throw toStoreError(error);
      }
    },
    tell: hints.tell,
    listen: hints.listen,
    async close() {
      isClosed = true;
      hints.close();
    },
  };
}

const guarded = new Set(guardedStatements);

function lockIn([rows = []]: readonly Rows[]): Lock {
  const [lock] = rows;
  if (lock === undefined) throw new TypeError('The table "_waymark_lock" is empty.');
  // The one row of that table.
  return lock as Lock;
}

function ignoreOvertaken(error: unknown): void {
  if (!(error instanceof Overtaken)) throw error;
}

const texts = new WeakMap<Statement, string>();
const sqlOf = (statement: Statement): string =>
  getOrMake(texts, statement, () => returningText(statement, sqliteServerDialect).sql.trim());

// A plan may free the bytes of a query when it gets the answer, and a collected query is sent later.
const copied = (values: readonly SqlValue[]): readonly SqlValue[] =>
  values.map((value) => (value instanceof Uint8Array ? new Uint8Array(value) : value));

const isSelect = (sql: string): boolean =>
  /^SELECT\b/.test(sql) ||
  (/^WITH\b/.test(sql) && !/\b(INSERT INTO|UPDATE|DELETE FROM)\b/.test(sql));

/** Tables that a statement changes, with those that the store's triggers change. */
function changedBy(sql: string): readonly string[] {
  const found = [...sql.matchAll(/\b(?:INTO|UPDATE|DELETE FROM) (?!SET\b)(\w+)/g)];
  return found.flatMap(([words, name = '']) => [
    name,
    ...((words.startsWith('DELETE') ? removedWith[name] : undefined) ?? []),
    ...(name === 'search' ? ['search_words'] : []),
  ]);
}

const removedWith: Readonly<Record<string, readonly string[]>> = {
  sessions: ['memory', 'memory_notes', 'memory_sessions'],
  snapshots: ['search', 'search_words'],
};

/** Whether a write gives the number of a row that a batch can pass on. */
function givesRow({ inserted, finds }: Statement, sql: string): boolean {
  if (inserted !== undefined || finds !== undefined) return true;
  return /^INSERT\b/.test(sql) && /\bRETURNING row_id\b/.test(sql) && !/\bON CONFLICT\b/.test(sql);
}

/** A query whose parameters may be numbers of rows that the batch has noted. */
function resolved({ statement, values }: Step): Sent {
  const sql = sqlOf(statement).replace(/\?(\d+)/g, (text, number) => {
    const value = values[Number(number) - 1];
    if (value === undefined || !isRowOf(value)) return text;
    return `(SELECT row_id FROM _waymark_rows WHERE place = ${value.rowOf})`;
  });
  return withValues(sql, values);
}

/** Notes the row that a query has given, for the queries after it. */
function noteRow(at: number, { finds }: Statement, { sql, values }: Sent): Sent {
  const found = finds?.replace(/@/g, '').replace(/\$/g, '?');
  const source = found ?? (isSelect(sql) ? sql : 'SELECT last_insert_rowid() AS row_id');
  return withValues(
    `INSERT OR REPLACE INTO _waymark_rows SELECT ${at}, row_id FROM (${source})`,
    values,
  );
}

/** As many parameters as the text has. */
function withValues(sql: string, values: readonly (SqlValue | RowOf)[]): Sent {
  const count = Math.max(0, ...[...sql.matchAll(/\?(\d+)/g)].map(([, number]) => Number(number)));
  return sent(sql, ...values.slice(0, count).map((value) => (isRowOf(value) ? null : value)));
}

function toRow(row: unknown): unknown {
  return Object.fromEntries(
    Object.entries(row as object).map(([name, value]) => [name, toValue(value)]),
  );
}

function toValue(value: unknown): SqlValue {
  if (value instanceof ArrayBuffer) return new Uint8Array(value);
  // Bytes arrive as JSON; the platform gives nothing else.
  return Array.isArray(value) ? Uint8Array.from(value as number[]) : (value as SqlValue);
}
