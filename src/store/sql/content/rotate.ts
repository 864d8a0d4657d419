import { checkForward } from '../database/check-forward.ts';
import type { Dialect } from '../database/dialect.ts';
import {
  all,
  type Plan,
  run,
  type SqlValue,
  type Statement,
  statement,
} from '../database/query.ts';
import { journal } from '../runs/journal.ts';
import { hexOf } from '../values/bytes.ts';
import type { Cipher } from './cipher.ts';
import {
  bytesPlace,
  documentPlace,
  type Home,
  homeOf,
  journalPlace,
  messagePlace,
  receiptPlace,
  requestPlace,
  sessionPlace,
  snapshotPlace,
} from './places.ts';

type Row = Readonly<Record<string, SqlValue>>;

/** A table with content: how its rows are walked, in the order of a key, and what each column holds. */
interface SealedTable {
  readonly name: string;
  /** The key, with values before any row's. */
  readonly keys: Readonly<Record<string, SqlValue>>;
  /** By column: the place of its value in a row, for the table `t` and its session `z`. */
  readonly places: Readonly<Record<string, (row: Row) => string>>;
  /** Further columns that places need. */
  readonly also?: string;
  readonly hasSession?: boolean;
  /** Rows with nothing to encrypt. */
  readonly except?: string;
  /** Rows that are read at a time at most. */
  readonly batch?: number;
}

const homeColumns = 'z.owner, z.agent, z.id AS session_id';
const noBytes = new Uint8Array();

// The statements name the columns that are cast here.
const home = (row: Row): Home => homeOf(row as unknown as Parameters<typeof homeOf>[0]);
const bytes = (row: Row, column: string): Uint8Array => row[column] as Uint8Array;

const tables: readonly SealedTable[] = [
  { name: 'messages', keys: { id: -1 }, places: { body: () => messagePlace } },
  {
    name: 'sessions',
    keys: { row_id: -1 },
    also: 't.owner, t.agent, t.id AS session_id',
    places: {
      title: (row) => sessionPlace('title', home(row)),
      metadata: (row) => sessionPlace('metadata', home(row)),
    },
  },
  {
    name: 'snapshots',
    keys: { row_id: -1 },
    also: `t.id, ${homeColumns}`,
    hasSession: true,
    // The row of an open run has no hash.
    except:
      'EXISTS (SELECT 1 FROM @runs r WHERE r.session = t.session AND r.own_snapshot = t.row_id)',
    places: {
      error: (row) => snapshotPlace('error', home(row), bytes(row, 'id')),
      label: (row) => snapshotPlace('label', home(row), bytes(row, 'id')),
      state_hash: (row) => snapshotPlace('state_hash', home(row), bytes(row, 'id')),
    },
  },
  {
    name: 'blobs',
    keys: { row_id: -1 },
    places: { body: () => documentPlace, bytes: () => bytesPlace },
    // The bytes of one may be a megabyte.
    batch: 32,
  },
  {
    name: 'runs',
    keys: { session: -1 },
    also: `t.id, ${homeColumns}`,
    hasSession: true,
    places: { request: (row) => requestPlace(home(row), bytes(row, 'id')) },
  },
  {
    name: 'dead_runs',
    keys: { run: noBytes },
    also: homeColumns,
    hasSession: true,
    // As it was copied from the run.
    places: { request: (row) => requestPlace(home(row), bytes(row, 'run')) },
  },
  {
    name: 'requests',
    keys: { key: noBytes },
    also: 't.run',
    places: { receipt: (row) => receiptPlace(hexOf(bytes(row, 'key')), bytes(row, 'run')) },
  },
  {
    name: 'journal',
    keys: { run: noBytes, attempt: -2, seq: -1 },
    also: `t.last, ${homeColumns}`,
    hasSession: true,
    except: `t.attempt = ${journal.end}`,
    places: { body: (row) => journalPlace(home(row), bytes(row, 'run'), row as never) },
  },
];

/** How many rows are read at a time: each is written by a statement. */
function rowsOf({ batch = Number.POSITIVE_INFINITY }: SealedTable, { atOnce }: Dialect): number {
  return Math.min(batch, atOnce.statements);
}

interface Statements {
  readonly select: Statement<Row>;
  readonly update: Statement;
}

const statements: readonly Statements[] = tables.map((table) => {
  const { name, keys, places, also, hasSession = false, except } = table;
  const names = Object.keys(keys);
  const columns = Object.keys(places);
  const list = names.map((key) => `t.${key}`).join(', ');
  const after = names.map((_, place) => `$${place + 1}`).join(', ');
  const sets = columns.map((column, place) => `${column} = $${names.length + place + 1}`);
  const isRow = names.map((key, place) => `${key} = $${place + 1}`).join(' AND ');
  return {
    select: statement(
      `rotate_${name}`,
      (d) => `
        SELECT ${list}, ${columns.map((column) => `t.${column}`).join(', ')}${also === undefined ? '' : `, ${also}`}
        FROM @${name} t ${hasSession ? 'JOIN @sessions z ON z.row_id = t.session' : ''}
        WHERE (${list}) > (${after}) ${except === undefined ? '' : `AND NOT (${except})`}
        ORDER BY ${list} LIMIT ${rowsOf(table, d)} ${d.lock('t')}`,
    ),
    update: statement(
      `rotate_${name}_row`,
      `UPDATE @${name} SET ${sets.join(', ')} WHERE ${isRow}`,
    ),
  };
});

/** Where a rotation stands. */
export interface RotationPlace {
  readonly table: number;
  /** `undefined`: at the table's beginning. */
  readonly after: readonly SqlValue[] | undefined;
}

export const rotationStart: RotationPlace = { table: 0, after: undefined };

/** Encrypts a batch of rows under the current key. Gives how many were encrypted again, and where to continue. */
export function* rotateSome(
  { table, after }: RotationPlace,
  cipher: Cipher,
  dialect: Dialect,
): Plan<{ readonly sealed: number; readonly next: RotationPlace | undefined }> {
  const which = tables[table];
  const sql = statements[table];
  if (which === undefined || sql === undefined) return { sealed: 0, next: undefined };
  const rows = yield* all(sql.select, ...(after ?? Object.values(which.keys)));
  const columns = Object.keys(which.places);
  let sealed = 0;
  for (const row of rows) {
    if (columns.every((column) => isCurrent(column, row[column] ?? null, cipher))) continue;
    const again = columns.map((column) => renewed(which, column, row, cipher));
    yield* run(sql.update, ...keyOf(which, row), ...again);
    sealed++;
  }
  const last = rows.at(-1);
  if (last === undefined || rows.length < rowsOf(which, dialect)) {
    return { sealed, next: { table: table + 1, after: undefined } };
  }
  const next = keyOf(which, last);
  checkForward(next, after ?? Object.values(which.keys));
  return { sealed, next: { table, after: next } };
}

function isCurrent(column: string, value: SqlValue, cipher: Cipher): boolean {
  if (value === null) return true;
  if (column === 'state_hash') return cipher.isCurrentHash(value as Uint8Array);
  return column === 'bytes' ? cipher.isCurrentBytes(value as Uint8Array) : cipher.isCurrent(value);
}

function renewed({ places }: SealedTable, column: string, row: Row, cipher: Cipher): SqlValue {
  const value = row[column] ?? null;
  if (value === null || isCurrent(column, value, cipher)) return value;
  const place = places[column]?.(row) ?? '';
  if (column === 'bytes') {
    return cipher.encryptBytes(cipher.decryptBytes(value as Uint8Array, place), place);
  }
  if (column !== 'state_hash') return cipher.encrypt(cipher.decrypt(value, place), place);
  return cipher.sealHash(cipher.openHash(value as Uint8Array, place), place);
}

function keyOf({ keys }: SealedTable, row: Row): SqlValue[] {
  return Object.keys(keys).map((key) => row[key] ?? null);
}
