import type { DatabaseSync } from 'node:sqlite';
import { crc32 } from 'node:zlib';
import type { Expressions, RowSums } from '../sql/database/dialect.ts';
import { formerName } from '../sql/database/renamed-columns.ts';
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
  /** The name of a damaged row in a fault. */
  readonly what: string;
}

/** The names in a list of columns. */
function listed(columns: string): readonly string[] {
  return columns.trim().split(/,\s+/);
}

/** The table of spend; its rows have checksums since format 11. */
export const checkedSpend: CheckedTable = {
  name: 'spend',
  what: 'A counter of what was spent',
  keys: { owner: '', agent: '', session: '', by_agent: '', model: '', currency: '', day: -1 },
  columns: listed(`
    owner, agent, session, by_agent, model, currency, day, calls, input, output, total,
    reasoning, cache_read, cache_write, micros`),
};

/** The table of effects that can be undone. */
export const checkedEffects: CheckedTable = {
  name: 'effects',
  what: 'An effect of a call',
  keys: { row_id: -1 },
  columns: listed('session, key, run, at, undone_at, body'),
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
    columns: listed(`
      owner, agent, id, title, metadata, forked_from, started_by_agent, started_by_session,
      started_by_snapshot, created_at`),
  },
  {
    name: 'sessions',
    what: 'The place where a session stands',
    sum: 'place_sum',
    keys: { row_id: -1 },
    columns: ['head', 'branch_end', 'next_index'],
    // A session is at no snapshot when it is created.
    initial: 'NULLNULL0',
  },
  {
    name: 'snapshots',
    what: 'A snapshot',
    keys: { row_id: -1 },
    // Columns that are neither in an index nor part of where the state lies, in the order in which a commit writes it.
    columns: listed(`
      parent, created_at, updated_at, turn, event, status, finish, usage, totals, error,
      length, label, ttl, partial`),
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
    columns: listed(`
      session, id, attempt, mode, worker, request, turn, start, base, own_snapshot,
      checkpoint, inputs_done, mid_turn, stopping, ttl, heartbeat, created_at, crashes,
      crashed`),
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

/**
 * The functions that triggers call. A process of an older version does not have them: what it writes is refused, because it
 * would leave rows behind whose checksums are wrong.
 */
export const rowSum = 'waymark_row_sum';
const nextSum = 'waymark_next_sum';
/** The functions that statements call. */
const valuesSum = 'waymark_values_sum';
const nextValuesSum = 'waymark_next_values_sum';

/** Gives a connection the functions that it needs to write. */
export function addSumFunctions(db: DatabaseSync): void {
  db.function(rowSum, { deterministic: true }, sumOf);
  db.function(nextSum, { deterministic: true }, sumAfter);
  db.function(valuesSum, { deterministic: true, varargs: true }, sumOfValues);
  db.function(nextValuesSum, { deterministic: true, varargs: true }, sumAfterValues);
}

/**
 * Checksums that the statements of each turn write themselves, from values instead of text: that takes a third of the time of a trigger,
 * which does nothing where the checksum has changed already.
 */
export const ownSums: RowSums = {
  added(table, values) {
    const { columns, sum = 'sum' } = tableWith(table, values);
    const added = columns.map((column) => values[column] ?? 'NULL');
    return { [sum]: `${valuesSum}(${added.join(', ')})` };
  },
  changed(table, values, alias) {
    const { columns, sum = 'sum' } = tableWith(table, values);
    const before = columns.map((column) => `${alias}.${column}`);
    const after = columns.map((column) => values[column] ?? `${alias}.${column}`);
    return { [sum]: `${nextValuesSum}(${[`${alias}.${sum}`, ...before, ...after].join(', ')})` };
  },
};

/** The part of a table that has one of these columns under a checksum. */
function tableWith(table: string, values: Expressions): CheckedTable {
  const parts = [...checkedTables, checkedSpend].filter(({ name }) => name === table);
  const part = parts.find(({ columns }) => columns.some((column) => column in values));
  if (part === undefined) throw new TypeError(`Table "${table}" has no checksums.`);
  return part;
}

/** The checksum of a row by its values. `null` leaves it to the trigger. */
function sumOfValues(...values: unknown[]): number | null {
  const text = textOf(values, 0, values.length);
  return text === undefined ? null : shortSum(text);
}

/** As {@link sumAfter}, by the values before and after. The same checksum leaves it to the trigger. */
function sumAfterValues(sum: unknown, ...values: unknown[]): number | null {
  if (sum === null) return null;
  const half = values.length / 2;
  const before = textOf(values, 0, half);
  const after = textOf(values, half, values.length);
  if (before === undefined || after === undefined) return Number(sum);
  return (Number(sum) ^ shortSum(before) ^ shortSum(after)) >>> 0;
}

/** Values as SQLite's `quote` writes them; `undefined` with one that it writes differently, such as a fraction. */
function textOf(values: readonly unknown[], from: number, to: number): string | undefined {
  let text = '';
  for (let at = from; at < to; at++) {
    const value = values[at];
    if (value === null) text += 'NULL';
    else if (Number.isSafeInteger(value)) text += String(value);
    else if (typeof value !== 'string' || value.includes('\0')) return undefined;
    else text += value.includes("'") ? `'${value.replaceAll("'", "''")}'` : `'${value}'`;
  }
  return text;
}

// The remainder of each byte, for CRC-32.
const remainders = Int32Array.from({ length: 256 }, (_, byte) => {
  let rest = byte;
  for (let bit = 0; bit < 8; bit++) rest = (rest >>> 1) ^ (rest & 1 ? 0xedb88320 : 0);
  return rest;
});

/** The CRC-32 of a short text. The call of `crc32` takes longer than that. */
function shortSum(text: string): number {
  let sum = -1;
  for (let at = 0; at < text.length; at++) {
    const unit = text.charCodeAt(at);
    if (unit > 127) return crc32(text);
    sum = (remainders[(sum ^ unit) & 255] ?? 0) ^ (sum >>> 8);
  }
  return ~sum >>> 0;
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
