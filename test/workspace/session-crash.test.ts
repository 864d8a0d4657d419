/** A process is killed while it saves the files of a turn, or restores those of a snapshot. */
import { cpSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { type App, waymark } from 'waymark';
import { sqliteStore } from 'waymark/sqlite';
import { scriptedModel } from 'waymark/testing';
import { directory } from 'waymark/workspace';
import { bundleChild } from '../support/bundle-child.ts';
import { endProcesses, startProcess } from '../support/child-process.ts';
import { readFolder } from './support/folder-oracle.ts';

const worker = bundleChild(new URL('./support/session-worker.ts', import.meta.url));
const runs = process.env.LONG === '1' ? 250 : 6;

const base = mkdtempSync(join(tmpdir(), 'waymark-session-crash-'));
const template = join(base, 'template');
let [one, two] = ['', ''];
let trees: readonly Record<string, string>[] = [];

function open(path: string) {
  const store = sqliteStore(join(path, 'store.db'));
  const model = scriptedModel({ patterns: [], otherwise: 'Done.' });
  const app: App = waymark({ store, model, work: false });
  const coder = app.defineAgent({ name: 'coder', workspace: directory(join(path, 'project')) });
  return { app, store, coder };
}

beforeAll(async () => {
  const project = join(template, 'project');
  mkdirSync(join(project, 'folder'), { recursive: true });
  for (let at = 0; at < 60; at++) writeFileSync(join(project, `folder/${at}`), `first ${at}`);
  const { app, coder } = open(template);
  one = (await coder.run('hello', { sessionId: 's' })).snapshotId ?? '';
  const first = readFolder(project);
  for (let at = 0; at < 40; at++) writeFileSync(join(project, `folder/${at}`), `second ${at}`);
  for (let at = 0; at < 40; at++) writeFileSync(join(project, `added-${at}`), 'x'.repeat(at * 500));
  two = (await coder.run('hello', { sessionId: 's' })).snapshotId ?? '';
  trees = [first, readFolder(project)];
  await app.close();
});
afterEach(endProcesses);
afterAll(() => rmSync(base, { recursive: true }));

/** How long a worker takes from its beginning to its end, by what it does. */
const durations = new Map<string, number>();

/** A copy of the store and the folder, in which the worker was killed at a random time after it began. */
async function killed(snapshotId: string | undefined, prepare: (project: string) => void) {
  const kind = snapshotId === undefined ? 'turn' : 'restore';
  const duration = durations.get(kind);
  const path = mkdtempSync(join(base, 'run-'));
  cpSync(template, path, { recursive: true });
  prepare(join(path, 'project'));
  const args = [worker, path, ...(snapshotId === undefined ? [] : [snapshotId])];
  const child = startProcess(args, { mayDie: true });
  await child.take((line) => (line === 'begins' ? true : undefined));
  const began = performance.now();
  if (duration === undefined) {
    await child.take((line) => (line === 'ends' ? true : undefined));
    durations.set(kind, performance.now() - began);
  } else {
    await new Promise((resolve) => setTimeout(resolve, Math.random() * duration * 1.1));
  }
  await child.end('SIGKILL');
  return path;
}

/** Every file of every snapshot is complete in the store. Returns the paths. */
async function storedPaths(path: string): Promise<ReadonlySet<string>> {
  const { app, store, coder } = open(path);
  expect(await store.maintenance?.verify()).toEqual([]);
  const found = new Set<string>();
  const { items } = await coder.listSnapshots('s', { includeOrphaned: true });
  for (const { snapshotId } of items) {
    const target = join(path, `out-${snapshotId}`);
    await coder.checkout(snapshotId, target);
    for (const [name, content] of Object.entries(readFolder(target)))
      found.add(`${name} ${content}`);
  }
  await app.close();
  return found;
}

test('S801 S807 a restore is complete or undone, and no change of a person is lost', async () => {
  for (let run = 0; run < runs; run++) {
    const target = run % 2 === 0 ? one : two;
    const edit = (project: string): void => writeFileSync(join(project, 'mine'), 'by a person');
    const path = await killed(target, edit);
    const project = join(path, 'project');
    const [first = {}, second = {}] = trees;
    const mine = readFolder(project).mine;
    await directory(project).open({ agent: 'coder', sessionId: 's' });
    const found = readFolder(project);
    if (found.mine === undefined) {
      expect(found).toEqual(target === one ? first : second);
      const names = [...(await storedPaths(path))].map((each) => each.split(' ')[0]);
      expect(names).toContain('mine');
    } else {
      // Both were at the second snapshot.
      const { mine: kept, ...rest } = found;
      expect(rest).toEqual(second);
      expect(mine === undefined || mine === kept).toBe(true);
      await storedPaths(path);
    }
    rmSync(path, { recursive: true });
  }
});

test('S801 saving the files of a turn changes none of them', async () => {
  for (let run = 0; run < runs; run++) {
    const path = await killed(undefined, () => {});
    const project = join(path, 'project');
    const before = readFolder(project);
    for (let at = 0; at < 20; at++) expect(before[`changed-${at}`]).toBeDefined();
    await directory(project).open({ agent: 'coder', sessionId: 's' });
    expect(readFolder(project)).toEqual(before);
    await storedPaths(path);
    rmSync(path, { recursive: true });
  }
});
