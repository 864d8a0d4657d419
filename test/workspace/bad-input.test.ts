/** Folders that are large, change all the time, or cannot be written as they are. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, statSync, truncateSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { memoryStore } from 'waymark';
import { sqliteStore } from 'waymark/sqlite';
import { directory } from 'waymark/workspace';
import { act, hashFolder, openApp, shell, testFolder } from './support.ts';

test('S800 S807 a turn that makes 10,000 changes is saved and restored as a whole', async () => {
  using folder = testFolder();
  const { project, path } = folder;
  const store = sqliteStore(join(path, 'store.db'));
  await using app = openApp(store);
  const coder = app.defineAgent({ name: 'coder', workspace: directory(project), tools: [act] });
  for (let at = 0; at < 5_000; at++) {
    if (at % 500 === 0) mkdirSync(join(project, `old-${at / 500}`));
    writeFileSync(join(project, `old-${Math.floor(at / 500)}`, `${at}`), `old ${at}`);
  }
  const first = await coder.run('nothing');
  const before = hashFolder(project);
  const second = await coder.run(
    'rm -r old-*; mkdir flat; cd flat; seq 5000 | while read n; do echo "$n" > "$n"; done',
    { sessionId: first.sessionId },
  );
  const after = hashFolder(project);
  expect(Object.keys(after)).toHaveLength(5_000);
  await coder.restore(first);
  expect(hashFolder(project)).toEqual(before);
  await coder.restore(second);
  expect(hashFolder(project)).toEqual(after);
  const { files = [] } = await coder.diff(first, second);
  expect(files).toHaveLength(10_000);
  expect(await store.maintenance?.verify()).toEqual([]);
  expect(app.errors).toEqual([]);
}, 120_000);

test('S800 files that grow, shrink, come and go while they are read leave a whole snapshot', async () => {
  using folder = testFolder();
  const { project, path } = folder;
  const store = sqliteStore(join(path, 'store.db'));
  await using app = openApp(store);
  const coder = app.defineAgent({ name: 'coder', workspace: directory(project), tools: [act] });
  const writer = spawn(
    'sh',
    [
      '-c',
      'while :; do echo line >> log; head -c 400000 /dev/zero > big; : > big; mkdir -p d; echo x > d/x; rm -r d; mv a b; echo a > a; done 2>/dev/null',
    ],
    { cwd: project, stdio: 'ignore' },
  );
  try {
    let sessionId = 'busy';
    for (let turn = 0; turn < 5; turn++) {
      const output = await coder.run('true', { sessionId, throwOnError: false });
      ({ sessionId } = output);
      // Saving may be given up, with an error that says why; what is saved is whole.
      if (output.finishReason === 'failed') expect(output.error?.status).toBe('UNAVAILABLE');
    }
  } finally {
    const ended = once(writer, 'exit');
    writer.kill('SIGKILL');
    await ended;
  }
  expect(await store.maintenance?.verify()).toEqual([]);
  const { items } = await coder.listSnapshots('busy', { includeOrphaned: true });
  for (const [at, { snapshotId }] of items.entries()) {
    const target = join(path, `out-${at}`);
    await coder.checkout(snapshotId, target);
    const { items: files } = await coder.listFiles(snapshotId);
    for (const { path: name, size } of files) {
      expect(statSync(join(target, name)).size).toBe(size);
    }
  }
}, 60_000);

test('S800 a file of 5 GB is listed and left alone, and a workspace above its limits is an error', async () => {
  using folder = testFolder();
  const { project } = folder;
  const workspace = directory(project);
  await using app = openApp(memoryStore());
  const coder = app.defineAgent({ name: 'coder', workspace, tools: [act] });
  const sparse = join(project, 'video.raw');
  writeFileSync(sparse, '');
  truncateSync(sparse, 5 * 2 ** 30);
  const first = await coder.run('echo 1 > one');
  const second = await coder.run('echo 2 > two', { sessionId: first.sessionId });
  expect((await coder.listFiles(second)).items.map((file) => file.path)).toEqual(['one', 'two']);
  const open = await workspace.open({ agent: 'coder', sessionId: first.sessionId });
  expect((await open.scan()).skipped).toEqual([{ path: 'video.raw', reason: 'too-large' }]);
  await coder.restore(first);
  expect(shell(project, 'ls').split('\n')).toEqual(['one', 'video.raw', '']);
  expect(statSync(sparse).size).toBe(5 * 2 ** 30);
  const limited = app.defineAgent({
    name: 'limited',
    workspace: directory(project, { maxFileBytes: 2 ** 40, name: 'films' }),
  });
  await expect(limited.run('nothing')).rejects.toMatchObject({
    status: 'RESOURCE_EXHAUSTED',
    message: expect.stringContaining('maxBytes'),
  });
});

test('S807 where names in upper and lower case are the same, one of two is left out', async () => {
  using folder = testFolder();
  const { project } = folder;
  const workspace = directory(project);
  await using app = openApp(memoryStore());
  const coder = app.defineAgent({ name: 'coder', workspace, tools: [act] });
  const first = await coder.run('echo 1 > Readme; echo 2 > README; mkdir src; echo 3 > src/a');
  await coder.run('rm -r *', { sessionId: first.sessionId });
  // By this, a workspace finds out how the file system takes names.
  mkdirSync(join(project, '.WAYMARK'));
  await coder.restore(first);
  expect(Object.keys(hashFolder(project)).filter((name) => name !== '.WAYMARK/')).toEqual([
    'README',
    'src/a',
  ]);
});

test('S811 files are encrypted under a new key, and go with their owner', async () => {
  using folder = testFolder();
  const { project, path } = folder;
  const [old, now] = [1, 2].map((fill) => new Uint8Array(32).fill(fill));
  if (old === undefined || now === undefined) expect.fail();
  const at = join(path, 'store.db');
  const open = (encryption: NonNullable<Parameters<typeof sqliteStore>[1]>['encryption']) =>
    sqliteStore(at, { ...(encryption && { encryption }) });
  const workspace = directory.perSession({ from: project, in: join(path, 'work') });
  let snapshot = '';
  {
    await using app = openApp(open({ key: old }));
    const coder = app.defineAgent({ name: 'coder', workspace, tools: [act] });
    const output = await coder.run('echo secret-of-ann > file', { owner: 'ann' });
    await coder.run('echo of-bob > file', { owner: 'bob' });
    snapshot = output.snapshotId ?? '';
  }
  {
    const store = open({ keys: [now, old] });
    await using app = openApp(store);
    app.defineAgent({ name: 'coder', workspace, tools: [act] });
    expect(await store.rotateKeys()).toBeGreaterThan(0);
  }
  const store = open({ key: now });
  await using app = openApp(store);
  const coder = app.defineAgent({ name: 'coder', workspace, tools: [act] });
  await coder.checkout(snapshot, join(path, 'out'), { owner: 'ann' });
  expect(shell(join(path, 'out'), 'cat file')).toBe('secret-of-ann\n');
  expect(await store.maintenance?.verify()).toEqual([]);
  await store.maintenance?.eraseOwner?.('ann');
  await expect(coder.listFiles(snapshot, { owner: 'ann' })).rejects.toMatchObject({
    status: 'NOT_FOUND',
  });
  expect(await store.maintenance?.verify()).toEqual([]);
  expect(shell(path, 'grep -c secret-of-ann store.db* || true')).not.toMatch(/:[1-9]/);
});
