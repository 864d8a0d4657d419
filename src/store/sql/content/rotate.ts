import type { Step } from '../../rules/maintenance-steps.ts';
import { checkForward } from '../database/check-forward.ts';
import type { Database } from '../database/database.ts';
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

/** A table with content: the order in which its rows are read, and the place of each column. */
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

interface Statements {
  readonly select: Statement<Row>;
  readonly update: Statement;
}

function statementsOf({ name, keys, places, ...table }: SealedTable): Statements {
  const { also, hasSession = false, except, batch = Number.POSITIVE_INFINITY } = table;
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
        ORDER BY ${list} LIMIT ${Math.min(batch, d.atOnce.statements)} ${d.lock('t')}`,
    ),
    update: statement(
      `rotate_${name}_row`,
      `UPDATE @${name} SET ${sets.join(', ')} WHERE ${isRow}`,
    ),
  };
}

const sealedTables = tables.map((table) => ({ table, sql: statementsOf(table) }));

/** Encrypts everything under the current key, in batches of rows. Gives how many rows were encrypted again. */
export async function rotateRows(db: Database, cipher: Cipher, step: Step): Promise<number> {
  let sealed = 0;
  for (const { table, sql } of sealedTables) {
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
  const keyOf = (row: Row): SqlValue[] => Object.keys(table.keys).map((key) => row[key] ?? null);
  let sealed = 0;
  for (const row of rows) {
    if (columns.every((column) => isCurrent(column, row[column] ?? null, cipher))) continue;
    const again = columns.map((column) => renewed(table, column, row, cipher));
    yield* run(sql.update, ...keyOf(row), ...again);
    sealed++;
  }
  const last = rows.at(-1);
  if (last === undefined) return { sealed, next: undefined };
  const next = keyOf(last);
  checkForward(next, after);
  return { sealed, next };
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
