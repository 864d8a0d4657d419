import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { type Agent, type App, memoryStore } from 'waymark';
import { sqliteStore } from 'waymark/sqlite';
import { directory } from 'waymark/workspace';
import { act, hashFolder, openApp, testFolder } from './support.ts';

/** A host with a disk of its own. */
function hostAt(
  path: string,
  disk: string,
): {
  readonly app: ReturnType<typeof openApp>;
  readonly coder: Agent;
  folder(sessionId: string): string;
} {
  const app = openApp(sqliteStore(join(path, 'store.db')));
  const workspace = directory.perSession({ in: join(path, disk) });
  const coder = app.defineAgent({
    name: 'coder',
    workspace,
    tools: [act],
    limits: { turn: { toolCalls: 1 } },
  });
  return { app, coder, folder: (sessionId) => join(path, disk, sessionId) };
}

async function events(coder: Agent, sessionId: string): Promise<readonly unknown[]> {
  const { items } = await coder.listSnapshots(sessionId, { includeOrphaned: true });
  return items.map(({ event, status }) => [event, status]);
}

async function twoTurns(
  coder: Agent,
): Promise<{ readonly sessionId: string; readonly first: string; readonly second: string }> {
  const { sessionId, snapshotId: first = '' } = await coder.run('echo one > a.txt; mkdir empty');
  const { snapshotId: second = '' } = await coder.run('echo two > a.txt; echo b > b.txt', {
    sessionId,
  });
  return { sessionId, first, second };
}

test('S804 a turn on another host finds the files of the head, and saves nothing before it', async () => {
  using disks = testFolder();
  const here = hostAt(disks.path, 'here');
  const there = hostAt(disks.path, 'there');
  await using _here: App & AsyncDisposable = here.app;
  await using _there: App & AsyncDisposable = there.app;
  const { sessionId } = await twoTurns(here.coder);
  const before = hashFolder(here.folder(sessionId));
  await there.coder.run('nothing', { sessionId });
  expect(hashFolder(there.folder(sessionId))).toEqual(before);
  expect(await events(there.coder, sessionId)).not.toContainEqual(['edit', 'succeeded']);
});

test('S807 a restore on another host creates the folder, and saves no change that nobody made', async () => {
  using disks = testFolder();
  const here = hostAt(disks.path, 'here');
  const there = hostAt(disks.path, 'there');
  await using _here: App & AsyncDisposable = here.app;
  await using _there: App & AsyncDisposable = there.app;
  const { sessionId, first } = await twoTurns(here.coder);
  await there.coder.restore(first);
  expect(readFileSync(join(there.folder(sessionId), 'a.txt'), 'utf8')).toBe('one\n');
  expect(existsSync(join(there.folder(sessionId), 'b.txt'))).toBe(false);
  expect(await events(there.coder, sessionId)).not.toContainEqual(['edit', 'succeeded']);
});

test('S802 a turn from another snapshot on another host returns to the files of the head if it fails', async () => {
  using disks = testFolder();
  const here = hostAt(disks.path, 'here');
  const there = hostAt(disks.path, 'there');
  await using _here: App & AsyncDisposable = here.app;
  await using _there: App & AsyncDisposable = there.app;
  const { sessionId, first } = await twoTurns(here.coder);
  const head = hashFolder(here.folder(sessionId));
  const output = await there.coder.run('echo c > a.txt;;echo d > d.txt', {
    sessionId,
    from: first,
    throwOnError: false,
  });
  expect(output.finishReason).toBe('failed');
  expect(hashFolder(there.folder(sessionId))).toEqual(head);
  expect(await events(there.coder, sessionId)).not.toContainEqual(['edit', 'succeeded']);
});

test('S807 a diff with the folder as it is now is what a restore changes', async () => {
  using folder = testFolder();
  const { project } = folder;
  await using app = openApp(memoryStore());
  const coder = app.defineAgent({ name: 'coder', workspace: directory(project), tools: [act] });
  const { sessionId, first, second } = await twoTurns(coder);
  writeFileSync(join(project, 'mine.txt'), 'mine\n');
  const before = hashFolder(project);
  const names = readdirSync(project);
  const { files = [] } = await coder.diff(second, first, { workspace: 'now' });
  expect(files.map(({ path, change }) => [path, change])).toEqual([
    ['a.txt', 'changed'],
    ['b.txt', 'removed'],
    ['mine.txt', 'removed'],
  ]);
  expect(files.find(({ path }) => path === 'mine.txt')?.lines).toEqual([
    { kind: 'removed', text: 'mine', before: 1 },
  ]);
  expect(hashFolder(project)).toEqual(before);
  expect(readdirSync(project)).toEqual(names);
  expect(await coder.diff(second, first, { workspace: false })).not.toHaveProperty('files');
  const saved = await coder.diff(second, first);
  expect(saved.files?.map(({ path }) => path)).toEqual(['a.txt', 'b.txt']);
  await expect(coder.diff(second, first, { workspace: 'later' as 'now' })).rejects.toMatchObject({
    status: 'INVALID_ARGUMENT',
  });
  await coder.restore(first);
  expect(readdirSync(project).sort()).toEqual(['.waymark', 'a.txt', 'empty']);
  expect(await events(coder, sessionId)).toContainEqual(['edit', 'succeeded']);
});
