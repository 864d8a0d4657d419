import type { Step } from '../../rules/maintenance-steps.ts';
import { checkForward } from '../database/check-forward.ts';
import type { Driver } from '../database/driver.ts';
import {
  all,
  type Plan,
  run,
  type SqlValue,
  type Statement,
  statement,
} from '../database/query.ts';
import type { Cipher } from './cipher.ts';
import {
  keyOf,
  type SealedRow,
  type SealedTable,
  sealedTables,
  selectAfter,
} from './sealed-tables.ts';

interface Statements {
  readonly select: Statement<SealedRow>;
  readonly update: Statement;
}

function statementsOf(table: SealedTable): Statements {
  const { name, keys, places, batch = Number.POSITIVE_INFINITY } = table;
  const names = Object.keys(keys);
  const isRow = names.map((key, place) => `${key} = $${place + 1}`).join(' AND ');
  const sets = Object.keys(places).map(
    (column, place) => `${column} = $${names.length + place + 1}`,
  );
  return {
    select: statement(
      `rotate_${name}`,
      (d) => `${selectAfter(table)} LIMIT ${Math.min(batch, d.atOnce.statements)} ${d.lock('t')}`,
    ),
    update: statement(
      `rotate_${name}_row`,
      `UPDATE @${name} SET ${sets.join(', ')} WHERE ${isRow}`,
    ),
  };
}

const rotated = sealedTables.map((table) => ({ table, sql: statementsOf(table) }));

/** Encrypts everything under the current key, in batches of rows. Gives how many rows were encrypted again. */
export async function rotateRows(db: Driver, cipher: Cipher, step: Step): Promise<number> {
  let sealed = 0;
  for (const { table, sql } of rotated) {
    for (let after: readonly SqlValue[] | undefined = Object.values(table.keys); after; ) {
      const at: readonly SqlValue[] = after;
      const batch = await db.write(() => rotateSome(table, sql, at, cipher));
      sealed += batch.sealed;
      after = batch.next;
      await step();
    }
  }
  return sealed;
}

/** Encrypts a batch of rows after a key. Gives the key of the last one; `undefined`: there are no more. */
function* rotateSome(
  table: SealedTable,
  sql: Statements,
  after: readonly SqlValue[],
  cipher: Cipher,
): Plan<{ readonly sealed: number; readonly next: readonly SqlValue[] | undefined }> {
  const rows = yield* all(sql.select, ...after);
  const columns = Object.keys(table.places);
  let sealed = 0;
  for (const row of rows) {
    if (columns.every((column) => isCurrent(column, row[column] ?? null, cipher))) continue;
    const again = columns.map((column) => renewed(table, column, row, cipher));
    yield* run(sql.update, ...keyOf(table, row), ...again);
    sealed++;
  }
  const last = rows.at(-1);
  if (last === undefined) return { sealed, next: undefined };
  const next = keyOf(table, last);
  checkForward(next, after);
  return { sealed, next };
}

function isCurrent(column: string, value: SqlValue, cipher: Cipher): boolean {
  if (value === null) return true;
  if (column === 'state_hash') return cipher.isCurrentHash(value as Uint8Array);
  return column === 'bytes' ? cipher.isCurrentBytes(value as Uint8Array) : cipher.isCurrent(value);
}

function renewed(
  { places }: SealedTable,
  column: string,
  row: SealedRow,
  cipher: Cipher,
): SqlValue {
  const value = row[column] ?? null;
  if (value === null || isCurrent(column, value, cipher)) return value;
  const place = places[column]?.(row) ?? '';
  if (column === 'bytes') {
    return cipher.encryptBytes(cipher.decryptBytes(value as Uint8Array, place), place);
  }
  if (column !== 'state_hash') return cipher.encrypt(cipher.decrypt(value, place), place);
  return cipher.sealHash(cipher.openHash(value as Uint8Array, place), place);
}
