import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll } from 'vitest';
import { bundleChild } from '../support/bundle-child.ts';
import { endProcesses, startProcess, type TestProcess } from '../support/child-process.ts';
import { startPostgres, type TestPostgres } from '../support/postgres.ts';
import { type PostgresClock, postgresClock } from '../support/postgres-clock.ts';
import { sharedClock } from '../support/shared-clock.ts';

export type Kind = 'sqlite' | 'postgres';

/** A server process of the tests. */
interface Server {
  readonly url: string;
  readonly name: string;
  readonly child: TestProcess;
}

interface KillableServers {
  /** A folder for files of the tests. */
  folder(): string;
  start(kind: Kind): Promise<Server>;
  /** Kills a server, and lets its claims expire. `before` runs between the two. */
  kill(server: Server, before: () => Promise<void>): Promise<void>;
}

/** Servers that share a store of either kind, for a file of tests. */
export function killableServers(): KillableServers {
  let folder: string;
  let postgres: TestPostgres;
  let clock: PostgresClock;
  let servers = 0;
  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'waymark-kill-'));
    postgres = await startPostgres();
    clock = await postgresClock(postgres.connectionString);
  });
  afterEach(endProcesses);
  afterAll(async () => {
    await clock.close();
    await postgres.stop();
    await rm(folder, { recursive: true, force: true });
  });
  return {
    folder: () => folder,
    async start(kind) {
      const name = `server-${++servers}`;
      const named = `${clock.connectionString}&application_name=${name}`;
      const place = kind === 'postgres' ? named : join(folder, 'db');
      const script = bundleChild(new URL('../server/child.ts', import.meta.url));
      const child = startProcess([script, kind, place, join(folder, 'clock')]);
      const port = await child.take((line) => /^port (\d+)$/.exec(line)?.[1], 'port');
      return { url: `http://127.0.0.1:${port}`, name, child };
    },
    async kill({ child, name }, before) {
      await child.end();
      await before();
      await clock.settled(name);
      await clock.advance(120_000);
      sharedClock(join(folder, 'clock')).advance(120_000);
    },
  };
}
