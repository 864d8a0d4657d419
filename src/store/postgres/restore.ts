import { createReadStream } from 'node:fs';
import { StringDecoder } from 'node:string_decoder';
import { createGunzip } from 'node:zlib';
import type { Client } from 'pg';
import * as v from 'valibot';
import { codeOf, failedPrecondition, invalid, WaymarkError } from '../../core/error.ts';
import { type BackupReport, notThere } from '../backup.ts';
import { code } from '../sql/values/codes.ts';
import { lockKey, qualify, quoteName } from './dialect.ts';
import { toStoreError } from './errors.ts';
import { createTables, formatOf, newest, upgradeTables } from './migrate.ts';
import { checkSchema, loadPg } from './postgres-store.ts';

// Earlier versions wrote a Postgres store to a file: compressed lines of JSON, which name a table and then have its rows. Today `pg_dump`
// does that, and this restores the files that exist.

/** The location of a store for a restore. */
interface PostgresBackupOptions {
  /** The connection string of the database. */
  readonly connectionString: string;
  /** The schema of the store's tables. @default 'waymark' */
  readonly schema?: string;
}

/** The first line. */
const head = v.object({
  waymark: v.literal('backup'),
  version: v.literal(1),
  store: v.literal('postgres'),
  /** The format of the tables. */
  format: v.number(),
  createdAt: v.string(),
});

/** The tables of a backup. `meta` comes first: it says what the others look like. */
const tables =
  /^(meta|sessions|branches|views|view_refs|messages|blobs|blob_parts|snapshots|runs|journal|trash|dead_runs|requests|spend|reservations)$/;

/** Rows that are written at a time; large ones make a batch shorter. */
const batch = 500;
const batchLength = 4_000_000;

/**
 * Restores a backup that an earlier version wrote into a schema that has no store yet, completely or, after an error, not at all. Unfinished
 * background runs continue when an app opens it.
 */
export async function restorePostgres(
  source: string,
  { connectionString, schema = 'waymark' }: PostgresBackupOptions,
): Promise<BackupReport> {
  checkSchema(schema);
  const { default: pg } = await loadPg();
  const client = new pg.Client({ connectionString });
  client.on('error', () => {});
  try {
    await client.connect();
    await client.query('BEGIN');
    await client.query(`SELECT pg_advisory_xact_lock(${lockKey(schema, 'migrate')})`);
    if ((await formatOf(client, schema)) !== undefined) throw taken(schema);
    await restoreLines(client, schema, source).catch((error: unknown) => {
      throw toBackupError(error, source);
    });
    // Their workers, and the jobs of a queue, are not on this store: any worker may take them over at once.
    const free = `UPDATE @runs SET ttl = 0, worker = '' WHERE mode <> ${code.attached}`;
    await client.query(qualify(free, schema));
    const counted = await client.query(qualify('SELECT COUNT(*)::int AS n FROM @sessions', schema));
    await client.query('COMMIT');
    return { sessions: counted.rows[0]?.n ?? 0 };
  } catch (error) {
    throw toStoreError(error);
  } finally {
    // An open transaction ends with its connection.
    await client.end().catch(() => {});
  }
}

async function restoreLines(client: Client, schema: string, source: string): Promise<void> {
  let format: number | undefined;
  let table: string | undefined;
  let rows: string[] = [];
  let length = 0;
  let count = 0;
  let isWhole = false;
  const write = async (): Promise<void> => {
    if (rows.length === 0) return;
    if (table === undefined) throw noBackup(source);
    const insert = `INSERT INTO @${table} OVERRIDING SYSTEM VALUE
      SELECT * FROM json_populate_recordset(NULL::@${table}, $1::json)`;
    await client.query(qualify(insert, schema), [`[${rows.join(',')}]`]);
    rows = [];
    length = 0;
  };
  for await (const line of linesOf(source)) {
    if (format === undefined) {
      format = readFormat(line, source);
      await createTables(client, schema, format);
    } else if (line.startsWith('{"table":')) {
      // A row has neither this name nor the next one, and they stand at the beginning.
      await write();
      table = (parseLine(line) as { readonly table: string }).table;
      if (!tables.test(table)) throw noBackup(source);
    } else if (line.startsWith('{"end":')) {
      await write();
      const { end } = parseLine(line) as { readonly end: { readonly rows: number } };
      isWhole = end.rows === count;
    } else {
      rows.push(line);
      length += line.length;
      count++;
      if (rows.length >= batch || length >= batchLength) await write();
    }
  }
  if (format === undefined || !isWhole) throw cutOff(source);
  await continueNumbers(client, schema);
  // Tables of an older format lack the functions that the versions of their time had.
  await upgradeTables(client, schema, format);
}

function readFormat(line: string, source: string): number {
  const found = v.safeParse(head, parseLine(line));
  if (!found.success) throw noBackup(source);
  const { format } = found.output;
  if (format <= newest) return format;
  throw failedPrecondition(
    `The backup "${source}" has format ${format}, this version of waymark knows ${newest}. Update waymark.`,
  );
}

/** Gives new rows numbers that no row has had. */
async function continueNumbers(client: Client, schema: string): Promise<void> {
  const { rows } = await client.query<{ table_name: string; column_name: string }>(
    `SELECT table_name, column_name FROM information_schema.columns
     WHERE table_schema = $1 AND is_identity = 'YES'`,
    [schema],
  );
  for (const { table_name: table, column_name: column } of rows) {
    const name = `${quoteName(schema)}.${quoteName(table)}`;
    await client.query(
      `SELECT setval(pg_get_serial_sequence($1, $2), COALESCE(MAX(${quoteName(column)}), 0) + 1, false)
       FROM ${name}`,
      [name, column],
    );
  }
}

// Not by `readline`, which splits at U+2028 as well, and JSON may contain that.
async function* linesOf(source: string): AsyncGenerator<string, void, undefined> {
  const file = createReadStream(source);
  const text = file.pipe(createGunzip());
  file.on('error', (error) => text.destroy(error));
  try {
    const decoder = new StringDecoder('utf8');
    let rest: string[] = [];
    for await (const chunk of text as AsyncIterable<Buffer>) {
      const [end = '', ...lines] = decoder.write(chunk).split('\n');
      rest.push(end);
      for (const line of lines) {
        yield rest.join('');
        rest = [line];
      }
    }
    const last = rest.join('');
    if (last !== '') yield last;
  } finally {
    file.destroy();
    text.destroy();
  }
}

function parseLine(line: string): unknown {
  try {
    return JSON.parse(line);
  } catch {
    return undefined;
  }
}

function toBackupError(error: unknown, source: string): unknown {
  const reason = codeOf(error);
  if (reason === 'ENOENT') return notThere('backup', source, error);
  // Errors of the compression: no such file, or not to its end.
  if (reason === 'Z_DATA_ERROR') return noBackup(source, error);
  return reason === 'Z_BUF_ERROR' ? cutOff(source, error) : error;
}

function noBackup(path: string, cause?: unknown): WaymarkError {
  return invalid(
    `"${path}" is not a backup of a Postgres store that an earlier version of waymark wrote. Restore a dump of pg_dump with pg_restore.`,
    { cause },
  );
}

function cutOff(path: string, cause?: unknown): WaymarkError {
  return new WaymarkError(
    'DATA_LOSS',
    `The backup "${path}" is not complete: its end is missing. Nothing was restored.`,
    { cause },
  );
}

function taken(schema: string): WaymarkError {
  return new WaymarkError(
    'ALREADY_EXISTS',
    `The schema "${schema}" has a store already, which is not overwritten. Name another schema, or drop this one first.`,
  );
}
