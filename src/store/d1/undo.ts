import type { SqlValue } from '../sql/database/query.ts';

/*
 * D1 runs a list of statements atomically, and gives their rows only when they are committed. A transaction that must see what it has just
 * written is therefore several such batches. One transaction at a time holds `_waymark_lock`; triggers keep each row as it was before
 * the first change; and if the process does not finish, the next one that needs the database puts those rows back.
 */

/** A statement as D1 gets it. */
export interface Sent {
  readonly sql: string;
  readonly values: readonly SqlValue[];
}

export const sent = (sql: string, ...values: readonly SqlValue[]): Sent => ({ sql, values });

/** The constraints that end a batch: the database has changed, or a guard gives no row. */
export const changedCheck = 'waymark_unchanged';
export const guardCheck = 'waymark_holds';

/** How long a transaction may stand still before others undo it, in milliseconds. */
const lease = 15_000;

const now = `unixepoch('subsec') * 1000`;

/** The one row that all writes pass, and the numbers of rows that a batch inserts. A number of format -1: the triggers do not fit yet. */
export const lockTables: readonly Sent[] = [
  `CREATE TABLE IF NOT EXISTS _waymark_lock(
    id INTEGER PRIMARY KEY CHECK(id = 1),
    version INTEGER NOT NULL,                -- grows with each write
    owner TEXT,                              -- the transaction that is under way
    expires_at INTEGER,
    format INTEGER NOT NULL,                 -- of the tables that the triggers were made for
    unchanged INTEGER CONSTRAINT ${changedCheck} CHECK(unchanged = 1),
    holds INTEGER CONSTRAINT ${guardCheck} CHECK(holds = 1))`,
  'INSERT INTO _waymark_lock VALUES(1, 0, NULL, NULL, -1, 1, 1) ON CONFLICT DO NOTHING',
  'CREATE TABLE IF NOT EXISTS _waymark_rows(place INTEGER PRIMARY KEY, row_id INTEGER)',
].map((sql) => sent(sql));

const fits = 'format = (SELECT format FROM meta)';

/** The lock, in the same batch as a read: nothing that is read belongs to an unfinished transaction. */
export const readLock: Sent = sent(
  `SELECT version, owner, expires_at < ${now} AS is_expired, ${fits} AS fits, format FROM _waymark_lock`,
);

/** The row that {@link readLock} gives. */
export interface Lock {
  readonly version: number;
  readonly owner: string | null;
  readonly is_expired: number | null;
  readonly fits: number;
  readonly format: number;
}

const change = (set: string, condition: string): string =>
  `UPDATE _waymark_lock SET version = version + 1${set}, unchanged = COALESCE(${condition}, 0)`;

/** Lets a batch pass if no transaction is under way and, with a version, nothing was written since. */
export const pass = (version?: number): Sent =>
  version === undefined
    ? sent(change('', 'owner IS NULL'))
    : sent(change('', 'owner IS NULL AND version = ?1'), version);

/** Begins a transaction, unless the triggers are those of another format than this process knows. */
export const begin = (owner: string, format: number): Sent => {
  const condition = `owner IS NULL AND ${fits} AND format = ?2`;
  return sent(change(`, owner = ?1, expires_at = ${now} + ${lease}`, condition), owner, format);
};

/** Lets a batch of a transaction pass, unless others have undone it. */
export const prolong = (owner: string): Sent =>
  sent(change(`, expires_at = ${now} + ${lease}`, 'owner = ?1'), owner);

/** A table, the columns that identify a row, and all columns. */
export interface Table {
  readonly name: string;
  readonly keys: readonly string[];
  readonly columns: readonly string[];
}

/** The columns of all tables, for {@link toTables}. Names with an underscore in front, and those of the full-text index, are not the store's. */
export const selectColumns: Sent = sent(
  `SELECT m.name AS "table", c.name, c.pk, m.sql LIKE '%WITHOUT ROWID' AS keyed
   FROM sqlite_schema m JOIN pragma_table_info(m.name) c
   WHERE m.type = 'table' AND substr(m.name, 1, 1) <> '_' AND m.name NOT LIKE 'sqlite%' AND m.name NOT LIKE 'search_words%'
   ORDER BY m.name, c.cid`,
);

interface ColumnRow {
  readonly table: string;
  readonly name: string;
  readonly pk: number;
  readonly keyed: number;
}

export function toTables(rows: readonly unknown[]): readonly Table[] {
  // The columns of the query above.
  const byTable = Map.groupBy(rows as readonly ColumnRow[], ({ table }) => table);
  return [...byTable].map(([name, columns]) => ({
    name,
    columns: columns.map((column) => column.name),
    keys:
      columns[0]?.keyed === 1
        ? columns.filter(({ pk }) => pk > 0).map((key) => key.name)
        : ['rowid'],
  }));
}

const undoOf = ({ name }: Table): string => `_waymark_undo_${name}`;
const list = (names: readonly string[], prefix = ''): string =>
  names.map((name) => `${prefix}"${name}"`).join(', ');

/** Makes the triggers of a table, and the table for its rows as they were. */
function triggersOf(table: Table): readonly string[] {
  const { name, keys, columns } = table;
  const undo = undoOf(table);
  const places = keys.map((_, at) => `key${at}`).join(', ');
  const keyOf = (row: string): string => keys.map((key) => `${row}.${key}`).join(', ');
  const old = `INSERT INTO ${undo}(${places}, existed, ${list(columns)})
    VALUES(${keyOf('OLD')}, 1, ${list(columns, 'OLD.')}) ON CONFLICT DO NOTHING;`;
  const added = `INSERT INTO ${undo}(${places}, existed) VALUES(${keyOf('NEW')}, 0) ON CONFLICT DO NOTHING;`;
  const events = [
    ['INSERT', added],
    ['UPDATE', `${old} ${added}`],
    ['DELETE', old],
  ] as const;
  return [
    `DROP TABLE IF EXISTS ${undo}`,
    `CREATE TABLE ${undo}(${places}, existed INTEGER NOT NULL, ${list(columns)}, PRIMARY KEY(${places})) WITHOUT ROWID`,
    ...events.flatMap(([event, body]) => [
      `DROP TRIGGER IF EXISTS ${undo}_${event}`,
      `CREATE TRIGGER ${undo}_${event} AFTER ${event} ON ${name}
       WHEN (SELECT owner FROM _waymark_lock) IS NOT NULL BEGIN ${body} END`,
    ]),
  ];
}

/** Makes the triggers of all tables, as they were at this version. */
export const makeTriggers = (tables: readonly Table[], version: number): readonly Sent[] => [
  pass(version),
  ...tables.flatMap(triggersOf).map((sql) => sent(sql)),
  sent('UPDATE _waymark_lock SET format = (SELECT format FROM meta)'),
];

/** Ends a transaction: what it wrote stays. */
export const finish = (tables: readonly Table[]): readonly Sent[] => [
  ...tables.map((table) => sent(`DELETE FROM ${undoOf(table)}`)),
  sent('UPDATE _waymark_lock SET owner = NULL, expires_at = NULL'),
];

/**
 * Undoes a transaction. All changed rows go before the first comes back, so that none is in the way of another; what triggers of the store
 * delete meanwhile is kept as well, and comes back too.
 */
export function undo(owner: string, tables: readonly Table[]): readonly Sent[] {
  const remove = tables.map((table) => {
    const { name, keys } = table;
    const places = keys.map((_, at) => `key${at}`).join(', ');
    return sent(
      `DELETE FROM ${name} WHERE (${keys.join(', ')}) IN (SELECT ${places} FROM ${undoOf(table)})`,
    );
  });
  const restore = tables.map((table) => {
    const columns = list(table.columns);
    return sent(
      `INSERT INTO ${table.name}(${columns}) SELECT ${columns} FROM ${undoOf(table)} WHERE existed = 1`,
    );
  });
  return [prolong(owner), ...remove, ...restore, ...finish(tables)];
}
