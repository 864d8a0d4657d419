import type { Client } from 'pg';
import * as v from 'valibot';
import { WaymarkError } from '../../core/error.ts';
import { batch, batchLength, cutOff, head, noBackup, tables } from './backup-file.ts';
import { qualify, quoteName } from './dialect.ts';
import { createTables, newest, upgradeTables } from './migrate.ts';

/** Writes the lines of a backup into a schema. */
export class RestoreLines {
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

function parseLine(line: string): unknown {
  try {
    return JSON.parse(line);
  } catch {
    return undefined;
  }
}
