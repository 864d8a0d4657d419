import type { DatabaseSync } from 'node:sqlite';
import { crc32 } from 'node:zlib';
import { formerName } from '../sql/database/renamed-columns.ts';
import { type CheckedTable, checkedTables } from './checked-tables.ts';

/**
 * The functions that triggers call. A process of an older version does not have them: what it writes is refused, because it
 * would leave rows behind whose checksums are wrong.
 */
export const rowSum = 'waymark_row_sum';
const nextSum = 'waymark_next_sum';

/** Gives a connection the functions that it needs to write. */
export function addSumFunctions(db: DatabaseSync): void {
  db.function(rowSum, { deterministic: true }, sumOf);
  db.function(nextSum, { deterministic: true }, sumAfter);
}

function sumOf(row: unknown): number {
  return crc32(String(row));
}

/** The checksum after an update. One that was wrong before stays wrong: an update does not hide damage. */
function sumAfter(sum: unknown, before: unknown, after: unknown): number {
  return (Number(sum) ^ sumOf(before) ^ sumOf(after)) >>> 0;
}

/** A row as text in which every value shows with its type. */
export function rowText({ columns }: CheckedTable, alias: string): string {
  return columns.map((column) => `quote(${alias}.${column})`).join(' || ');
}

/** Adds checksums to the rows of a table, and keeps them right whatever statement changes a row. */
export function withSums(table: CheckedTable): string {
  const { name, keys, columns, sum = 'sum', only, initial } = table;
  const isRow = Object.keys(keys)
    .map((key) => `${key} = NEW.${key}`)
    .join(' AND ');
  const isChecked = only === undefined ? '' : ` AND NEW.${only}`;
  const added = `
  CREATE TRIGGER ${name}_${sum}_added AFTER INSERT ON ${name} WHEN NEW.${sum} IS NULL${isChecked} BEGIN
    UPDATE ${name} SET ${sum} = ${rowSum}(${rowText(table, 'NEW')}) WHERE ${isRow};
  END;`;
  return `
  ALTER TABLE ${name} ADD COLUMN ${sum} INTEGER${initial ? ` DEFAULT ${crc32(initial)}` : ''};
  UPDATE ${name} SET ${sum} = ${rowSum}(${rowText(table, name)});
  ${initial ? '' : added}
  CREATE TRIGGER ${name}_${sum}_changed AFTER UPDATE OF ${columns.join(', ')} ON ${name}
  WHEN NEW.${sum} IS OLD.${sum}${isChecked} BEGIN
    UPDATE ${name} SET ${sum} = CASE WHEN OLD.${sum} IS NULL THEN ${rowSum}(${rowText(table, 'NEW')})
      ELSE ${nextSum}(OLD.${sum}, ${rowText(table, 'OLD')}, ${rowText(table, 'NEW')}) END
    WHERE ${isRow};
  END;`;
}

/** The checksums as format 5 adds them, when some columns had other names. */
export const rowSums: string = checkedTables.map(withFormerNames).map(withSums).join('\n');

function withFormerNames(table: CheckedTable): CheckedTable {
  const { name, keys, columns } = table;
  return {
    ...table,
    keys: Object.fromEntries(
      Object.entries(keys).map(([key, value]) => [formerName(name, key), value]),
    ),
    columns: columns.map((column) => formerName(name, column)),
  };
}
