import { execFile } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import pg from 'pg';
import { expect, test } from 'vitest';
import { postgresClock } from '../support/postgres-clock.ts';
import { startSystemPostgres, systemPostgres } from '../support/system-postgres.ts';
import { type BackupStore, claimTtl } from './backup-child.ts';
import { expectContinues, startTurns } from './backup-turns.ts';

if (systemPostgres === undefined) {
  console.warn(
    'The test with pg_dump is left out: no Postgres with server and tools is installed.',
  );
}

test.skipIf(systemPostgres === undefined)(
  'S225: a dump of Postgres that was made while turns ran has all that had ended before',
  async () => {
    const programs = systemPostgres ?? '';
    const folder = await mkdtemp(join(tmpdir(), 'waymark-pg-dump-'));
    const { url, stop } = await startSystemPostgres(programs);
    const run = (program: string, ...args: string[]) =>
      promisify(execFile)(join(programs, program), args);
    const inDatabase = (database: string): BackupStore => ({
      kind: 'postgres',
      connectionString: url(database),
      schema: 'waymark',
      queue: true,
    });
    try {
      const turns = await startTurns(inDatabase('postgres'));
      await expect.poll(turns.all).toBeGreaterThan(20);
      const before = new Map(turns.acknowledged);
      const dump = join(folder, 'nightly.dump');
      // As docs/stores.md says.
      const schemas = ['--schema=waymark', '--schema=waymark_queue'];
      await run('pg_dump', '--format=custom', ...schemas, `--file=${dump}`, url('postgres'));
      const after = turns.all();
      // The turns went on.
      await expect.poll(turns.all).toBeGreaterThan(after);
      await turns.stop();
      const client = new pg.Client({ connectionString: url('postgres') });
      await client.connect();
      await client.query('CREATE DATABASE restored');
      await client.end();
      await run('pg_restore', '--exit-on-error', `--dbname=${url('restored')}`, dump);
      // The claims of the process that was killed have expired.
      const clock = await postgresClock(url('restored'));
      await clock.drive('waymark_queue');
      await clock.advance(2 * claimTtl);
      const where = { ...inDatabase('restored'), connectionString: clock.connectionString };
      await expectContinues(where, before, turns.sleeper());
      await clock.close();
    } finally {
      await stop();
      await rm(folder, { recursive: true, force: true });
    }
  },
);
