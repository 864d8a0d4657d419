import type { Client } from 'pg';
import * as v from 'valibot';
import { WaymarkError } from '../../core/error.ts';
import { toStoreError } from './errors.ts';
import { loadPg } from './postgres-store.ts';

/** The location of a store for a backup or restore. */
export interface PostgresBackupOptions {
  /** The connection string of the database. */
  readonly connectionString: string;
  /** The schema of the store's tables. @default 'waymark' */
  readonly schema?: string;
}

/** All but `meta`, which comes first: it says what the others look like. */
export const tables = [
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
  'spend',
  'reservations',
] as const;

/** The first line. */
export const head = v.object({
  waymark: v.literal('backup'),
  version: v.literal(1),
  store: v.literal('postgres'),
  /** Of the tables. */
  format: v.number(),
  createdAt: v.string(),
});

/** Rows that are read, and written, at a time; large ones make a batch shorter. */
export const batch = 500;
/** The same for rows with the data of artifacts, which may be a megabyte each. */
export const largeBatch = 16;
export const batchLength = 4_000_000;

/** Opens a connection for the work, and closes it afterwards. */
export async function connected<Result>(
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

/** A file that is something else. */
export function noBackup(path: string, cause?: unknown): WaymarkError {
  return new WaymarkError('INVALID_ARGUMENT', `"${path}" is not a backup of a Postgres store.`, {
    cause,
  });
}

/** A file without its end. */
export function cutOff(path: string, cause?: unknown): WaymarkError {
  return new WaymarkError(
    'DATA_LOSS',
    `The backup "${path}" is not complete: its end is missing. Nothing was restored.`,
    { cause },
  );
}
