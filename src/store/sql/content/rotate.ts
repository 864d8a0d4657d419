import {
  all,
  type Plan,
  run,
  type SqlValue,
  type Statement,
  statement,
} from '../database/query.ts';
import type { Vault } from './vault.ts';

type Row = Readonly<Record<string, SqlValue>>;

/** The columns of a table that hold content, and how its rows are walked: in the order of a key. */
interface SealedTable {
  readonly select: Statement<Row>;
  readonly update: Statement;
  readonly keys: readonly string[];
  readonly columns: readonly string[];
  /** Before any key. */
  readonly start: readonly SqlValue[];
}

const batch = 200;

function sealedTable(
  table: string,
  keys: Readonly<Record<string, SqlValue>>,
  columns: readonly string[],
): SealedTable {
  const names = Object.keys(keys);
  const list = names.join(', ');
  const after = names.map((_, place) => `$${place + 1}`);
  const sets = columns.map((column, place) => `${column} = $${names.length + place + 1}`);
  const isRow = names.map((name, place) => `${name} = $${place + 1}`).join(' AND ');
  return {
    keys: names,
    columns,
    start: Object.values(keys),
    select: statement(
      `rotate_${table}`,
      (d) => `
        SELECT ${list}, ${columns.join(', ')} FROM @${table} t WHERE (${list}) > (${after.join(', ')})
        ORDER BY ${list} LIMIT ${batch} ${d.lock('t')}`,
    ),
    update: statement(
      `rotate_${table}_row`,
      `UPDATE @${table} SET ${sets.join(', ')} WHERE ${isRow}`,
    ),
  };
}

const noBytes = new Uint8Array();

const tables: readonly SealedTable[] = [
  sealedTable('messages', { id: -1 }, ['body']),
  sealedTable('sessions', { no: -1 }, ['title', 'metadata']),
  sealedTable('snapshots', { no: -1 }, ['error', 'label']),
  sealedTable('blobs', { no: -1 }, ['body']),
  sealedTable('runs', { session: -1 }, ['request']),
  sealedTable('journal', { run: noBytes, attempt: -1, seq: -1 }, ['body']),
];

/** Where a rotation stands. */
export interface RotationPlace {
  readonly table: number;
  /** `undefined`: at the table's beginning. */
  readonly after: readonly SqlValue[] | undefined;
}

export const rotationStart: RotationPlace = { table: 0, after: undefined };

/** Seals a batch of rows under the current key. Gives how many were sealed anew, and where to go on. */
export function* rotateSome(
  { table, after }: RotationPlace,
  vault: Vault,
): Plan<{ readonly sealed: number; readonly next: RotationPlace | undefined }> {
  const which = tables[table];
  if (which === undefined) return { sealed: 0, next: undefined };
  const rows = yield* all(which.select, ...(after ?? which.start));
  const isOld = (value: SqlValue): boolean => value !== null && !vault.isCurrent(value);
  let sealed = 0;
  for (const row of rows) {
    const values = valuesOf(row, which.columns);
    if (!values.some(isOld)) continue;
    const again = values.map((value) => (isOld(value) ? vault.seal(vault.open(value)) : value));
    yield* run(which.update, ...valuesOf(row, which.keys), ...again);
    sealed++;
  }
  const last = rows.at(-1);
  const isDone = last === undefined || rows.length < batch;
  const next = isDone
    ? { table: table + 1, after: undefined }
    : { table, after: valuesOf(last, which.keys) };
  return { sealed, next };
}

function valuesOf(row: Row, columns: readonly string[]): SqlValue[] {
  return columns.map((column) => row[column] ?? null);
}
