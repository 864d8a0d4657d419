import { execFileSync } from 'node:child_process';
import {
  appendFileSync,
  chmodSync,
  existsSync,
  linkSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  truncateSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { type DirectoryOptions, directory, type WorkspaceFolder } from 'waymark/workspace';
import {
  applyTree,
  contentsOf,
  fileOf,
  linkTo,
  readText,
  refused,
  shapeOf,
  treeOf,
} from '../../src/testing/workspace-contract/kit.ts';
import { fileSystemTime } from '../../src/workspace/scanner.ts';
import { eventually } from '../support/eventually.ts';
import { readFolder } from './support/folder-oracle.ts';

let base = '';
let root = '';
beforeEach(() => {
  base = mkdtempSync(join(tmpdir(), 'waymark-directory-'));
  root = join(base, 'project');
  mkdirSync(root);
});
afterEach(() => rmSync(base, { recursive: true }));

function put(path: string, text = ''): void {
  mkdirSync(dirname(join(root, path)), { recursive: true });
  writeFileSync(join(root, path), text);
}

const open = (options?: DirectoryOptions, exclude: readonly string[] = []) =>
  directory(root, options).open({ agent: 'a', sessionId: 's', exclude });

async function pathsIn(folder: WorkspaceFolder): Promise<readonly string[]> {
  return Object.keys(shapeOf((await folder.scan()).tree));
}

describe('what is in the tree', () => {
  test('the same files as git lists', async () => {
    const rules = [
      '*.log',
      '!important.log',
      '/dist',
      'tmp/',
      'docs/**/*.pdf',
      '**/cache/**',
      'a?c',
      '[xyz].txt',
    ];
    put(
      '.gitignore',
      `# comment\n\n${rules.join('\n')}\n\\#file\n\\!bang\ntrailing\\ \n foo\nb*r/baz\r\n`,
    );
    put('sub/.gitignore', '!*.log\n/only-here\nnested/*\n!nested/keep\n');
    put('sub/deep/.gitignore', '*\n!.gitignore\n!*.md\n');
    const names = [
      'x.log',
      'important.log',
      'abc',
      'a-c',
      'x.txt',
      'w.txt',
      'only-here',
      '#file',
      '!bang',
      'trailing ',
      ' foo',
      'foo',
    ];
    const folders = [
      '',
      'dist',
      'tmp',
      'docs',
      'docs/a',
      'docs/a/b',
      'cache',
      'src/cache/x',
      'sub',
      'sub/nested',
      'sub/nested/keep',
      'sub/deep',
      'sub/deep/er',
      'bar/baz',
      'sub/bar/baz',
      'ünï',
    ];
    for (const folder of folders) {
      for (const name of [...names, 'r.pdf', 'r.md']) put(join(folder, name), name);
    }
    execFileSync('git', ['init', '-q'], { cwd: root });
    const git = ['-c', 'core.quotePath=false', '-c', 'core.excludesFile=/dev/null'];
    const listed = execFileSync('git', [...git, 'ls-files', '-coz', '--exclude-standard'], {
      cwd: root,
    });
    const expected = listed
      .toString()
      .split('\0')
      .filter((path) => path !== '' && !path.startsWith('.waymark'));
    expect([...(await pathsIn(await open()))].sort()).toEqual(expected.sort());
    expect(expected.length).toBeGreaterThan(40);
  });

  test('never git, packages, secrets and metadata', async () => {
    for (const path of [
      '.git/HEAD',
      'node_modules/x',
      '.env',
      '.env.local',
      'a/.env',
      'a/.env.example',
    ])
      put(path);
    put('.gitignore', '!.env\n!node_modules\n');
    const folder = await open();
    expect(await pathsIn(folder)).toEqual(['.gitignore', 'a/.env.example']);
    expect(readdirSync(join(root, '.waymark'))).toContain('.gitignore');
    for (const path of ['.env', 'a/.env', '.git/HEAD', '.waymark/.gitignore']) {
      await refused(readText(folder, path), 'PERMISSION_DENIED');
    }
  });

  test('nothing, if a .gitignore excludes everything', async () => {
    put('.gitignore', '*\n');
    put('a/b', 'x');
    expect(await pathsIn(await open())).toEqual([]);
  });

  test('no files of the store', async () => {
    for (const path of ['data.db', 'data.db-wal', 'data.db-shm', 'data.db.txt', 'store/x'])
      put(path);
    const exclude = [join(root, 'data.db'), join(root, 'store'), join(base, 'elsewhere')];
    expect(await pathsIn(await open({}, exclude))).toEqual(['data.db.txt']);
  });

  test('patterns that would take too long are listed, and not applied', async () => {
    put('.gitignore', `${'a*'.repeat(40)}b\n${'**/x/'.repeat(10)}y\n*.log\n`);
    put('a'.repeat(200), '1');
    put('x.log', '2');
    const { skipped } = await (await open()).scan();
    expect(skipped).toEqual([
      { path: '.gitignore:1', reason: 'rules' },
      { path: '.gitignore:2', reason: 'rules' },
    ]);
    expect(await pathsIn(await open())).toEqual(['.gitignore', 'a'.repeat(200)]);
  });

  test('a change of rules applies to files that are known', async () => {
    put('a/x.log', '1');
    put('a/y', '2');
    const folder = await open();
    expect(await pathsIn(folder)).toEqual(['a/x.log', 'a/y']);
    put('.gitignore', '*.log\n');
    expect(await pathsIn(folder)).toEqual(['.gitignore', 'a/y']);
    put('a/.gitignore', '!x.log\n');
    expect(await pathsIn(folder)).toEqual(['.gitignore', 'a/.gitignore', 'a/x.log', 'a/y']);
    put('a/.gitignore', '#x.log\n');
    expect(await pathsIn(folder)).toEqual(['.gitignore', 'a/.gitignore', 'a/y']);
  });
});

describe('what changed', () => {
  test('is found although size and times are the same', async () => {
    put('a', 'one');
    const folder = await open();
    const time = new Date('2020-01-01');
    utimesSync(join(root, 'a'), time, time);
    await folder.scan();
    writeFileSync(join(root, 'a'), 'two');
    utimesSync(join(root, 'a'), time, time);
    expect(statSync(join(root, 'a')).mtimeMs).toBe(time.getTime());
    expect(shapeOf((await folder.scan()).tree)).toEqual({ a: fileOf('two') });
  });

  test('is found when it is written right after a scan', async () => {
    const folder = await open();
    for (let at = 100; at < 200; at++) {
      writeFileSync(join(root, 'a'), String(at));
      expect(shapeOf((await folder.scan()).tree)).toEqual({ a: fileOf(String(at)) });
    }
  });

  test('is found when the clock of the files is wrong', async () => {
    put('a', 'one');
    utimesSync(join(root, 'a'), new Date('2099-01-01'), new Date('2099-01-01'));
    const folder = await open();
    await folder.scan();
    const { mtime } = statSync(join(root, 'a'));
    writeFileSync(join(root, 'a'), 'two');
    utimesSync(join(root, 'a'), mtime, mtime);
    expect(shapeOf((await folder.scan()).tree)).toEqual({ a: fileOf('two') });
  });

  test('is found in folders that are renamed, removed and linked', async () => {
    put('a/b/c', '1');
    put('d/e', '2');
    const folder = await open();
    await folder.scan();
    execFileSync('mv', ['a', 'z'], { cwd: root });
    linkSync(join(root, 'd/e'), join(root, 'z/hard'));
    expect(await pathsIn(folder)).toEqual(['d/e', 'z/b/c', 'z/hard']);
    rmSync(join(root, 'z'), { recursive: true });
    chmodSync(join(root, 'd/e'), 0o755);
    expect(shapeOf((await folder.scan()).tree)).toEqual({
      'd/e': { ...fileOf('2'), isExecutable: true },
    });
  });

  test('is found by the next process, which reads only files that it does not know', async () => {
    for (let at = 0; at < 100; at++) put(`folder/${at}`, `content ${at}`);
    const first = await open();
    const lock = await first.lock({ runId: 'r' });
    // The cache leaves out files that were written shortly before the scan.
    await eventually(async () => {
      await first.scan();
      const now = fileSystemTime(root) ?? 0;
      expect(now - statSync(join(root, 'folder/99')).ctimeMs).toBeGreaterThan(50);
    });
    await first.scan();
    await lock.release();
    const index = join(root, '.waymark/index');
    const text = readFileSync(index, 'utf8');
    expect(text).toContain(fileOf('content 7').hash);
    // A hash that only the index has shows that the file is not read again.
    writeFileSync(index, text.replace(fileOf('content 7').hash, fileOf('from the index').hash));
    appendFileSync(join(root, 'folder/8'), 'more');
    const shape = shapeOf((await (await open()).scan()).tree);
    expect(shape['folder/7']).toMatchObject({ hash: fileOf('from the index').hash });
    expect(shape['folder/8']).toEqual(fileOf('content 8more'));
    writeFileSync(index, '{"format":1}\nnonsense');
    expect(shapeOf((await (await open()).scan()).tree)['folder/7']).toEqual(fileOf('content 7'));
  });
});

describe('what cannot be stored', () => {
  test('is listed, and stays as it is', async () => {
    put('normal', 'x');
    execFileSync('sh', ['-c', 'mkfifo pipe'], { cwd: root });
    const server = createServer().listen(join(root, 'socket'));
    await new Promise((resolve) => server.once('listening', resolve));
    writeFileSync(Buffer.concat([Buffer.from(`${root}/odd-`), Buffer.from([0xff, 0xfe])]), 'x');
    writeFileSync(join(root, 'large'), '');
    truncateSync(join(root, 'large'), 5 * 2 ** 30);
    put('only/larger', 'x'.repeat(2_000));
    const folder = await open({ maxFileBytes: 1_000 });
    const scan = await folder.scan();
    expect(scan.skipped).toEqual([
      { path: 'large', reason: 'too-large' },
      { path: 'odd-\\xff\\xfe', reason: 'name' },
      { path: 'only/larger', reason: 'too-large' },
      { path: 'pipe', reason: 'special' },
      { path: 'socket', reason: 'special' },
    ]);
    expect(shapeOf(scan.tree)).toEqual({ normal: fileOf('x') });
    const lock = await folder.lock({ runId: 'r' });
    const before = existsSync(join(root, 'pipe'));
    for (const path of ['large', 'pipe', 'socket', 'only/larger']) {
      const change = { path, before: null, after: fileOf('y') };
      await refused(folder.apply([change], contentsOf('y')), 'FAILED_PRECONDITION');
    }
    expect(before && existsSync(join(root, 'pipe'))).toBe(true);
    await refused(readText(folder, 'pipe'), 'FAILED_PRECONDITION');
    await lock.release();
    server.close();
  });

  test('names with U+FFFD are stored', async () => {
    put('odd \ufffd', 'x');
    const scan = await (await open()).scan();
    expect(shapeOf(scan.tree)).toEqual({ 'odd \ufffd': fileOf('x') });
    expect(scan.skipped).toEqual([]);
  });

  test('too many files are an error that says what to do', async () => {
    for (let at = 0; at < 5; at++) put(`f${at}`, 'x');
    const many = await refused((await open({ maxFiles: 4 })).scan(), 'RESOURCE_EXHAUSTED');
    expect(many.message).toContain('`maxFiles`');
    const much = await refused((await open({ maxBytes: 4 })).scan(), 'RESOURCE_EXHAUSTED');
    expect(much.message).toContain('`maxBytes`');
    expect(() => directory(root, { maxFiles: 0 })).toThrow('positive number');
    expect(() => directory(root, { maxFile: 1 } as object)).toThrow('Unknown option');
  });

  test('a folder that is gone is an error, not an empty tree', async () => {
    const session = { agent: 'a', sessionId: 's' };
    await expect(directory(join(base, 'none')).open(session)).rejects.toMatchObject({
      status: 'NOT_FOUND',
      message: expect.stringContaining('Create it first.'),
    });
    const own = directory.perSession({ in: join(base, 'own'), from: join(base, 'no-template') });
    await expect(own.open(session)).rejects.toMatchObject({
      status: 'NOT_FOUND',
      message: expect.stringContaining('"no-template"'),
    });
    const folder = await open();
    put('a', 'x');
    await folder.scan();
    rmSync(root, { recursive: true });
    await refused(folder.scan(), 'NOT_FOUND');
    await refused(folder.lock({ runId: 'r' }), 'NOT_FOUND');
    writeFileSync(root, 'a file');
    await refused(folder.scan(), 'FAILED_PRECONDITION');
    rmSync(root);
    mkdirSync(root);
  });
});

describe('links', () => {
  test('are not followed out of the folder', async () => {
    writeFileSync(join(base, 'secret'), 'secret');
    mkdirSync(join(base, 'outside'));
    symlinkSync('../secret', join(root, 'to-file'));
    symlinkSync('../outside', join(root, 'to-folder'));
    symlinkSync('inner', join(root, 'inside'));
    put('inner/file', 'x');
    const folder = await open();
    expect(await pathsIn(folder)).toEqual(['inner/file', 'inside', 'to-file', 'to-folder']);
    await refused(readText(folder, 'to-file'), 'PERMISSION_DENIED');
    await refused(readText(folder, 'to-folder/x'), 'NOT_FOUND');
    expect(await readText(folder, 'inside/file')).toBe('x');
    await folder.lock({ runId: 'r' });
    for (const path of ['to-folder/x', 'inside/x']) {
      const change = { path, after: fileOf('x') };
      await refused(folder.apply([change], contentsOf('x')), 'FAILED_PRECONDITION');
    }
    expect(readdirSync(join(base, 'outside'))).toEqual([]);
    await folder.apply([{ path: 'to-file', after: fileOf('x') }], contentsOf('x'));
    expect(readFileSync(join(base, 'secret'), 'utf8')).toBe('secret');
    expect(readFileSync(join(root, 'to-file'), 'utf8')).toBe('x');
  });

  test('the metadata is never behind one', async () => {
    mkdirSync(join(base, 'outside'));
    symlinkSync('../outside', join(root, '.waymark'));
    const folder = await open();
    await folder.lock({ runId: 'r' });
    await folder.apply([{ path: 'a', after: fileOf('x') }], contentsOf('x'));
    expect(readdirSync(join(base, 'outside'))).toEqual([]);
  });
});

test("the user's own git sees nothing", async () => {
  const git = (...args: readonly string[]): string =>
    execFileSync('git', ['-c', 'user.name=a', '-c', 'user.email=a@b', ...args], {
      cwd: root,
    }).toString();
  put('a', '1');
  put('b/c', '2');
  git('init', '-q');
  git('add', '-A');
  git('commit', '-qm', 'first');
  put('a', 'changed');
  put('new', '3');
  const status = git('status', '--porcelain');
  const before = readFolder(join(root, '.git'));
  const folder = await open();
  const lock = await folder.lock({ runId: 'r' });
  const { tree } = await folder.scan();
  const { content } = contentsOf('1', '2', '3', 'changed');
  await applyTree(folder, treeOf({ other: 'x', 'b/d': linkTo('c') }));
  await applyTree(folder, { tree, content });
  await lock.release();
  expect(readFolder(join(root, '.git'))).toEqual(before);
  expect(git('status', '--porcelain')).toBe(status);
  expect(git('fsck')).toBe('');
});

describe('a folder for each session', () => {
  test('begins with the template, as it is', async () => {
    put('a.sh', 'x');
    put('.git/HEAD', 'ref');
    put('.waymark/old', 'y');
    put('node_modules/m/index.js', 'z');
    chmodSync(join(root, 'a.sh'), 0o755);
    symlinkSync('a.sh', join(root, 'link'));
    const workspace = directory.perSession({ from: root, in: join(root, 'sessions') });
    const open = (sessionId: string) => workspace.open({ agent: 'a', sessionId });
    const [one, again, two] = await Promise.all([open('1'), open('1'), open('2')]);
    expect(one.id).toBe(again.id);
    expect(one.id).not.toBe(two.id);
    const expected = readFolder(root);
    for (const path of Object.keys(expected))
      if (path.startsWith('sessions')) delete expected[path];
    expect(readFolder(one.path as string)).toEqual(expected);
    expect(readdirSync(join(root, 'sessions')).length).toBe(2);
    writeFileSync(join(one.path as string, 'mine'), 'x');
    expect(existsSync(join((await open('1')).path as string, 'mine'))).toBe(true);
    rmSync(one.path as string, { recursive: true });
    expect(existsSync(join((await open('1')).path as string, 'mine'))).toBe(false);
  });

  test('has a name of its own for each owner and agent, inside of its folder', async () => {
    const workspace = directory.perSession({ in: join(base, 'sessions') });
    const uuid = '0197f7a2-1111-7222-8333-444455556666';
    const sessions = [
      { agent: 'a', sessionId: uuid },
      { agent: 'a', owner: 'o', sessionId: uuid },
      { agent: 'a', sessionId: '../../up' },
      { agent: 'b', sessionId: '../../up' },
      { agent: 'a', sessionId: '.waymark' },
      { agent: 'a', sessionId: 'x'.repeat(5_000) },
    ];
    const opened = await Promise.all(sessions.map((session) => workspace.open(session)));
    expect(new Set(opened.map(({ id }) => id)).size).toBe(sessions.length);
    for (const { path } of opened) expect(dirname(path as string)).toBe(join(base, 'sessions'));
    expect(opened[0]?.path).toBe(join(base, 'sessions', uuid));
  });

  test('does not exist if its tree cannot be read', async () => {
    const workspace = directory.perSession({ in: join(base, 'sessions') });
    const start = async () => ({ ...treeOf({ a: 'x' }), content: contentsOf('wrong').content });
    const session = { agent: 'a', sessionId: 's' };
    await refused(workspace.open({ ...session, start }), 'DATA_LOSS');
    expect(readdirSync(join(base, 'sessions'))).toEqual([]);
    const folder = await workspace.open({ ...session, start: async () => treeOf({ a: 'x' }) });
    expect(Object.keys(readFolder(folder.path as string))).toEqual(['a']);
  });
});

test('a checkout is exactly the tree', async () => {
  const tree = treeOf({
    'a/b': 'x',
    run: { text: 'y', isExecutable: true },
    l: linkTo('a'),
    'c/': null,
  });
  const target = join(base, 'new/folder');
  await directory(root).checkout(target, tree);
  expect(readFolder(target)).toMatchObject({ a: 'folder', c: 'folder', l: 'link to a' });
  expect(readdirSync(target).sort()).toEqual(['a', 'c', 'l', 'run']);
  expect(readdirSync(join(base, 'new'))).toEqual(['folder']);
});
