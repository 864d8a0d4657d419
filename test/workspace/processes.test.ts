import { execFileSync } from 'node:child_process';
import {
  chmodSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { directory } from 'waymark/workspace';
import { contentsOf, fileOf, refused } from '../../src/testing/workspace-contract/kit.ts';
import { openFolder } from '../../src/workspace/open-folder.ts';
import { defaultLimits } from '../../src/workspace/scan-run.ts';
import { bundleChild } from '../support/bundle-child.ts';
import { endProcesses, startProcess, type TestProcess } from '../support/child-process.ts';
import { eventually } from '../support/eventually.ts';
import { readFolder } from './support/folder-oracle.ts';

const lockWorker = bundleChild(new URL('./support/lock-worker.ts', import.meta.url));
const applyWorker = bundleChild(new URL('./support/apply-worker.ts', import.meta.url));

let base = '';
let root = '';
beforeEach(() => {
  base = mkdtempSync(join(tmpdir(), 'waymark-processes-'));
  root = join(base, 'project');
  mkdirSync(root);
});
afterEach(async () => {
  await endProcesses();
  rmSync(base, { recursive: true });
});

const open = () => directory(root).open({ agent: 'a', sessionId: 's' });

async function locker(runId: string): Promise<TestProcess> {
  const child = startProcess([lockWorker, root, runId], { mayDie: true });
  await child.take((line) => (line === 'locked' ? true : undefined));
  return child;
}

test('another process has the lock until it dies', async () => {
  const child = await locker('other');
  const folder = await open();
  const error = await refused(folder.lock({ runId: 'r' }), 'ABORTED');
  expect(error.details).toEqual({ running: 'other' });
  await child.end('SIGKILL');
  // Its process is known to be gone: nothing waits for its lease to end.
  const lock = await eventually(() => folder.lock({ runId: 'r' }));
  await lock.release();
});

test('processes that wait for the lock have it one after the other', async () => {
  writeFileSync(join(root, 'counter'), '0');
  const env = { WAIT: '1' };
  const children = Array.from({ length: 5 }, (_, at) =>
    startProcess([lockWorker, root, `r${at}`], { env }),
  );
  await Promise.all(children.map((child) => child.finished()));
  expect(readFileSync(join(root, 'counter'), 'utf8')).toBe('100');
  expect(readdirSync(join(root, '.waymark/lock')).length).toBeLessThan(5);
});

test('a later attempt of the run takes the lock from the process of the earlier one, which must stop', async () => {
  const child = await locker('r');
  const folder = await open();
  const lock = await folder.lock({ runId: 'r', attempt: 1 });
  await child.take((line) => (line === 'lost' ? true : undefined));
  await lock.release();
});

const settings = { workspace: 'w', limits: defaultLimits, exclude: [], leaseMs: 120 };

/** A lease of a process on another host, whose last heartbeat was long ago. */
function foreignLease(beat = 0): void {
  const path = join(root, '.waymark/lock/7');
  mkdirSync(join(root, '.waymark/lock'), { recursive: true });
  const owner = { host: 'elsewhere', pid: 1, start: '1' };
  writeFileSync(path, JSON.stringify({ runId: 'far', attempt: 0, process: owner, beat }));
  utimesSync(path, 1, 1);
}

test('a lease of another host is taken over when no heartbeat comes', async () => {
  foreignLease();
  const folder = await openFolder(root, settings);
  const lock = await folder.lock({ runId: 'r' });
  await folder.apply([{ path: 'a', after: fileOf('x') }], contentsOf('x'));
  await lock.release();
});

test('a lease that only looks old, because a clock has jumped, is left to its owner', async () => {
  let beat = 0;
  foreignLease();
  const folder = await openFolder(root, { ...settings, leaseMs: 30_000 });
  const heartbeat = setInterval(() => foreignLease(++beat), 20);
  const stopped = new AbortController();
  const waiting = folder.lock({ runId: 'r' }, { wait: true, signal: stopped.signal });
  await eventually(() => beat > 150);
  stopped.abort();
  await refused(waiting, 'CANCELLED');
  clearInterval(heartbeat);
});

test('an owner that was silent for too long changes nothing any more', async () => {
  const folder = await openFolder(root, settings);
  const lock = await folder.lock({ runId: 'r' });
  const generations = readdirSync(join(root, '.waymark/lock')).map(Number);
  const next = Math.max(...generations) + 1;
  const record = {
    runId: 'next',
    attempt: 0,
    process: { host: 'elsewhere', pid: 1, start: '' },
    beat: 0,
  };
  writeFileSync(join(root, '.waymark/lock', String(next)), JSON.stringify(record));
  await refused(folder.apply([{ path: 'a', after: fileOf('x') }], contentsOf('x')), 'ABORTED');
  expect(lock.lost.aborted).toBe(true);
  expect(readFolder(root)).toEqual({});
  await lock.release();
});

test('the lock survives `git clean` of its folder', async () => {
  const folder = await openFolder(root, settings);
  const lock = await folder.lock({ runId: 'r' });
  rmSync(join(root, '.waymark'), { recursive: true });
  await refused((await open()).lock({ runId: 'other' }), 'ABORTED');
  rmSync(join(root, '.waymark'), { recursive: true });
  await eventually(() => readdirSync(join(root, '.waymark/lock')).length > 0);
  await refused((await open()).lock({ runId: 'other' }), 'ABORTED');
  await folder.apply([{ path: 'a', after: fileOf('x') }], contentsOf('x'));
  await lock.release();
});

test('a full disk is an error, and the tree is as before', async () => {
  const source = join(base, 'source');
  mkdirSync(source);
  writeFileSync(join(source, 'small'), 'new');
  writeFileSync(join(source, 'large'), 'x'.repeat(300_000));
  writeFileSync(join(root, 'small'), 'old');
  writeFileSync(join(root, 'gone'), 'old');
  const before = readFolder(root);
  const child = startProcess([applyWorker, root, source], { fileKilobytes: 100, mayDie: true });
  expect((await child.ended).code).toBe(1);
  expect(child.stderr).toMatch(
    /cannot use "large": (the file would become too large|the disk is full)/,
  );
  expect(readFolder(root)).toEqual(before);
  await open();
  expect(readFolder(root)).toEqual(before);
});

/** Root may do everything, so the worker is another user there. */
const asUser =
  process.getuid?.() === 0 ? ['--reuid=65534', '--regid=65534', '--clear-groups'] : undefined;

test('what may not be read is listed, and what may not be changed is an error that changes nothing', async () => {
  const source = join(base, 'source');
  mkdirSync(source);
  for (const folder of ['first', 'locked']) {
    mkdirSync(join(root, folder));
    writeFileSync(join(root, folder, 'file'), 'old');
    mkdirSync(join(source, folder));
    writeFileSync(join(source, folder, 'file'), 'new');
  }
  writeFileSync(join(root, 'unreadable'), 'x');
  mkdirSync(join(root, 'hidden'));
  writeFileSync(join(root, 'hidden/inside'), 'x');
  if (asUser) execFileSync('chown', ['-R', '65534:65534', base]);
  chmodSync(join(root, 'locked'), 0o555);
  chmodSync(join(root, 'unreadable'), 0);
  chmodSync(join(root, 'hidden'), 0);
  const node = [process.execPath, applyWorker, root, source];
  const [command = '', ...args] = asUser ? ['setpriv', ...asUser, ...node] : node;
  const child = startProcess(args, { command, mayDie: true });
  expect((await child.ended).code, child.stderr).toBe(1);
  expect(child.lines.join()).toContain('{"path":"hidden","reason":"unreadable"}');
  expect(child.lines.join()).toContain('{"path":"unreadable","reason":"unreadable"}');
  expect(child.stderr).toContain('cannot use "locked/file": access is denied');
  chmodSync(join(root, 'hidden'), 0o755);
  chmodSync(join(root, 'unreadable'), 0o644);
  for (const folder of ['first', 'locked']) {
    expect(readFileSync(join(root, folder, 'file'), 'utf8')).toBe('old');
  }
  expect(readFileSync(join(root, 'hidden/inside'), 'utf8')).toBe('x');
  chmodSync(join(root, 'locked'), 0o755);
});
