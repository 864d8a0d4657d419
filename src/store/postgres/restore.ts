import { createReadStream } from 'node:fs';
import { StringDecoder } from 'node:string_decoder';
import { createGunzip } from 'node:zlib';
import { WaymarkError } from '../../core/error.ts';
import { type BackupReport, notThere } from '../backup.ts';
import { code } from '../sql/values/codes.ts';
import { connected, cutOff, noBackup, type PostgresBackupOptions } from './backup-file.ts';
import { lockKey, qualify } from './dialect.ts';
import { formatOf } from './migrate.ts';
import { checkSchema } from './postgres-store.ts';
import { RestoreLines } from './restore-lines.ts';

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
    await readBackup(source, new RestoreLines(client, schema, source));
    // Their workers, and the jobs of a queue, are not on this store: any worker may take them over at once.
    const free = `UPDATE @runs SET ttl = 0, worker = '' WHERE mode <> ${code.attached}`;
    await client.query(qualify(free, schema));
    const counted = await client.query(qualify('SELECT COUNT(*)::int AS n FROM @sessions', schema));
    await client.query('COMMIT');
    return { sessions: counted.rows[0]?.n ?? 0 };
  });
}

async function readBackup(source: string, restore: RestoreLines): Promise<void> {
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

function taken(schema: string): WaymarkError {
  return new WaymarkError(
    'ALREADY_EXISTS',
    `The schema "${schema}" has a store already, which is not overwritten. Name another schema, or drop this one first.`,
  );
}
