import type { WaymarkError } from '../../core/error.ts';
import { createIds } from '../../core/id.ts';
import { systemClock } from '../../core/time.ts';
import { storeFault } from '../rules/errors.ts';
import { all, first, type Plan, run, statement } from '../sql/database/query.ts';
import { firstSumsFormat, stepsWithoutSums } from './schema.ts';

// "WYMK", in the file's header.
const applicationId = 1465470283;

/** Where a database is, for errors, and how its tables are made. */
export interface UpgradeOptions {
  /** The path or the address of the database. @default '' */
  readonly path?: string;
  /** Makes the database's name. @default time-ordered UUIDs */
  readonly newId?: () => string;
  /** Whether the file has a header for this connection, which marks it as a store. @default true */
  readonly hasHeader?: boolean;
  /** Whether rows have checksums, by functions of the connection. @default false */
  readonly withSums?: boolean;
  /** The statements of each format. @default without checksums, which need functions of the connection */
  readonly steps?: readonly string[];
}

const selectTable = statement(
  'upgrade_found',
  `SELECT 1 AS found FROM sqlite_schema WHERE type = 'table' AND name = 'meta'`,
);
const selectColumns = statement<{ name: string }>(
  'upgrade_columns',
  `SELECT name FROM pragma_table_info('meta')`,
);
const selectMark = statement<{ application_id: number }>(
  'upgrade_mark',
  'SELECT application_id FROM pragma_application_id',
);
const selectFormat = statement<{ format: number }>('upgrade_format', 'SELECT format FROM meta');
const selectOther = statement<{ name: string }>(
  'upgrade_other',
  // Cloudflare and its development server have tables of their own in each database: `_cf_KV`, `__miniflare_do_name`.
  `SELECT name FROM sqlite_schema WHERE type = 'table' AND ($1 = 1 OR substr(name, 1, 1) <> '_') LIMIT 1`,
);
const selectSums = statement(
  'upgrade_sums',
  `SELECT 1 AS found FROM sqlite_schema WHERE type = 'trigger' AND name = 'sessions_sum_added'`,
);
const createMeta = statement(
  'upgrade_create',
  'CREATE TABLE meta(format INTEGER NOT NULL, id TEXT NOT NULL, sealed TEXT)',
);
const insertMeta = statement('upgrade_meta', 'INSERT INTO meta VALUES(0, $1, NULL)');
const updateFormat = statement('upgrade_done', 'UPDATE meta SET format = $1');

/** Creates the tables of a store in a SQLite database, or brings them to the newest format, one step after the other. */
export function* upgradeSqlite({
  path = '',
  newId = createIds(systemClock),
  hasHeader = true,
  withSums = false,
  steps = stepsWithoutSums,
}: UpgradeOptions = {}): Plan<void> {
  const format = yield* formatOf(hasHeader);
  if (format === undefined) {
    const other = yield* first(selectOther, hasHeader ? 1 : 0);
    if (other !== undefined) throw notOurs(path, other.name);
    yield* run(createMeta);
    yield* run(insertMeta, newId());
  }
  const from = format ?? 0;
  if (from > steps.length) throw tooNew(path, from, steps.length);
  yield* checkSums(path, from, withSums);
  if (from === steps.length) return;
  for (const step of steps.slice(from)) {
    for (const text of statementsOf(step)) {
      if (hasHeader || !text.startsWith('PRAGMA')) yield* run(statement('upgrade_step', text));
    }
  }
  yield* run(updateFormat, steps.length);
}

/** The format of the tables; `undefined` when there are none of ours. */
export function* formatOf(hasHeader = true): Plan<number | undefined> {
  const known = yield* first(selectTable);
  // Another program may have a table of that name.
  const columns = (yield* all(selectColumns)).map(({ name }) => name);
  if (known === undefined || columns.join() !== 'format,id,sealed') return undefined;
  if (hasHeader) {
    const mark = (yield* first(selectMark))?.application_id;
    if (mark !== 0 && mark !== applicationId) return undefined;
  }
  return (yield* first(selectFormat))?.format;
}

/** Refuses tables whose checksums are made by functions that the connection does not have, or that lack those that it would compare. */
export function* checkSums(path: string, format: number, expected: boolean): Plan<void> {
  if (format < firstSumsFormat) return;
  const found = (yield* first(selectSums)) !== undefined;
  if (found !== expected) throw ofOtherStore(path, found);
}

/** The statements of a step: a trigger ends with END. */
function statementsOf(step: string): readonly string[] {
  const found: string[] = [];
  let text = '';
  for (const line of step.replace(/--.*$/gm, '').split('\n')) {
    text += `${line}\n`;
    const end = /CREATE TRIGGER/.test(text) ? /END;\s*$/ : /;\s*$/;
    if (!end.test(line)) continue;
    found.push(text.trim());
    text = '';
  }
  return text.trim() === '' ? found : [...found, text.trim()];
}

function notOurs(path: string, table: string): WaymarkError {
  return storeFault(
    'FAILED_PRECONDITION',
    `The database "${path}" is of another program: it has a table "${table}". Give the store a file of its own.`,
  );
}

function ofOtherStore(path: string, hasSums: boolean): WaymarkError {
  const made = hasSums
    ? 'was made by `sqliteStore`, whose checksums other stores cannot write'
    : 'was made by a store without checksums, such as `libsqlStore`';
  return storeFault(
    'FAILED_PRECONDITION',
    `The database "${path}" ${made}. Open it with the store that made it, or export its sessions there and import them here.`,
  );
}

function tooNew(path: string, format: number, known: number): WaymarkError {
  return storeFault(
    'FAILED_PRECONDITION',
    `The database "${path}" has format ${format}, this version of waymark knows ${known}. Update waymark, or give another file.`,
  );
}
