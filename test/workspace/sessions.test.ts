import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { memoryStore, type Store } from 'waymark';
import { fileStore } from 'waymark/file';
import { postgresStore } from 'waymark/postgres';
import { replay } from 'waymark/replay';
import { sqliteStore } from 'waymark/sqlite';
import { directory } from 'waymark/workspace';
import { rerun } from '../../src/replay/rerun.ts';
import { type CleanSchemas, cleanSchemas } from '../support/clean-schemas.ts';
import { startPostgres, type TestPostgres } from '../support/postgres.ts';
import { act, hashFolder, openApp, shell, testFolder } from './support.ts';

let postgres: TestPostgres;
let schemas: CleanSchemas;
beforeAll(async () => {
  postgres = await startPostgres();
  schemas = cleanSchemas(postgres.connectionString);
});
afterAll(async () => {
  await schemas.close();
  await postgres.stop();
});

const key = new Uint8Array(32).fill(7);
const stores: Readonly<Record<string, (path: string) => Store>> = {
  memory: () => memoryStore(),
  sqlite: (path) => sqliteStore(join(path, 'store.db')),
  'encrypted sqlite': (path) => sqliteStore(join(path, 'store.db'), { encryption: { key } }),
  files: (path) => fileStore(join(path, 'store')),
  postgres: () =>
    postgresStore({ connectionString: postgres.connectionString, schema: schemas.take(), max: 4 }),
};

describe.each(Object.keys(stores))('the files of a session (%s)', (kind) => {
  const open = (path: string): Store => stores[kind]?.(path) ?? memoryStore();

  test('S800 S807 S808 are restored, compared, listed, opened and checked out with the snapshots', async () => {
    using folder = testFolder();
    const { project } = folder;
    const store = open(folder.path);
    await using app = openApp(store);
    const coder = app.defineAgent({ name: 'coder', workspace: directory(project), tools: [act] });
    writeFileSync(join(project, 'readme.md'), 'one\ntwo\n');
    mkdirSync(join(project, 'src'));
    writeFileSync(join(project, 'src/index.ts'), 'export {};\n');

    const first = await coder.run(
      'mkdir empty; echo run > go.sh; chmod +x go.sh; ln -s go.sh link; head -c 600000 /dev/zero > big.bin',
    );
    const before = hashFolder(project);
    const second = await coder.run(
      'rm -r src empty link; echo three >> readme.md; chmod -x go.sh; echo x > big.bin; mkdir -p a/b; echo new > a/b/c.txt',
      { sessionId: first.sessionId },
    );
    const after = hashFolder(project);
    expect(app.errors).toEqual([]);

    const { files = [] } = await coder.diff(first, second);
    expect(files.map(({ path, change }) => [path, change])).toEqual([
      ['a/b/c.txt', 'added'],
      ['big.bin', 'changed'],
      ['go.sh', 'changed'],
      ['link', 'removed'],
      ['readme.md', 'changed'],
      ['src/index.ts', 'removed'],
    ]);
    expect(files.find(({ path }) => path === 'readme.md')?.lines).toEqual([
      { kind: 'same', text: 'one', before: 1, after: 1 },
      { kind: 'same', text: 'two', before: 2, after: 2 },
      { kind: 'added', text: 'three', after: 3 },
      { kind: 'same', text: '', before: 3, after: 4 },
    ]);
    const listed = await coder.listFiles(second);
    expect(listed.items.map(({ path, size }) => [path, size])).toEqual([
      ['a/b/c.txt', 4],
      ['big.bin', 2],
      ['go.sh', 4],
      ['readme.md', 14],
    ]);
    const page = await coder.listFiles(second, { limit: 3 });
    const rest = await coder.listFiles(second, { limit: 3, cursor: page.next ?? '' });
    expect([...page.items, ...rest.items]).toEqual(listed.items);
    const opened = await coder.openFile(first, 'src/index.ts');
    expect(await new Response(opened.stream).text()).toBe('export {};\n');
    expect((await coder.openFile(first, 'big.bin')).size).toBe(600_000);
    await expect(coder.openFile(second, 'src/index.ts')).rejects.toMatchObject({
      status: 'NOT_FOUND',
    });
    expect((await coder.getSnapshot(second))?.state?.artifacts).toBeUndefined();

    await coder.restore(first);
    expect(hashFolder(project)).toEqual(before);
    await coder.restore(second);
    expect(hashFolder(project)).toEqual(after);
    await coder.checkout(first, join(folder.path, 'elsewhere'));
    expect(hashFolder(join(folder.path, 'elsewhere'))).toEqual(before);
    await expect(coder.checkout(first, join(folder.path, 'elsewhere'))).rejects.toMatchObject({
      status: 'FAILED_PRECONDITION',
    });
    await coder.restore(first, { workspace: false });
    expect(hashFolder(project)).toEqual(after);
    expect((await coder.getSession(first))?.headId).toBe(first.snapshotId);
    expect(await store.maintenance?.verify()).toEqual([]);
  });

  test('S801 S807 changes of others are saved as an edit before a turn and before a restore', async () => {
    using folder = testFolder();
    const { project } = folder;
    const store = open(folder.path);
    await using app = openApp(store);
    const coder = app.defineAgent({ name: 'coder', workspace: directory(project), tools: [act] });
    writeFileSync(join(project, 'file.txt'), 'before');
    const first = await coder.run('echo 1 > one');
    const { sessionId } = first;
    writeFileSync(join(project, 'file.txt'), 'by a person');
    const second = await coder.run('echo 2 > two', { sessionId });
    const { items } = await coder.listSnapshots(sessionId);
    expect(items.map(({ event }) => event)).toEqual(['turnEnd', 'edit', 'turnEnd']);
    const edit = items[1];
    expect(edit?.parentId).toBe(first.snapshotId);
    expect(items[2]?.parentId).toBe(edit?.snapshotId);
    expect(edit?.edit?.reason).toContain('outside of a turn');
    const { files } = await coder.diff(first, edit ?? '');
    expect(files?.map(({ path }) => path)).toEqual(['file.txt']);

    writeFileSync(join(project, 'unsaved.txt'), 'not lost');
    await coder.restore(first);
    expect(readFileSync(join(project, 'file.txt'), 'utf8')).toBe('before');
    expect(existsSync(join(project, 'unsaved.txt'))).toBe(false);
    const all = await coder.listSnapshots(sessionId, { includeOrphaned: true });
    const saved = all.items.find(({ edit: note }) => note?.reason?.includes('restored'));
    expect(saved?.parentId).toBe(second.snapshotId);
    const kept = await coder.openFile(saved?.snapshotId ?? '', 'unsaved.txt');
    expect(await new Response(kept.stream).text()).toBe('not lost');
    // Nothing is left to be saved.
    await coder.run('nothing', { sessionId });
    const last = await coder.listSnapshots(sessionId);
    expect(last.items.map(({ event }) => event)).toEqual(['turnEnd', 'turnEnd']);
    expect(app.errors).toEqual([]);
    expect(await store.maintenance?.verify()).toEqual([]);
  });

  test('S802 a turn from another snapshot works on its files, and one that fails gives the head’s back', async () => {
    using folder = testFolder();
    const { project } = folder;
    const store = open(folder.path);
    await using app = openApp(store);
    const coder = app.defineAgent({ name: 'coder', workspace: directory(project), tools: [act] });
    const first = await coder.run('echo 1 > file');
    const { sessionId } = first;
    const second = await coder.run('echo 2 > file', { sessionId });
    writeFileSync(join(project, 'mine'), 'kept');
    const third = await coder.run('cat file > seen', { from: first });
    expect(readFileSync(join(project, 'seen'), 'utf8')).toBe('1\n');
    expect(existsSync(join(project, 'mine'))).toBe(false);
    const { items } = await coder.listSnapshots(sessionId, { includeOrphaned: true });
    const edit = items.find(({ event }) => event === 'edit');
    expect(edit?.parentId).toBe(second.snapshotId);
    expect(items.find(({ snapshotId }) => snapshotId === third.snapshotId)?.parentId).toBe(
      first.snapshotId,
    );
    const found = await coder.openFile(edit?.snapshotId ?? '', 'mine');
    expect(await new Response(found.stream).text()).toBe('kept');

    const head = hashFolder(project);
    app.errors.length = 0;
    const failing = app.defineAgent({
      name: 'coder2',
      workspace: directory(project),
      tools: [act],
      limits: { turn: { toolCalls: 1 } },
    });
    const one = await failing.run('echo a > file');
    const two = await failing.run('echo b > file', { sessionId: one.sessionId });
    const atHead = hashFolder(project);
    const output = await failing.run('echo c > file;;echo d > file;;echo e > file', {
      from: one,
      throwOnError: false,
    });
    expect(output.finishReason).toBe('failed');
    expect(hashFolder(project)).toEqual(atHead);
    expect((await failing.getSession(one))?.headId).toBe(two.snapshotId);
    expect(Object.keys(head)).toContain('seen');
  });

  test('S803 a failed turn at the head leaves its files, and restoring the head discards them', async () => {
    using folder = testFolder();
    const { project } = folder;
    const store = open(folder.path);
    await using app = openApp(store);
    const coder = app.defineAgent({
      name: 'coder',
      workspace: directory(project),
      tools: [act],
      limits: { turn: { toolCalls: 1 } },
    });
    const first = await coder.run('echo 1 > file');
    const { sessionId } = first;
    const head = hashFolder(project);
    await coder.run('echo 2 > file;;echo 3 > other', { sessionId, throwOnError: false });
    expect(readFileSync(join(project, 'file'), 'utf8')).toBe('2\n');
    const { items } = await coder.listSnapshots(sessionId, { includeOrphaned: true });
    const failed = items.find(({ status }) => status === 'failed');
    const kept = await coder.openFile(failed?.snapshotId ?? '', 'file');
    expect(await new Response(kept.stream).text()).toBe('2\n');
    await coder.restore(first);
    expect(hashFolder(project)).toEqual(head);
  });

  test('S811 S812 go with the session, and stay with a fork and an import', async () => {
    using folder = testFolder();
    const { project, path } = folder;
    const store = open(path);
    await using app = openApp(store);
    const workspace = directory.perSession({ from: project, in: join(path, 'work') });
    writeFileSync(join(project, 'template.txt'), 'template');
    const coder = app.defineAgent({ name: 'coder', workspace, tools: [act] });
    const first = await coder.run('echo secret > file; mkdir empty');
    const fork = await coder.fork(first);
    const forked = await coder.run('cat file template.txt', { sessionId: fork.sessionId });
    expect(JSON.stringify((await coder.getSnapshot(forked))?.state)).toContain('secret');
    expect(forked.sessionId).not.toBe(first.sessionId);

    const { maintenance } = store;
    const scope = { agent: 'coder' };
    const document = await maintenance?.exportSession(scope, first.sessionId);
    await coder.deleteSession(first);
    await coder.checkout(forked, join(path, 'forked'));
    expect(readFileSync(join(path, 'forked/file'), 'utf8')).toBe('secret\n');
    if (document === undefined) expect.fail('there is no document');
    await maintenance?.importSession(scope, structuredClone(document), { sessionId: 'imported' });
    await coder.checkout({ sessionId: 'imported' }, join(path, 'imported'));
    expect(Object.keys(hashFolder(join(path, 'imported')))).toEqual([
      'empty/',
      'file',
      'template.txt',
    ]);
    expect(await maintenance?.verify()).toEqual([]);
    await coder.deleteSession({ sessionId: 'imported' });
    await coder.deleteSession(fork);
    expect(await maintenance?.verify()).toEqual([]);
    expect(app.errors).toEqual([]);
  });

  test('S811 store only what changed, and prune removes what no snapshot needs', async () => {
    using folder = testFolder();
    const { project } = folder;
    const store = open(folder.path);
    await using app = openApp(store);
    const coder = app.defineAgent({ name: 'coder', workspace: directory(project), tools: [act] });
    shell(
      project,
      'for d in 1 2 3; do mkdir $d; for f in 1 2 3 4; do echo $d $f > $d/$f; done; done',
    );
    const first = await coder.run('echo 1 > 1/1');
    const second = await coder.run('echo 2 > 1/1', { sessionId: first.sessionId });
    await coder.run('echo 3 > 1/1', { sessionId: first.sessionId });
    const report = await store.maintenance?.prune({ keepLast: 1 }, { agent: 'coder' });
    expect(report?.snapshots).toBe(2);
    expect(await store.maintenance?.verify()).toEqual([]);
    await expect(coder.listFiles(second)).rejects.toMatchObject({ status: 'NOT_FOUND' });
    expect((await coder.listFiles({ sessionId: first.sessionId })).items).toHaveLength(12);
    rmSync(join(project, '1'), { recursive: true });
    await coder.restore({ snapshotId: (await coder.getSession(first))?.headId });
    expect(readFileSync(join(project, '1/1'), 'utf8')).toBe('3\n');
  });
});

test.each([{}, { encryption: { key } }])(
  'S811 a deleted session leaves nothing of its trees (%#)',
  async (options) => {
    using folder = testFolder();
    const path = join(folder.path, 'store.db');
    const store = sqliteStore(path, options);
    await using app = openApp(store);
    const workspace = directory(folder.project);
    const coder = app.defineAgent({ name: 'coder', workspace, tools: [act] });
    const many = 'mkdir -p a/b; for i in $(seq 300); do echo $i > a/b/file$i; done; echo x > y';
    const first = await coder.run(many);
    const second = await coder.run('echo 1 > a/b/file17', { sessionId: first.sessionId });
    expect((await coder.listFiles(second)).items).toHaveLength(301);
    await coder.deleteSession(second);
    await store.maintenance?.verify();
    const db = new DatabaseSync(path, { readOnly: true });
    const count =
      'SELECT (SELECT COUNT(*) FROM blobs) + (SELECT COUNT(*) FROM blob_parts) AS count';
    expect(db.prepare(count).get()).toEqual({ count: 0 });
    db.close();
  },
);

test.each(['sqlite', 'files'])(
  'S851 a store inside the folder is no part of its tree (%s)',
  async (kind) => {
    using folder = testFolder();
    const store = stores[kind]?.(folder.project) ?? memoryStore();
    await using app = openApp(store);
    const workspace = directory(folder.project);
    const coder = app.defineAgent({ name: 'coder', workspace, tools: [act] });
    const first = await coder.run('echo 1 > file');
    const second = await coder.run('echo 2 > file', { sessionId: first.sessionId });
    expect((await coder.listFiles(second)).items.map(({ path }) => path)).toEqual(['file']);
    await coder.restore(first);
    expect(readFileSync(join(folder.project, 'file'), 'utf8')).toBe('1\n');
    expect(await store.maintenance?.verify()).toEqual([]);
  },
);

test('S850 a replay and a rerun work on a copy of the files', async () => {
  using folder = testFolder();
  const { project } = folder;
  const store = memoryStore();
  await using app = openApp(store);
  const workspace = directory(project);
  const coder = app.defineAgent({ name: 'coder', workspace, tools: [act] });
  const first = await coder.run('echo 1 >> file');
  const second = await coder.run('echo 2 >> file; cat file', { sessionId: first.sessionId });
  const before = hashFolder(project);
  const report = await replay(app, { sessions: { agent: 'coder' }, tools: 'live' });
  expect(report.turns.map(({ divergences }) => divergences)).toEqual([[], []]);
  const again = await rerun(coder, {
    snapshotId: second.snapshotId ?? '',
    scope: 'turn',
    tools: 'live',
  });
  expect(hashFolder(project)).toEqual(before);
  const file = await coder.openFile({ sessionId: again.sessionId }, 'file');
  expect(await new Response(file.stream).text()).toBe('1\n2\n');
  expect(app.errors).toEqual([]);
});
