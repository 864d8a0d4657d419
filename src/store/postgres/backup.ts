import { createReadStream, createWriteStream } from 'node:fs';
import { open, rename, rm } from 'node:fs/promises';
import { pipeline } from 'node:stream/promises';
import { StringDecoder } from 'node:string_decoder';
import { createGunzip, createGzip } from 'node:zlib';
import type { Client } from 'pg';
import * as v from 'valibot';
import { WaymarkError } from '../../core/error.ts';
import { systemClock } from '../../core/time/clock.ts';
import { type BackupReport, checkFree, notThere } from '../backup.ts';
import { code } from '../sql/values/codes.ts';
import { lockKey, qualify, quoteName } from './dialect.ts';
import { toStoreError } from './errors.ts';
import { createTables, formatOf, newest, upgradeTables } from './migrate.ts';
import { checkSchema, loadPg } from './postgres-store.ts';

/** The location of a store for a backup or restore. */
export interface PostgresBackupOptions {
  readonly connectionString: string;
  /** @default 'waymark' */
  readonly schema?: string;
}

// All but `meta`, which comes first: it says what the others look like.
const tables = [
  'sessions',
  'branches',
  'views',
  'view_refs',
  'messages',
  'blobs',
  'blob_parts',
  'snapshots',
  'runs',
  'journal',
  'trash',
  'dead_runs',
  'requests',
] as const;

const head = v.object({
  waymark: v.literal('backup'),
  version: v.literal(1),
  store: v.literal('postgres'),
  /** Of the tables. */
  format: v.number(),
  createdAt: v.string(),
});

/** Rows that are read, and written, at a time; large ones make a batch shorter. */
const batch = 500;
const batchLength = 4_000_000;

/**
 * Copies a store to a compressed file while it is in use. All of it is read in one transaction, which sees the store as it was
 * when the backup began. Rows are copied unchanged: encrypted content stays encrypted.
 */
export async function backupPostgres(
  { connectionString, schema = 'waymark' }: PostgresBackupOptions,
  target: string,
): Promise<BackupReport> {
  checkSchema(schema);
  await checkFree(target);
  const unfinished = `${target}.tmp`;
  try {
    return await connected(connectionString, async (client) => {
      await client.query('BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY');
      const format = await formatOf(client, schema);
      if (format === undefined) throw notThere('Postgres store', `schema "${schema}"`);
      const lines = linesOf(client, schema, format);
      await pipeline(lines, createGzip(), createWriteStream(unfinished, { flags: 'wx' }));
      const counted = await client.query(
        qualify('SELECT COUNT(*)::int AS n FROM @sessions', schema),
      );
      await sync(unfinished);
      await rename(unfinished, target);
      return { sessions: counted.rows[0]?.n ?? 0 };
    });
  } catch (error) {
    await rm(unfinished, { force: true });
    throw error;
  }
}

async function* linesOf(
  client: Client,
  schema: string,
  format: number,
): AsyncGenerator<string, void, undefined> {
  const createdAt = new Date(systemClock.now()).toISOString();
  const first: v.InferInput<typeof head> = {
    waymark: 'backup',
    version: 1,
    store: 'postgres',
    format,
    createdAt,
  };
  yield `${JSON.stringify(first)}\n`;
  let rows = 0;
  for (const table of ['meta', ...tables]) {
    if (!(await hasTable(client, schema, table))) continue;
    yield `${JSON.stringify({ table })}\n`;
    // As text: numbers of 64 bits would not survive JavaScript.
    const select = qualify(`SELECT row_to_json(t)::text AS row FROM @${table} t`, schema);
    await client.query(`DECLARE backup NO SCROLL CURSOR FOR ${select}`);
    for (;;) {
      const found = await client.query<{ row: string }>(`FETCH ${batch} FROM backup`);
      if (found.rows.length === 0) break;
      rows += found.rows.length;
      yield found.rows.map(({ row }) => `${row}\n`).join('');
    }
    await client.query('CLOSE backup');
  }
  // Without it, the file was cut off.
  yield `${JSON.stringify({ end: { rows } })}\n`;
}

/**
 * Restores a backup into a schema that has no store yet, completely or, after an error, not at all. Unfinished
 * background runs continue when an app opens it.
 */
export async function restorePostgres(
  source: string,
  { connectionString, schema = 'waymark' }: PostgresBackupOptions,
): Promise<BackupReport> {
  checkSchema(schema);
  return await connected(connectionString, async (client) => {
    await client.query('BEGIN');
    await client.query(`SELECT pg_advisory_xact_lock(${lockKey(schema, 'migrate')})`);
    if ((await formatOf(client, schema)) !== undefined) throw taken(schema);
    await readBackup(source, new Restore(client, schema, source));
    // Their workers, and the jobs of a queue, are not on this store: any worker may take them over at once.
    const free = `UPDATE @runs SET ttl = 0, worker = '' WHERE mode <> ${code.attached}`;
    await client.query(qualify(free, schema));
    const counted = await client.query(qualify('SELECT COUNT(*)::int AS n FROM @sessions', schema));
    await client.query('COMMIT');
    return { sessions: counted.rows[0]?.n ?? 0 };
  });
}

/** Writes the lines of a backup into a schema. */
class Restore {
  readonly #client: Client;
  readonly #schema: string;
  readonly #source: string;
  #table: string | undefined;
  #rows: string[] = [];
  #length = 0;
  #count = 0;
  #isWhole = false;
  #format = newest;

  constructor(client: Client, schema: string, source: string) {
    this.#client = client;
    this.#schema = schema;
    this.#source = source;
  }

  async begin(line: string): Promise<void> {
    const found = v.safeParse(head, parseLine(line));
    if (!found.success) throw noBackup(this.#source);
    const { format } = found.output;
    if (format > newest) {
      throw new WaymarkError(
        'FAILED_PRECONDITION',
        `The backup "${this.#source}" has format ${format}, this version of waymark knows ${newest}. Update waymark.`,
      );
    }
    this.#format = format;
    await createTables(this.#client, this.#schema, format);
  }

  async take(line: string): Promise<void> {
    // A row has neither of these names, and they stand at the beginning.
    if (line.startsWith('{"table":')) return await this.#enter(line);
    if (line.startsWith('{"end":')) return await this.#finish(line);
    this.#rows.push(line);
    this.#length += line.length;
    this.#count++;
    if (this.#rows.length >= batch || this.#length >= batchLength) await this.#write();
  }

  checkWhole(): void {
    if (!this.#isWhole) throw cutOff(this.#source);
  }

  async #enter(line: string): Promise<void> {
    await this.#write();
    const { table } = parseLine(line) as { readonly table: string };
    if (table !== 'meta' && !(tables as readonly string[]).includes(table)) {
      throw noBackup(this.#source);
    }
    this.#table = table;
  }

  async #finish(line: string): Promise<void> {
    await this.#write();
    const { end } = parseLine(line) as { readonly end: { readonly rows: number } };
    if (end.rows !== this.#count) throw cutOff(this.#source);
    await this.#continueNumbers();
    // Tables of an older format lack the functions that the versions of their time had.
    await upgradeTables(this.#client, this.#schema, this.#format);
    this.#isWhole = true;
  }

  async #write(): Promise<void> {
    const rows = this.#rows;
    if (rows.length === 0) return;
    const table = this.#table;
    if (table === undefined) throw noBackup(this.#source);
    this.#rows = [];
    this.#length = 0;
    const insert = `INSERT INTO @${table} OVERRIDING SYSTEM VALUE
      SELECT * FROM json_populate_recordset(NULL::@${table}, $1::json)`;
    await this.#client.query(qualify(insert, this.#schema), [`[${rows.join(',')}]`]);
  }

  /** New rows get numbers that no row has had. */
  async #continueNumbers(): Promise<void> {
    const { rows } = await this.#client.query<{ table_name: string; column_name: string }>(
      `SELECT table_name, column_name FROM information_schema.columns
       WHERE table_schema = $1 AND is_identity = 'YES'`,
      [this.#schema],
    );
    for (const { table_name: table, column_name: column } of rows) {
      const name = `${quoteName(this.#schema)}.${quoteName(table)}`;
      await this.#client.query(
        `SELECT setval(pg_get_serial_sequence($1, $2), COALESCE(MAX(${quoteName(column)}), 0) + 1, false)
         FROM ${name}`,
        [name, column],
      );
    }
  }
}

async function readBackup(source: string, restore: Restore): Promise<void> {
  const file = createReadStream(source);
  const text = file.pipe(createGunzip());
  file.on('error', (error) => text.destroy(error));
  try {
    let isFirst = true;
    for await (const line of splitLines(text)) {
      if (isFirst) await restore.begin(line);
      else await restore.take(line);
      isFirst = false;
    }
    restore.checkWhole();
  } catch (error) {
    throw toBackupError(error, source);
  } finally {
    file.destroy();
    text.destroy();
  }
}

// Not by `readline`, which splits at U+2028 as well, and JSON may contain that.
async function* splitLines(chunks: AsyncIterable<Buffer>): AsyncGenerator<string> {
  const decoder = new StringDecoder('utf8');
  let rest: string[] = [];
  for await (const chunk of chunks) {
    const [end = '', ...lines] = decoder.write(chunk).split('\n');
    rest.push(end);
    for (const line of lines) {
      yield rest.join('');
      rest = [line];
    }
  }
  const last = rest.join('');
  if (last !== '') yield last;
}

function toBackupError(error: unknown, source: string): unknown {
  const reason = error instanceof Error && 'code' in error ? error.code : undefined;
  if (reason === 'ENOENT') return notThere('backup', source, error);
  // Of the compression: no such file, or not to its end.
  if (reason === 'Z_DATA_ERROR') return noBackup(source, error);
  return reason === 'Z_BUF_ERROR' ? cutOff(source, error) : error;
}

async function connected<Result>(
  connectionString: string,
  work: (client: Client) => Promise<Result>,
): Promise<Result> {
  const { default: pg } = await loadPg();
  const client = new pg.Client({ connectionString });
  client.on('error', () => {});
  try {
    await client.connect();
    return await work(client);
  } catch (error) {
    throw toStoreError(error);
  } finally {
    // An open transaction ends with its connection.
    await client.end().catch(() => {});
  }
}

async function hasTable(client: Client, schema: string, table: string): Promise<boolean> {
  const { rows } = await client.query(
    `SELECT 1 FROM information_schema.tables WHERE table_schema = $1 AND table_name = $2`,
    [schema, table],
  );
  return rows.length > 0;
}

async function sync(path: string): Promise<void> {
  const file = await open(path, 'r+');
  try {
    await file.sync();
  } finally {
    await file.close();
  }
}

function parseLine(line: string): unknown {
  try {
    return JSON.parse(line);
  } catch {
    return undefined;
  }
}

function taken(schema: string): WaymarkError {
  return new WaymarkError(
    'ALREADY_EXISTS',
    `The schema "${schema}" has a store already, and nothing is overwritten. Give another schema, or drop this one first.`,
  );
}

function noBackup(path: string, cause?: unknown): WaymarkError {
  return new WaymarkError('INVALID_ARGUMENT', `"${path}" is not a backup of a Postgres store.`, {
    cause,
  });
}

function cutOff(path: string, cause?: unknown): WaymarkError {
  return new WaymarkError(
    'DATA_LOSS',
    `The backup "${path}" is not complete: its end is missing. Nothing was restored.`,
    { cause },
  );
}
