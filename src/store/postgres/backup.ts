import { createWriteStream } from 'node:fs';
import { open, rename, rm } from 'node:fs/promises';
import { pipeline } from 'node:stream/promises';
import { createGzip } from 'node:zlib';
import type { Client } from 'pg';
import type * as v from 'valibot';
import { systemClock } from '../../core/time/clock.ts';
import { type BackupReport, checkFree, notThere } from '../backup.ts';
import {
  batch,
  connected,
  type head,
  largeBatch,
  type PostgresBackupOptions,
  tables,
} from './backup-file.ts';
import { qualify } from './dialect.ts';
import { formatOf } from './migrate.ts';
import { checkSchema } from './postgres-store.ts';

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
      const found = await client.query<{ row: string }>(
        `FETCH ${table === 'blobs' ? largeBatch : batch} FROM backup`,
      );
      if (found.rows.length === 0) break;
      rows += found.rows.length;
      yield found.rows.map(({ row }) => `${row}\n`).join('');
    }
    await client.query('CLOSE backup');
  }
  // Without it, the file was cut off.
  yield `${JSON.stringify({ end: { rows } })}\n`;
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
