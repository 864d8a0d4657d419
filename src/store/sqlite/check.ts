import type { SqlValue } from '../sql/database/query.ts';
import {
  type CheckedTable,
  checkedEffects,
  checkedSpend,
  checkedTables,
  rowSum,
  rowText,
} from './row-sums.ts';

type Row = Readonly<Record<string, SqlValue>>;

/** A look at the whole file: a statement, and what its rows say. */
interface Check {
  readonly sql: string;
  faultOf(row: Row): string | undefined;
}

const checks: readonly Check[] = [
  {
    sql: 'PRAGMA integrity_check(20)',
    faultOf: ({ integrity_check: line }) =>
      line === 'ok' ? undefined : `The database file is damaged: ${line}.`,
  },
  ...[...checkedTables, checkedSpend, checkedEffects].map(rowCheck),
];

/** The statements that look at the file: its pages and indexes, and rows that do not fit their checksums. */
export const checkStatements: readonly string[] = checks.map(({ sql }) => sql);

/** The faults of the file, by the rows of each statement. */
export function faultsIn(results: readonly (readonly Row[])[]): readonly string[] {
  return checks.flatMap(({ faultOf }, at) =>
    (results[at] ?? []).map(faultOf).filter((fault) => fault !== undefined),
  );
}

function rowCheck(table: CheckedTable): Check {
  const { name, keys, sum = 'sum', only, what } = table;
  const list = Object.keys(keys).join(', ');
  return {
    sql: `SELECT ${list} FROM ${name} WHERE ${sum} IS NOT ${rowSum}(${rowText(table, name)})
     ${only === undefined ? '' : `AND ${only}`} LIMIT 20`,
    faultOf(row) {
      const key = Object.values(row).map(shown).join(', ');
      return `${what} does not fit its checksum: row ${key} of the table "${name}".`;
    },
  };
}

function shown(value: SqlValue): string {
  return value instanceof Uint8Array ? Buffer.from(value).toString('hex') : String(value);
}
