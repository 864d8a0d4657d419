import { DatabaseSync, type StatementSync } from 'node:sqlite';
import type { Clock } from '../../core/time.ts';
import type { Dialect } from '../sql/database/dialect.ts';
import type { Plan, Query, SqlValue, Statement } from '../sql/database/query.ts';
import { sqliteDialect, sqliteText } from './dialect.ts';
import { addSumFunctions, ownSums } from './row-sums.ts';

// How long a statement waits for another process with the thread blocked; longer waits are the caller's, with the thread free.
const busyTimeout = 2;

/** SQLite's words for connections that have functions for checksums. */
const ownDialect: Dialect = { ...sqliteDialect, sums: ownSums };

/** How carefully a transaction is written to the disk. */
export type Synchronous = 'NORMAL' | 'FULL';

/** A prepared statement with the names of its columns. */
interface Prepared {
  readonly statement: StatementSync;
  readonly columns: readonly string[];
  /** Whether the time is its last parameter. */
  readonly takesTime: boolean;
}

type Control = 'BEGIN' | 'BEGIN IMMEDIATE' | 'COMMIT' | 'ROLLBACK';

/** One connection: prepared statements by name, and plans run in one go. */
export class Connection {
  readonly #db: DatabaseSync;
  readonly #control: Readonly<Record<Control, StatementSync>>;
  readonly #prepared = new Map<Statement, Prepared>();
  readonly #asked = new Map<string, StatementSync>();
  readonly #clock: Clock;
  readonly #onQuery: ((name: string) => void) | undefined;
  #synchronous: Synchronous | undefined;
  /** The time that the statements of a transaction see. */
  #moment: number | undefined;

  constructor(
    path: string | URL,
    { clock, onQuery }: { clock: Clock; onQuery: ((name: string) => void) | undefined },
  ) {
    this.#db = new DatabaseSync(path, { timeout: busyTimeout });
    addSumFunctions(this.#db);
    this.#control = {
      BEGIN: this.#db.prepare('BEGIN'),
      'BEGIN IMMEDIATE': this.#db.prepare('BEGIN IMMEDIATE'),
      COMMIT: this.#db.prepare('COMMIT'),
      ROLLBACK: this.#db.prepare('ROLLBACK'),
    };
    this.#clock = clock;
    this.#onQuery = onQuery;
  }

  /** Runs statements that give nothing. */
  exec(sql: string): void {
    this.#db.exec(sql);
  }

  /** The first row of a statement by its text, which is prepared once. */
  get(sql: string): Readonly<Record<string, SqlValue>> | undefined {
    let prepared = this.#asked.get(sql);
    if (prepared === undefined) {
      prepared = this.#db.prepare(sql);
      this.#asked.set(sql, prepared);
    }
    return prepared.get() as Readonly<Record<string, SqlValue>> | undefined;
  }

  /** All rows of a statement by its text. */
  all(sql: string): readonly Readonly<Record<string, SqlValue>>[] {
    return this.#db.prepare(sql).all() as unknown as readonly Readonly<Record<string, SqlValue>>[];
  }

  /** Runs a plan as it is. */
  run<Result>(plan: Plan<Result>): Result {
    let step = plan.next([]);
    while (step.done !== true) step = plan.next(this.#query(step.value));
    return step.value;
  }

  /** The file of the database; empty for one in memory. */
  get file(): string {
    return String(this.get('PRAGMA database_list')?.file ?? '');
  }

  get isOpen(): boolean {
    return this.#db.isOpen;
  }

  /** Runs a plan in a transaction; whatever goes wrong, none stays open. */
  transaction<Result>(begin: 'BEGIN' | 'BEGIN IMMEDIATE', plan: () => Plan<Result>): Result {
    this.#control[begin].run();
    this.#moment = this.#clock.now();
    try {
      const result = this.run(plan());
      this.#control.COMMIT.run();
      return result;
    } catch (error) {
      // SQLite has rolled back by itself after some errors, a full disk among them.
      if (this.#db.isTransaction) this.#control.ROLLBACK.run();
      throw error;
    } finally {
      this.#moment = undefined;
    }
  }

  /** Sets how the next transactions are written. Cannot be changed within one. */
  set synchronous(level: Synchronous) {
    if (this.#synchronous === level) return;
    this.#db.exec(`PRAGMA synchronous = ${level}`);
    this.#synchronous = level;
  }

  close(): void {
    this.#prepared.clear();
    this.#asked.clear();
    this.#db.close();
  }

  #query({ statement, values }: Query): readonly unknown[] {
    // There is one writer at a time.
    if (statement.onlyLocks === true) return [];
    this.#onQuery?.(statement.name);
    const prepared = this.#prepared.get(statement) ?? this.#prepare(statement);
    const bound = prepared.takesTime ? [...values, this.#moment ?? this.#clock.now()] : values;
    if (statement.inserted !== undefined) {
      return [{ row_id: Number(prepared.statement.run(...bound).lastInsertRowid) }];
    }
    const { columns } = prepared;
    const rows = prepared.statement.all(...bound) as unknown as readonly (readonly SqlValue[])[];
    return rows.map((row) => toObject(row, columns));
  }

  // Rows as arrays: the objects that SQLite's binding makes are slow to make and slow to read.
  #prepare(statement: Statement): Prepared {
    const { sql, takesTime } = sqliteText(statement, ownDialect);
    const made = this.#db.prepare(sql);
    made.setReturnArrays(true);
    const columns = made.columns().map(({ name }) => name);
    const prepared = { statement: made, columns, takesTime };
    this.#prepared.set(statement, prepared);
    return prepared;
  }
}

function toObject(
  row: readonly SqlValue[],
  columns: readonly string[],
): Readonly<Record<string, SqlValue>> {
  const object: Record<string, SqlValue> = {};
  for (let place = 0; place < columns.length; place++) {
    object[columns[place] ?? ''] = row[place] ?? null;
  }
  return object;
}
