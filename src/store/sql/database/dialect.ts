/** Where the two databases say the same thing in different words. Everything else is common SQL, written once. */
export interface Dialect {
  /** The family of databases that the SQL is for. */
  readonly name: 'sqlite' | 'postgres';
  /** The current time in milliseconds, by the store's clock. */
  readonly now: string;
  /** Whether that is the clock of the database, which all processes share. Otherwise each has its own. */
  readonly hasClock: boolean;
  /**
   * Ends a query that locks the rows it reads until the transaction ends, one alias after the other. A session comes before
   * its run, everywhere: two that lock them the other way round wait for each other until Postgres ends one.
   */
  lock(alias: string): string;
  /** Locks the documents to write one that may be stored already: shared, so that none is removed meanwhile. */
  readonly shareBlobs: string;
  /** Locks the documents to remove some: exclusive, so that none is found meanwhile. */
  readonly ownBlobs: string;
  /** Makes other garbage collections wait until the transaction ends; turns do not wait for it. */
  readonly collectAlone: string;
  /**
   * Joins the one row of a table that fits. On Postgres it is a lateral subquery with `LIMIT 1`: as a plain join in a
   * recursive query it becomes a hash join over the whole table at every level.
   */
  lookup(table: string, alias: string, condition: string): string;
  /** As `lookup`, for a row that may be missing. */
  lookupOptional(table: string, alias: string, condition: string): string;
  /** Makes others who name the same text wait until the transaction ends, also when there is no row to lock yet. */
  lockName(param: string): string;
  /** As `lock`, but skips rows that are locked by others. */
  lockFree(alias: string): string;
  /** The most that a transaction of maintenance does, as turns may wait for its locks: less when its statements go to a server. */
  readonly atOnce: {
    readonly sessions: number;
    /** Rows that it removes. */
    readonly rows: number;
    readonly statements: number;
  };
  /** After a column: whether it is one of the integers in a JSON array. */
  integers(param: string): string;
  /** After a column: whether it is one of the texts in a JSON array. */
  texts(param: string): string;
  /** After a column: whether it is one of the bytes whose hexadecimal texts are in a JSON array. */
  bytes(param: string): string;
  /** The items of a JSON array, as rows `l` with a column `value`. */
  items(param: string): string;
  /** A table of the columns `a` and `b` with the integers in a JSON array of pairs. */
  pairs(param: string): string;
  /** Snapshots `s` of the sessions whose numbers are in a JSON array. */
  snapshotsOf(param: string): string;
  /**
   * The documents in a JSON array that are named by a snapshot which no other transaction is removing, as `row_id`. The snapshot
   * stays until the transaction ends.
   */
  namedDocuments(param: string): string;
  /** Messages `m` in the id ranges `[from, to)` of a JSON array of pairs. */
  messageRanges(param: string): string;
  /** A JSON array of JSON arrays, one for each row. */
  rowsAsJson(columns: readonly string[]): string;
  /** A JSON array as text. */
  asJson(columns: readonly string[]): string;
  /** Words, separated by spaces, as they are stored in `search.words`. */
  words(param: string): string;
  /** Whether the words of a row of `search` begin with all those in a JSON array, by the full-text index. */
  hasWords(alias: string, param: string): string;
  /** The hexadecimal text of some bytes, in lower case. */
  hex(column: string): string;
  /** Checksums of rows, which frequent statements write themselves. @default rows have none, or triggers write them */
  readonly sums?: RowSums;
}

/** SQL expressions by column. */
export type Expressions = Readonly<Record<string, string>>;

/** The columns of checksums with their values, for statements that write a row. */
export interface RowSums {
  /** The checksum of a new row with these values. */
  added(table: string, values: Expressions): Expressions;
  /** The checksum of the row `alias` after these columns have changed. */
  changed(table: string, values: Expressions, alias: string): Expressions;
}

/** The columns of a new row and their values, as in `INSERT INTO`. */
export function newRow(d: Dialect, table: string, values: Expressions): string {
  const all = { ...values, ...d.sums?.added(table, values) };
  return `(${Object.keys(all).join(', ')}) VALUES(${Object.values(all).join(', ')})`;
}

/** The new values of columns, as in `UPDATE`. */
export function changes(d: Dialect, table: string, values: Expressions, alias = table): string {
  const all = { ...values, ...d.sums?.changed(table, values, alias) };
  return Object.entries(all)
    .map(([column, value]) => `${column} = ${value}`)
    .join(', ');
}

/** Parameters for columns, from a number on. */
export function parameters(columns: readonly string[], first = 1): Expressions {
  return Object.fromEntries(columns.map((column, at) => [column, `$${first + at}`]));
}
