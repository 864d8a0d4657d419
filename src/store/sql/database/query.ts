import type { Dialect } from './dialect.ts';

/** Values in parameters and rows. */
export type SqlValue = string | number | null | Uint8Array;

/**
 * A named statement. `@name` in its text is a table of the store, `$1` a parameter. The name is that of the prepared
 * statement and shows in traces.
 */
export interface Statement<Row = unknown> {
  /** The name, unique among the statements of a store. */
  readonly name: string;
  /** The SQL, or a function that writes it for a dialect. */
  readonly text: string | ((dialect: Dialect) => string);
  /** It inserts one row and gives these columns of it. A driver that knows the number of the row without asking may give only `row_id`. */
  readonly inserted?: string;
  /** Finds the row that it gives once more, with its first parameters, for a database whose writes get no answers on the way. @default the row that it inserts */
  readonly finds?: string;
  /** It locks rows and reads others that hang on them, which must be read once the locks are held. */
  readonly underLock?: true;
  /** It only locks rows, for what follows in the transaction. A database with one writer skips it. */
  readonly onlyLocks?: true;
  /** It changes nothing if the statement before it gave a row, so a driver that sends several at once may leave it out then. */
  readonly unlessFound?: true;
  /** It reads a row if the facts of a write still hold, and none if the write is to be refused: see {@link expect}. */
  readonly guards?: true;
  /** Only a type: what a row looks like. */
  readonly row?: Row;
}

/** A statement with its parameters, as a plan yields it. */
export interface Query {
  /** What to run. */
  readonly statement: Statement;
  /** Its parameters, `$1` first. */
  readonly values: readonly SqlValue[];
}

/**
 * A unit of work on a database: a generator that yields queries and receives their rows. The driver of SQLite runs it in one go without
 * giving up the thread, that of Postgres waits for each answer.
 */
export type Plan<Result> = Generator<Query, Result, readonly unknown[]>;

/** Declares a statement and what its rows look like. */
export function statement<Row = unknown>(name: string, text: Statement['text']): Statement<Row> {
  return { name, text };
}

/** Declares a statement that locks rows and reads others that hang on them: see {@link Statement.underLock}. */
export function readUnderLock<Row>(name: string, text: Statement['text']): Statement<Row> {
  return { name, text, underLock: true };
}

/** Declares a statement that inserts one row of a table with numbered rows, and gives its number: see {@link Statement.inserted}. */
export function insertion<More = unknown>(
  name: string,
  text: Statement['text'],
  ...more: readonly (keyof More & string)[]
): Statement<{ readonly row_id: number } & Partial<More>> {
  return { name, text, inserted: ['row_id', ...more].join(', ') };
}

/** Declares a statement that only locks rows: it gives the rows, and `text` ends with a lock. */
export function locking(name: string, text: Statement['text']): Statement {
  return { name, text, onlyLocks: true };
}

/** Declares a statement that gives a row if a write may go ahead. */
export function guard<Row>(name: string, text: Statement['text']): Statement<Row> {
  return { name, text, guards: true };
}

/** The facts of a guarded write do not hold any more: nothing was written, and it is to be decided again. */
export class Refused extends Error {
  override readonly name = 'Refused';
}

/** The row of a guard. Without one, nothing of the write stays. */
export function* expect<Row>(which: Statement<Row>, ...values: readonly SqlValue[]): Plan<Row> {
  const row = yield* first(which, ...values);
  if (row === undefined) throw new Refused();
  return row;
}

export function* all<Row>(
  which: Statement<Row>,
  ...values: readonly SqlValue[]
): Plan<readonly Row[]> {
  // The drivers give what the statement declares.
  return (yield { statement: which, values }) as readonly Row[];
}

export function* first<Row>(
  which: Statement<Row>,
  ...values: readonly SqlValue[]
): Plan<Row | undefined> {
  return ((yield { statement: which, values }) as readonly Row[])[0];
}

/** The row of a query that always has one. */
export function* one<Row>(which: Statement<Row>, ...values: readonly SqlValue[]): Plan<Row> {
  const [row] = (yield { statement: which, values }) as readonly Row[];
  if (row === undefined) throw new TypeError(`The statement "${which.name}" gave no row.`);
  return row;
}

/** Runs a query for what it does. */
export function* run(which: Statement, ...values: readonly SqlValue[]): Plan<void> {
  yield { statement: which, values };
}
