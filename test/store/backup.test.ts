import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { backupSqlite, restoreSqlite, sqliteStore } from '../../src/store/sqlite/index.ts';
import { command } from '../cli/support/command.ts';
import { startPostgres, type TestPostgres } from '../support/postgres.ts';
import { type PostgresClock, postgresClock } from '../support/postgres-clock.ts';
import { type BackupStore, claimTtl } from './backup-child.ts';
import { expectContinues, startTurns } from './backup-turns.ts';

let folder = '';
let postgres: TestPostgres;
let clock: PostgresClock;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'waymark-backup-'));
  postgres = await startPostgres();
  clock = await postgresClock(postgres.connectionString);
});
afterAll(async () => {
  await clock.close();
  await postgres.stop();
  await rm(folder, { recursive: true, force: true });
});

const run = (...args: string[]) => command(folder, args);

interface Kind {
  readonly name: string;
  readonly store: () => BackupStore;
  readonly copy: () => BackupStore;
  readonly spec: (where: BackupStore) => readonly string[];
}

const schemaOf = (where: BackupStore): string[] =>
  where.kind === 'postgres' ? ['--schema', where.schema] : [];
const nameOf = (where: BackupStore): string =>
  where.kind === 'postgres' ? where.connectionString : `${where.kind}:${where.path}`;
const inFolder = (kind: 'sqlite' | 'file', name: string): BackupStore => ({
  kind,
  path: join(folder, `${kind}-${name}`),
});
const inSchema = (schema: string): BackupStore => ({
  kind: 'postgres',
  connectionString: postgres.connectionString,
  schema,
});

const kinds: readonly Kind[] = [
  ...(['sqlite', 'file'] as const).map((kind) => ({
    name: kind,
    store: () => inFolder(kind, 'live'),
    copy: () => inFolder(kind, 'restored'),
    spec: (where: BackupStore) => [nameOf(where)],
  })),
  {
    name: 'postgres',
    store: () => inSchema('live'),
    copy: () => inSchema('restored'),
    spec: (where: BackupStore) => [nameOf(where), ...schemaOf(where)],
  },
];

describe.each(kinds)('$name', ({ name, store, copy, spec }) => {
  test('S225: a store is backed up while turns run, and restored with all that had ended before', async () => {
    const turns = await startTurns(store());
    await expect.poll(turns.all).toBeGreaterThan(20);
    const before = new Map(turns.acknowledged);
    const target = `${name}.backup`;
    const [live = '', ...schema] = spec(store());
    const done = await run('backup', live, target, ...schema);
    expect(done).toMatchObject({ code: 0, stderr: '' });
    expect(done.stdout).toMatch(/^Backed up \d+ sessions to /);
    const after = turns.all();
    // The turns went on.
    await expect.poll(turns.all).toBeGreaterThan(after);
    await turns.stop();

    const [again = '', ...into] = spec(copy());
    const restored = await run('restore-backup', target, again, ...into);
    expect(restored).toMatchObject({ code: 0, stdout: expect.stringMatching(/^Restored \d+ s/) });
    // The claims of the process that was killed have expired.
    const { connectionString } = clock;
    await clock.advance(2 * claimTtl);
    const later = copy();
    const where = later.kind === 'postgres' ? { ...later, connectionString } : later;
    await expectContinues(where, before, turns.sleeper());

    // Nothing is overwritten.
    const twice = await run('restore-backup', target, again, ...into);
    expect(twice).toMatchObject({ code: 4, stderr: expect.stringContaining('overwritten') });
    const over = await run('backup', live, target, ...schema);
    expect(over).toMatchObject({ code: 4, stderr: expect.stringContaining('overwritten') });
  });
});

test('S225: what is no store, or no backup, is refused and leaves nothing', async () => {
  writeFileSync(join(folder, 'text'), 'no backup');
  const schema = ['--schema', 'nothing'];
  const url = postgres.connectionString;
  const cases: readonly (readonly [number, readonly string[]])[] = [
    [3, ['backup', 'sqlite:nowhere.db', 'x']],
    [3, ['backup', 'file:nowhere', 'x']],
    [3, ['backup', url, 'x', ...schema]],
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
  const whole = readFileSync(join(folder, 'postgres.backup'));
  writeFileSync(join(folder, 'half'), whole.subarray(0, whole.length / 2));
  const half = await run('restore-backup', 'half', postgres.connectionString, '--schema', 'half');
  expect(half).toMatchObject({ code: 1, stderr: expect.stringContaining('not complete') });
  const whole_ = await run(
    'restore-backup',
    'postgres.backup',
    postgres.connectionString,
    '--schema',
    'half',
  );
  expect(whole_).toMatchObject({ code: 0 });
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
