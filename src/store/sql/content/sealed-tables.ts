import type { SqlValue } from '../database/query.ts';
import { hexOf } from '../values/bytes.ts';
import { journal } from '../values/journal.ts';
import {
  bytesPlace,
  documentPlace,
  effectPlace,
  type Home,
  type HomeRow,
  homeOf,
  journalPlace,
  memoryPlace,
  messagePlace,
  pendingPlace,
  receiptPlace,
  requestPlace,
  sessionPlace,
  snapshotPlace,
} from './places.ts';

export type SealedRow = Readonly<Record<string, SqlValue>>;

/** A table with content: the order in which its rows are read, and the place of each column. */
export interface SealedTable {
  readonly name: string;
  /** The key, with values before any row's. */
  readonly keys: Readonly<Record<string, SqlValue>>;
  /** By column: the place of its value in a row, for the table `t` and its session `z`. */
  readonly places: Readonly<Record<string, (row: SealedRow) => string>>;
  /** Further columns that places need. */
  readonly also?: string;
  /** Whether its rows have a session, which some may outlive. */
  readonly session?: 'always' | 'maybe';
  /** Rows with nothing to encrypt. */
  readonly except?: string;
  /** Rows that are read at a time at most. */
  readonly batch?: number;
}

const homeColumns = 'z.owner, z.agent, z.id AS session_id';
const noBytes = new Uint8Array();

// The statements name the columns that are cast here.
const home = (row: SealedRow): Home => homeOf(row as unknown as HomeRow);
const bytes = (row: SealedRow, column: string): Uint8Array => row[column] as Uint8Array;

export const sealedTables: readonly SealedTable[] = [
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
    session: 'always',
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
    session: 'always',
    places: { request: (row) => requestPlace(home(row), bytes(row, 'id')) },
  },
  {
    name: 'dead_runs',
    keys: { run: noBytes },
    also: homeColumns,
    session: 'always',
    // As it was copied from the run.
    places: { request: (row) => requestPlace(home(row), bytes(row, 'run')) },
  },
  {
    name: 'requests',
    keys: { key: noBytes },
    also: 't.run, z.id AS session_id',
    session: 'maybe',
    places: { receipt: (row) => receiptPlace(hexOf(bytes(row, 'key')), bytes(row, 'run')) },
  },
  {
    name: 'effects',
    keys: { row_id: -1 },
    also: `t.key, ${homeColumns}`,
    session: 'always',
    places: { body: (row) => effectPlace(home(row), hexOf(bytes(row, 'key'))) },
  },
  {
    name: 'journal',
    keys: { run: noBytes, attempt: -2, seq: -1 },
    also: `t.last, ${homeColumns}`,
    session: 'always',
    except: `t.attempt = ${journal.end}`,
    places: { body: (row) => journalPlace(home(row), bytes(row, 'run'), row as never) },
  },
  {
    name: 'memory',
    keys: { row_id: -1 },
    also: 't.scope, t.entry, t.id',
    places: {
      body: ({ scope, entry, id }) => memoryPlace(String(scope), String(entry), String(id)),
    },
  },
  {
    name: 'memory_notes',
    keys: { snapshot: noBytes },
    places: { pending: (row) => pendingPlace(bytes(row, 'snapshot')) },
  },
];

/** Selects the rows of a table after a key, which comes in the parameters. */
export function selectAfter(table: SealedTable): string {
  const { name, keys, places, also, session, except } = table;
  const key = Object.keys(keys).map((each) => `t.${each}`);
  const columns = [...key, ...Object.keys(places).map((each) => `t.${each}`), also];
  const after = key.map((_, place) => `$${place + 1}`);
  const joins = { always: 'JOIN', maybe: 'LEFT JOIN' };
  return `
    SELECT ${columns.filter((each) => each !== undefined).join(', ')}
    FROM @${name} t ${session === undefined ? '' : `${joins[session]} @sessions z ON z.row_id = t.session`}
    WHERE (${key.join(', ')}) > (${after.join(', ')}) ${except === undefined ? '' : `AND NOT (${except})`}
    ORDER BY ${key.join(', ')}`;
}

export function keyOf({ keys }: SealedTable, row: SealedRow): readonly SqlValue[] {
  return Object.keys(keys).map((key) => row[key] ?? null);
}
