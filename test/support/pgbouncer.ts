import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { chown, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir, userInfo } from 'node:os';
import { join } from 'node:path';
import pg from 'pg';
import { eventually } from './eventually.ts';
import { freePort } from './postgres.ts';
import { serverUser } from './system-postgres.ts';

/** A pooler that a test has started. */
export interface TestPooler {
  /** A database of the server, through the pooler. */
  readonly connectionString: string;
  stop(): Promise<void>;
}

/** The program of an installed PgBouncer. */
export const pgbouncer: string | undefined = ['/usr/sbin', ...(process.env.PATH ?? '').split(':')]
  .map((folder) => join(folder, 'pgbouncer'))
  .find((program) => existsSync(program));

/**
 * Starts PgBouncer in transaction mode before a server. It takes no options from its clients, so those of the connection
 * string (the clock of a test) are set on each connection that it opens.
 */
export async function startPgBouncer(
  program: string,
  connectionString: string,
  { poolSize = 8 }: { readonly poolSize?: number } = {},
): Promise<TestPooler> {
  const folder = await mkdtemp(join(tmpdir(), 'waymark-pgbouncer-'));
  const server = new URL(connectionString);
  const searchPath = /search_path=(\S+)/.exec(server.searchParams.get('options') ?? '')?.[1];
  const port = await freePort();
  const database = [
    `host=${server.hostname} port=${server.port} dbname=postgres user=postgres password=postgres`,
    ...(searchPath === undefined ? [] : [`connect_query='SET search_path = ${searchPath}'`]),
  ];
  const config = join(folder, 'pgbouncer.ini');
  const users = join(folder, 'users.txt');
  await writeFile(users, '"postgres" "postgres"\n');
  await writeFile(
    config,
    `[databases]
postgres = ${database.join(' ')}
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = ${port}
unix_socket_dir =
auth_type = plain
auth_file = ${users}
pool_mode = transaction
max_client_conn = 1000
default_pool_size = ${poolSize}
`,
  );
  const user = serverUser();
  for (const file of [folder, config, users]) {
    if (user.uid !== undefined) await chown(file, user.uid, user.gid ?? userInfo().gid);
  }
  const pooler = spawn(program, [config], { ...user, cwd: folder, stdio: 'ignore' });
  const ended = once(pooler, 'exit');
  const url = `postgres://postgres:postgres@127.0.0.1:${port}/postgres`;
  await eventually(() => answers(url), 'PgBouncer to answer');
  return {
    connectionString: url,
    async stop() {
      pooler.kill('SIGTERM');
      await ended;
      await rm(folder, { recursive: true, force: true });
    },
  };
}

async function answers(connectionString: string): Promise<boolean> {
  const client = new pg.Client({ connectionString });
  client.on('error', () => {});
  try {
    await client.connect();
    await client.query('SELECT 1');
    return true;
  } catch {
    return false;
  } finally {
    await client.end().catch(() => {});
  }
}
