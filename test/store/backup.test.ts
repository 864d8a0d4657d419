import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { postgresStore } from '../../src/store/postgres/index.ts';
import { backupSqlite, restoreSqlite, sqliteStore } from '../../src/store/sqlite/index.ts';
import { command } from '../cli/support/command.ts';
import { startPostgres, type TestPostgres } from '../support/postgres.ts';
import { expectedOf } from '../support/store-fixtures.ts';
import { lifeApp, lifeScopes } from '../support/store-life.ts';
import { readout } from '../support/store-readout.ts';
import type { BackupStore } from './backup-child.ts';
import { expectContinues, startTurns } from './backup-turns.ts';

let folder = '';
let postgres: TestPostgres;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'waymark-backup-'));
  postgres = await startPostgres();
});
afterAll(async () => {
  await postgres.stop();
  await rm(folder, { recursive: true, force: true });
});

const run = (...args: string[]) => command(folder, args);

const inFolder = (kind: 'sqlite' | 'file', name: string): BackupStore => ({
  kind,
  path: join(folder, `${kind}-${name}`),
});

test.each(['sqlite', 'file'] as const)(
  'S225: a %s store is backed up while turns run, and restored with all that had ended before',
  async (kind) => {
    const turns = await startTurns(inFolder(kind, 'live'));
    await expect.poll(turns.all).toBeGreaterThan(20);
    const before = new Map(turns.acknowledged);
    const target = `${kind}.backup`;
    const live = `${kind}:${join(folder, `${kind}-live`)}`;
    const done = await run('backup', live, target);
    expect(done).toMatchObject({ code: 0, stderr: '' });
    expect(done.stdout).toMatch(/^Backed up \d+ sessions to /);
    const after = turns.all();
    // The turns went on.
    await expect.poll(turns.all).toBeGreaterThan(after);
    await turns.stop();

    const again = `${kind}:${join(folder, `${kind}-restored`)}`;
    const restored = await run('restore-backup', target, again);
    expect(restored).toMatchObject({ code: 0, stdout: expect.stringMatching(/^Restored \d+ s/) });
    await expectContinues(inFolder(kind, 'restored'), before, turns.sleeper());

    // Nothing is overwritten.
    const twice = await run('restore-backup', target, again);
    expect(twice).toMatchObject({ code: 4, stderr: expect.stringContaining('overwritten') });
    const over = await run('backup', live, target);
    expect(over).toMatchObject({ code: 4, stderr: expect.stringContaining('overwritten') });
  },
);

const oldBackup = (version: string): string =>
  new URL(`../fixtures/backups/postgres-${version}.gz`, import.meta.url).pathname;

test.each(['0.1.0', 'b61e1ec'])(
  'S225: a backup of a Postgres store in the format of %s, which an earlier version wrote, is restored',
  async (version) => {
    const schema = `from_${version.replaceAll('.', '_')}`;
    const where = [postgres.connectionString, '--schema', schema];
    const restored = await run('restore-backup', oldBackup(version), ...where);
    expect(restored).toMatchObject({ code: 0, stdout: expect.stringMatching(/^Restored \d+ s/) });
    // The events of runs that ended long ago are kept all the same.
    const eventsTtl = 10 ** 14;
    const { connectionString } = postgres;
    const open = () => postgresStore({ connectionString, schema, eventsTtl });
    const store = open();
    // No worker holds a restored run.
    const expected = JSON.stringify(expectedOf(version, 'postgres'));
    expect(await readout(store, lifeScopes)).toMatchObject(
      JSON.parse(expected.replaceAll('"worker":"gone"', '"worker":""')),
    );
    expect(await store.maintenance?.verify()).toEqual([]);
    // Any worker may take over its runs at once.
    const taken = await store.runs?.takeOver({
      agents: ['chat'],
      worker: 'w',
      ttl: 60_000,
      limit: 10,
    });
    expect(taken).not.toEqual([]);
    await store.close?.();
    const { app, chat } = lifeApp(open());
    expect(await chat.runText('I like water', { sessionId: 'main' })).toMatchObject({
      finishReason: 'stop',
    });
    await app.close();
    const twice = await run('restore-backup', oldBackup(version), ...where);
    expect(twice).toMatchObject({ code: 4, stderr: expect.stringContaining('overwritten') });
  },
);

test('S225: the backup of a Postgres store names pg_dump', async () => {
  const done = await run('backup', postgres.connectionString, 'x', '--schema', 'mine');
  expect(done).toMatchObject({ code: 2, stderr: expect.stringContaining('--schema=mine') });
});

test('S225: what is no store, or no backup, is refused and leaves nothing', async () => {
  writeFileSync(join(folder, 'text'), 'no backup');
  const schema = ['--schema', 'nothing'];
  const url = postgres.connectionString;
  const cases: readonly (readonly [number, readonly string[]])[] = [
    [3, ['backup', 'sqlite:nowhere.db', 'x']],
    [3, ['backup', 'file:nowhere', 'x']],
    [2, ['backup', url, 'x', ...schema]],
    [3, ['restore-backup', 'nowhere', 'sqlite:x']],
    [3, ['restore-backup', 'nowhere', 'file:x']],
    [3, ['restore-backup', 'nowhere', url, ...schema]],
    [1, ['restore-backup', 'text', 'sqlite:x']],
    [3, ['restore-backup', 'text', 'file:x']],
    [2, ['restore-backup', 'text', url, ...schema]],
    [2, ['backup', 'nonsense', 'x']],
    [2, ['backup', 'sqlite:a.db']],
  ];
  for (const [code, args] of cases) {
    const done = await run(...args);
    expect([args, done.code, done.stderr]).toEqual([args, code, expect.stringMatching(/^✗ /)]);
    expect(existsSync(join(folder, 'x'))).toBe(false);
    expect(existsSync(join(folder, 'x.tmp'))).toBe(false);
  }
});

test('S225: a backup of Postgres that is cut off restores nothing', async () => {
  const whole = readFileSync(oldBackup('b61e1ec'));
  writeFileSync(join(folder, 'half'), whole.subarray(0, whole.length / 2));
  const where = [postgres.connectionString, '--schema', 'half'];
  const half = await run('restore-backup', 'half', ...where);
  expect(half).toMatchObject({ code: 1, stderr: expect.stringContaining('not complete') });
  expect(await run('restore-backup', oldBackup('b61e1ec'), ...where)).toMatchObject({ code: 0 });
});

test('S225: encrypted content stays encrypted in a backup', async () => {
  const encryption = { keys: [new Uint8Array(32).fill(7)] } as const;
  const path = join(folder, 'sealed.db');
  const store = sqliteStore(path, { encryption });
  const id = '019b2f6e-0000-7000-8000-000000000001';
  const state = { messages: [{ role: 'user' as const, content: [{ text: 'a secret' }] }] };
  await store.saveSnapshot({ agent: 'a' }, id, () => ({
    snapshotId: id,
    sessionId: 's',
    index: 0,
    turnIndex: 0,
    event: 'turnEnd',
    status: 'succeeded',
    createdAt: '',
    updatedAt: '',
    stateHash: '',
    orphaned: false,
    state,
  }));
  await backupSqlite(path, join(folder, 'sealed.backup'));
  await store.close?.();
  expect(readFileSync(join(folder, 'sealed.backup')).includes('a secret')).toBe(false);
  await restoreSqlite(join(folder, 'sealed.backup'), join(folder, 'unsealed.db'));
  const again = sqliteStore(join(folder, 'unsealed.db'), { encryption });
  expect(await again.getSnapshot({ agent: 'a' }, { snapshotId: id })).toMatchObject({
    state: { messages: [{ content: [{ text: 'a secret' }] }] },
  });
  await again.close?.();
});
