import type { SqlValue } from '../sql/database/query.ts';
import { type CheckedTable, checkedTables } from './checked-tables.ts';
import type { Connection } from './connection.ts';
import { rowSum, rowText } from './row-sums.ts';

/** What is wrong with the file: its pages and indexes, and rows that do not fit their checksums. */
export function checkFile(db: Connection): readonly string[] {
  const structure = db
    .all('PRAGMA integrity_check(20)')
    .map((row) => String(row.integrity_check))
    .filter((line) => line !== 'ok')
    .map((line) => `The database file is damaged: ${line}.`);
  return [...structure, ...checkedTables.flatMap((table) => damagedRows(db, table))];
}

function damagedRows(db: Connection, table: CheckedTable): readonly string[] {
  const { name, keys, sum = 'sum', only, what } = table;
  const list = Object.keys(keys).join(', ');
  const rows = db.all(
    `SELECT ${list} FROM ${name} WHERE ${sum} IS NOT ${rowSum}(${rowText(table, name)})
     ${only === undefined ? '' : `AND ${only}`} LIMIT 20`,
  );
  return rows.map((row) => {
    const key = Object.values(row).map(shown).join(', ');
    return `${what} does not fit its checksum: row ${key} of the table "${name}".`;
  });
}

function shown(value: SqlValue): string {
  return value instanceof Uint8Array ? Buffer.from(value).toString('hex') : String(value);
}
