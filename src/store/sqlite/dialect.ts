import type { Dialect } from '../sql/database/dialect.ts';
import type { Statement } from '../sql/database/query.ts';

/** SQLite's words. One writer at a time holds the whole file, so there is nothing to lock. */
export const sqliteDialect: Dialect = {
  name: 'sqlite',
  // The connection binds it.
  now: '$now',
  hasClock: false,
  lock: () => '',
  lockName: (param) => `SELECT ${param}`,
  lockFree: () => '',
  shareBlobs: 'SELECT 1',
  ownBlobs: 'SELECT 1',
  collectAlone: 'SELECT 1',
  lookup: (table, alias, condition) => `JOIN @${table} ${alias} ON ${condition}`,
  lookupOptional: (table, alias, condition) => `LEFT JOIN @${table} ${alias} ON ${condition}`,
  atOnce: { sessions: 25, rows: 200, statements: 200 },
  integers: (param) => `IN (SELECT value FROM json_each(${param}))`,
  bytes: (param) => `IN (SELECT unhex(value) FROM json_each(${param}))`,
  texts: (param) => `IN (SELECT value FROM json_each(${param}))`,
  items: (param) => `json_each(${param}) l`,
  pairs: (param) => `(SELECT value ->> 0 AS a, value ->> 1 AS b FROM json_each(${param}))`,
  snapshotsOf: (param) => `json_each(${param}) j JOIN @snapshots s ON s.session = j.value`,
  // There is one writer at a time.
  namedDocuments: (param) => `SELECT value AS row_id FROM json_each(${param})`,
  messageRanges: (param) =>
    `json_each(${param}) j JOIN @messages m ON m.id >= j.value ->> 0 AND m.id < j.value ->> 1`,
  rowsAsJson: (columns) => `json_group_array(json_array(${columns.join(', ')}))`,
  asJson: (columns) => `json_array(${columns.join(', ')})`,
  words: (param) => param,
  hasWords: (alias, param) => `${alias}.session IN (
    SELECT rowid FROM @search_words WHERE search_words MATCH (
      SELECT group_concat('"' || value || '"*', ' ') FROM json_each(${param})))`,
  hex: (column) => `lower(hex(${column}))`,
};

/** SQLite's words for a database on another machine, whose clock the stored times come from. */
export const sqliteServerDialect: Dialect = {
  ...sqliteDialect,
  now: `CAST(ROUND(unixepoch('subsec') * 1000) AS INTEGER)`,
  hasClock: true,
};

/**
 * The text of a statement in SQLite's words. With `sqliteDialect`, the time is a parameter, after all others: a function would have to be
 * called back for it. With `sqliteServerDialect`, it is the database's.
 */
export function sqliteText(
  { text }: Statement,
  dialect: Dialect = sqliteDialect,
): {
  readonly sql: string;
  /** Whether the time is its last parameter. */
  readonly takesTime: boolean;
} {
  const general = typeof text === 'string' ? text : text(dialect);
  const places = [...general.matchAll(/\$(\d+)/g)].map(([, place]) => Number(place));
  const timePlace = Math.max(0, ...places) + 1;
  const sql = general
    .replace(/@(\w+)/g, '$1')
    .replace(/\$(\d+)/g, '?$1')
    .replaceAll(sqliteDialect.now, `?${timePlace}`);
  return { sql, takesTime: general.includes(sqliteDialect.now) };
}

/** The text of a statement that gives the columns of the row that it inserts. */
export function returningText(
  statement: Statement,
  dialect?: Dialect,
): ReturnType<typeof sqliteText> {
  const { sql, takesTime } = sqliteText(statement, dialect);
  const { inserted } = statement;
  return { sql: inserted === undefined ? sql : `${sql} RETURNING ${inserted}`, takesTime };
}
