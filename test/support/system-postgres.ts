import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readdirSync } from 'node:fs';
import { chown, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir, userInfo } from 'node:os';
import { join } from 'node:path';
import pg from 'pg';
import { eventually } from './eventually.ts';
import { freePort } from './postgres.ts';

const programs = ['initdb', 'postgres', 'pg_dump', 'pg_restore'];

/** The folder with the programs of a Postgres that is installed here, server and tools of one version; the newest. */
export const systemPostgres: string | undefined = [
  ...debianFolders(),
  ...(process.env.PATH ?? '').split(':'),
].find((folder) => programs.every((program) => existsSync(join(folder, program))));

function debianFolders(): readonly string[] {
  const root = '/usr/lib/postgresql';
  if (!existsSync(root)) return [];
  const versions = readdirSync(root).toSorted((a, b) => Number(b) - Number(a));
  return versions.map((version) => join(root, version, 'bin'));
}

/** Starts a server of the installed Postgres on a free port, in a folder that goes with it. */
export async function startSystemPostgres(
  programsFolder: string,
): Promise<{ readonly url: (database: string) => string; stop(): Promise<void> }> {
  const data = await mkdtemp(join(tmpdir(), 'waymark-postgres-'));
  const user = serverUser();
  if (user.uid !== undefined) await chown(data, user.uid, user.gid);
  const options = { ...user, cwd: data };
  const init = ['-D', data, '-U', 'postgres', '-A', 'trust', '-E', 'UTF8', '--no-sync'];
  execFileSync(join(programsFolder, 'initdb'), init, { ...options, stdio: 'ignore' });
  const port = await freePort();
  const settings = ['listen_addresses=127.0.0.1', 'unix_socket_directories=', 'fsync=off'];
  const server = spawn(
    join(programsFolder, 'postgres'),
    ['-D', data, '-p', `${port}`, ...settings.flatMap((setting) => ['-c', setting])],
    { ...options, stdio: 'ignore' },
  );
  const url = (database: string): string => `postgres://postgres@127.0.0.1:${port}/${database}`;
  await eventually(async () => {
    const client = new pg.Client({ connectionString: url('postgres') });
    await client.connect();
    await client.end();
  }, 'the installed Postgres to start');
  return {
    url,
    async stop() {
      server.kill('SIGINT');
      if (server.exitCode === null) await once(server, 'exit');
      await rm(data, { recursive: true, force: true });
    },
  };
}

// Postgres refuses to run as root.
export function serverUser():
  | { readonly uid?: number; readonly gid: number }
  | { readonly uid?: never } {
  if (userInfo().uid !== 0) return {};
  const id = (flag: string): number =>
    Number(execFileSync('id', [flag, 'postgres'], { encoding: 'utf8' }));
  return { uid: id('-u'), gid: id('-g') };
}
