import { all, type Plan, run, type SqlValue, type Statement, statement } from './query.ts';
import type { Vault } from './vault.ts';

/** The columns of a table that hold content, and how its rows are walked. */
interface Sealed {
  readonly select: Statement<Readonly<Record<string, SqlValue>>>;
  readonly update: Statement;
  readonly columns: readonly string[];
}

const batch = 200;

function sealedTable(table: string, key: string, columns: readonly string[]): Sealed {
  const names = columns.map((column, place) => `${column} AS c${place}`).join(', ');
  const sets = columns.map((column, place) => `${column} = $${place + 2}`).join(', ');
  return {
    columns,
    select: statement(
      `rotate_${table}`,
      `SELECT ${key} AS at, ${names} FROM @${table} WHERE ${key} > $1 ORDER BY ${key} LIMIT ${batch}`,
    ),
    update: statement(`rotate_${table}_row`, `UPDATE @${table} SET ${sets} WHERE ${key} = $1`),
  };
}

const tables: readonly Sealed[] = [
  sealedTable('messages', 'id', ['body']),
  sealedTable('sessions', 'no', ['title', 'metadata']),
  sealedTable('snapshots', 'no', ['error', 'label']),
  sealedTable('blobs', 'no', ['body']),
  sealedTable('runs', 'no', ['request']),
  sealedTable('steps', 'no', ['value']),
  sealedTable('events', 'no', ['body']),
];

/** Where a rotation stands. */
export interface RotationPlace {
  readonly table: number;
  readonly after: number;
}

export const rotationStart: RotationPlace = { table: 0, after: -1 };

/** Seals a batch of rows under the current key. Gives how many were sealed anew, and where to go on. */
export function* rotateSome(
  { table, after }: RotationPlace,
  vault: Vault,
): Plan<{ readonly sealed: number; readonly next: RotationPlace | undefined }> {
  const which = tables[table];
  if (which === undefined) return { sealed: 0, next: undefined };
  const rows = yield* all(which.select, after);
  let sealed = 0;
  for (const row of rows) {
    const values = which.columns.map((_, place) => row[`c${place}`] ?? null);
    const isOld = (value: SqlValue): boolean => value !== null && !vault.isCurrent(value);
    if (!values.some(isOld)) continue;
    yield* run(which.update, row.at ?? null, ...values.map((each) => sealedAgain(each, vault)));
    sealed++;
  }
  const last = rows.at(-1)?.at;
  const more = rows.length === batch && typeof last === 'number';
  return { sealed, next: more ? { table, after: last } : { table: table + 1, after: -1 } };
}

function sealedAgain(value: SqlValue, vault: Vault): SqlValue {
  return value === null || vault.isCurrent(value) ? value : vault.seal(vault.open(value));
}
