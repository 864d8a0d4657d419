import type { Dialect } from './dialect.ts';

/** Values in parameters and rows. */
export type SqlValue = string | number | null | Uint8Array;

/**
 * A named statement. `@name` in its text is a table of the store, `$1` a parameter. The name is that of the prepared
 * statement and shows in traces.
 */
export interface Statement<Row = unknown> {
  readonly name: string;
  readonly text: string | ((dialect: Dialect) => string);
  /** It inserts one row and gives its number, which a driver may know without asking for it. */
  readonly givesRowId?: true;
  /** It locks rows and reads others that hang on them, which must be read once the locks are held. */
  readonly underLock?: true;
  /** Only a type: what a row looks like. */
  readonly row?: Row;
}

/** A statement with its parameters. */
export interface Query {
  readonly statement: Statement;
  readonly values: readonly SqlValue[];
}

/**
 * A piece of work on the database, as a generator that yields queries and receives their rows. SQLite runs it in one go
 * without giving up the thread, Postgres waits for each answer: the logic is the same and written once.
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

/** Declares a statement that inserts one row of a table with numbered rows, and gives its number. */
export function insertion(
  name: string,
  text: Statement['text'],
): Statement<{ readonly row_id: number }> {
  return { name, text, givesRowId: true };
}

/** All rows of a query. */
export function* all<Row>(
  which: Statement<Row>,
  ...values: readonly SqlValue[]
): Plan<readonly Row[]> {
  // The drivers give what the statement declares.
  return (yield { statement: which, values }) as readonly Row[];
}

/** The first row of a query, if there is one. */
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
