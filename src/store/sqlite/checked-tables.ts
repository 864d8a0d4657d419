import { code } from '../sql/values/codes.ts';

/** A table whose rows carry a checksum of their other columns. */
export interface CheckedTable {
  readonly name: string;
  /** The columns that order the rows, with values before any row's. */
  readonly keys: Readonly<Record<string, number | string | Uint8Array>>;
  readonly columns: readonly string[];
  /** The column of the checksum. @default 'sum' */
  readonly sum?: string;
  /** The columns of every new row, as text: its checksum is a default, and no trigger has to write it. */
  readonly initial?: string;
  /** Which rows have one. @default all */
  readonly only?: string;
  /** What a damaged row is called in a fault. */
  readonly what: string;
}

/** What every turn changes of a session. */
const placeColumns = ['head', 'branch_end', 'next_index'] as const;

/** What is neither in an index nor part of where the state lies, in the order in which a commit writes it. */
const snapshotColumns = [
  'parent',
  'created_at',
  'updated_at',
  'turn',
  'event',
  'status',
  'finish',
  'usage',
  'totals',
  'error',
  'length',
  'label',
  'ttl',
  'partial',
] as const;

/** What was spent; its rows have checksums since format 11. */
export const checkedSpend: CheckedTable = {
  name: 'spend',
  what: 'A counter of what was spent',
  keys: { owner: '', agent: '', session: '', by_agent: '', model: '', currency: '', day: -1 },
  columns: [
    'owner',
    'agent',
    'session',
    'by_agent',
    'model',
    'currency',
    'day',
    'calls',
    'input',
    'output',
    'total',
    'reasoning',
    'cache_read',
    'cache_write',
    'micros',
  ],
};

/**
 * The tables as they are since format 5, with the names of format 6. Some columns are covered otherwise. Rows refer to each
 * other by their numbers, and `verify` follows these references. SQLite's own check compares indexed columns with their index.
 * The hash of a state covers its messages and documents, and where they are stored. Format 5 is made from these lists, so a
 * column that is added later needs a list for its format.
 */
export const checkedTables: readonly CheckedTable[] = [
  {
    name: 'sessions',
    what: 'A session',
    keys: { row_id: -1 },
    columns: [
      'owner',
      'agent',
      'id',
      'title',
      'metadata',
      'forked_from',
      'started_by_agent',
      'started_by_session',
      'started_by_snapshot',
      'created_at',
    ],
  },
  {
    name: 'sessions',
    what: 'The place where a session stands',
    sum: 'place_sum',
    keys: { row_id: -1 },
    columns: placeColumns,
    // A session is at no snapshot when it is created.
    initial: 'NULLNULL0',
  },
  {
    name: 'snapshots',
    what: 'A snapshot',
    keys: { row_id: -1 },
    columns: snapshotColumns,
  },
  {
    name: 'branches',
    what: 'A branch',
    keys: { row_id: -1 },
    columns: ['session', 'parent', 'fork', 'fork_view', 'fork_snapshot'],
  },
  {
    name: 'views',
    what: 'A view of a history',
    keys: { row_id: -1 },
    columns: ['branch', 'own_from', 'base', 'common'],
  },
  {
    name: 'runs',
    what: 'A run',
    // The row of an attached run is there while its caller waits, and is of no use afterwards.
    only: `mode <> ${code.attached}`,
    keys: { session: -1 },
    columns: [
      'session',
      'id',
      'attempt',
      'mode',
      'worker',
      'request',
      'turn',
      'start',
      'base',
      'own_snapshot',
      'checkpoint',
      'inputs_done',
      'mid_turn',
      'stopping',
      'ttl',
      'heartbeat',
      'created_at',
      'crashes',
      'crashed',
    ],
  },
  {
    name: 'journal',
    what: 'An event or a step of a run',
    keys: { run: new Uint8Array(), attempt: -2, seq: -1 },
    columns: ['run', 'attempt', 'seq', 'last', 'session', 'ended_at', 'body'],
  },
  {
    name: 'dead_runs',
    what: 'A dead run',
    keys: { run: new Uint8Array() },
    columns: ['run', 'session', 'since', 'inputs_done', 'mode', 'request'],
  },
  {
    name: 'requests',
    what: 'An idempotency key',
    keys: { key: new Uint8Array() },
    columns: ['run', 'digest', 'receipt'],
  },
];
