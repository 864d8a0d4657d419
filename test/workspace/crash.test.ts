import { execFileSync } from 'node:child_process';
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { directory } from 'waymark/workspace';
import { bundleChild } from '../support/bundle-child.ts';
import { endProcesses, startProcess } from '../support/child-process.ts';
import { readFolder } from './support/folder-oracle.ts';

const worker = bundleChild(new URL('./support/apply-worker.ts', import.meta.url));
const long = process.env.LONG === '1';

let base = '';
beforeEach(() => {
  base = mkdtempSync(join(tmpdir(), 'waymark-crash-'));
});
afterEach(async () => {
  await endProcesses();
  rmSync(base, { recursive: true });
});

function make(path: string, files: Readonly<Record<string, string>>): void {
  mkdirSync(path, { recursive: true });
  for (const [name, text] of Object.entries(files)) {
    mkdirSync(dirname(join(path, name)), { recursive: true });
    if (text.startsWith('->')) symlinkSync(text.slice(2), join(path, name));
    else writeFileSync(join(path, name), text, { mode: name.endsWith('.sh') ? 0o755 : 0o644 });
  }
}

/** Two trees that differ in every way, and a folder that is now the first of them, with ignored files. */
function makeTrees(): { readonly folder: string; readonly before: string; readonly after: string } {
  const [folder, before, after] = ['folder', 'before', 'after'].map((name) => join(base, name));
  make(before as string, {
    '.gitignore': 'ignored\n',
    same: 'same',
    changed: 'old',
    'removed/a/b': 'old',
    'removed/a/c.sh': 'old',
    link: '->changed',
    'was-file': 'file',
    'was-folder/x': 'in a folder',
    'becomes.sh': 'same content',
    'deep/ignored': 'stays',
    'deep/file': 'goes',
  });
  make(after as string, {
    '.gitignore': 'ignored\n',
    same: 'same',
    changed: 'n'.repeat(300_000),
    'added/a/b': 'new',
    'added/c.sh': 'new',
    link: '->elsewhere',
    'was-file/x': 'in a folder',
    'was-folder': 'file',
    'becomes.sh': 'same content',
  });
  execFileSync('chmod', ['644', join(before as string, 'becomes.sh')]);
  mkdirSync(join(after as string, 'added/empty'));
  cpSync(before as string, folder as string, { recursive: true, verbatimSymlinks: true });
  return { folder, before, after } as ReturnType<typeof makeTrees>;
}

/** Runs the worker. Returns the number of its operations, `undefined` if it was killed. */
async function apply(folder: string, source: string, crashAt = 0): Promise<number | undefined> {
  const env = { CRASH_AT: String(crashAt) };
  const child = startProcess([worker, folder, source], { env, mayDie: true });
  const { signal, code } = await child.ended;
  if (signal === 'SIGKILL') return undefined;
  expect(code, child.stderr).toBe(0);
  return Number(child.lines.join('\n').match(/operations (\d+)/)?.[1]);
}

/** Opens the folder in this process, which recovers it. */
async function reopened(folder: string): Promise<Record<string, string>> {
  await directory(folder).open({ agent: 'a', sessionId: 's' });
  return readFolder(folder);
}

test('after a kill before any of its operations, the tree is exactly as before or as after', async () => {
  const { folder, before, after } = makeTrees();
  const old = readFolder(folder);
  const total = (await apply(folder, after)) ?? 0;
  const now = readFolder(folder);
  // Ignored files are neither removed nor overwritten.
  const rest = { deep: 'folder', 'deep/ignored': old['deep/ignored'] };
  expect(now).toEqual({ ...readFolder(after), ...rest });
  expect(total).toBeGreaterThan(40);
  const outcomes = new Set<string>();
  const stride = long ? 1 : 5;
  for (let at = 1; at <= total; at += stride) {
    rmSync(folder, { recursive: true });
    cpSync(before, folder, { recursive: true, verbatimSymlinks: true });
    await apply(folder, after, at);
    const found = await reopened(folder);
    const outcome = found.changed === now.changed ? 'after' : 'before';
    expect(found, `killed before operation ${at} of ${total}`).toEqual(
      outcome === 'after' ? now : old,
    );
    outcomes.add(outcome);
  }
  expect([...outcomes].sort()).toEqual(
    long ? ['after', 'before'] : expect.arrayContaining(['before']),
  );
});

test('a recovery that is killed too is continued', async () => {
  const { folder, before, after } = makeTrees();
  const old = readFolder(folder);
  const total = (await apply(folder, after)) ?? 0;
  for (let at = Math.floor(total / 2); at < total; at += long ? 3 : 12) {
    rmSync(folder, { recursive: true });
    cpSync(before, folder, { recursive: true, verbatimSymlinks: true });
    if ((await apply(folder, after, at)) !== undefined) continue;
    // The change was complete, so nothing is to be recovered.
    if (!existsSync(join(folder, '.waymark/change/plan.json'))) continue;
    let isRecovered = false;
    for (let second = 3; second < 30 && !isRecovered; second += long ? 2 : 7) {
      isRecovered = (await apply(folder, before, second)) !== undefined;
    }
    expect(await reopened(folder), `killed before operation ${at}`).toEqual(old);
  }
});

test('after a kill at a random time, the tree is exactly as before or as after', async () => {
  const { folder, before, after } = makeTrees();
  const old = readFolder(folder);
  await apply(folder, after);
  const trees = [old, readFolder(folder)].map((tree) => JSON.stringify(tree));
  for (let run = 0; run < (long ? 500 : 8); run++) {
    const source = run % 2 === 0 ? before : after;
    const child = startProcess([worker, folder, source], { mayDie: true });
    await child.take((line) => (line === 'begins' ? true : undefined)).catch(() => {});
    const random = Math.random() * 12;
    await new Promise((resolve) => setTimeout(resolve, random));
    await child.end('SIGKILL');
    const found = JSON.stringify(await reopened(folder));
    expect(trees, `killed after ${random} ms`).toContain(found);
  }
});

test('a change between the kill and the recovery is kept', async () => {
  const { folder, before, after } = makeTrees();
  const total = (await apply(folder, after)) ?? 0;
  let wasHalf = false;
  for (let at = total; at > 0 && !wasHalf; at--) {
    rmSync(folder, { recursive: true });
    cpSync(before, folder, { recursive: true, verbatimSymlinks: true });
    await apply(folder, after, at);
    const half = readFolder(folder);
    // The last operation before the end of the change: all new entries are in their places.
    if (half['was-folder']?.startsWith('644') !== true) continue;
    wasHalf = true;
    writeFileSync(join(folder, 'changed'), 'by a person');
    await reopened(folder);
    expect(readFileSync(join(folder, 'changed'), 'utf8')).toBe('by a person');
  }
  expect(wasHalf).toBe(true);
});
