import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import {
  directory,
  memoryWorkspace,
  type WorkspaceFolder,
  workspaceTools,
} from 'waymark/workspace';
import { refused } from '../../src/testing/workspace-contract/kit.ts';
import { eventually } from '../support/eventually.ts';
import { callTool } from './support/tool-kit.ts';

let base = '';
let root = '';
let folder: WorkspaceFolder;
beforeEach(async () => {
  base = mkdtempSync(join(tmpdir(), 'waymark-tools-'));
  root = join(base, 'project');
  mkdirSync(join(root, 'src'), { recursive: true });
  writeFileSync(join(root, 'src/index.ts'), 'const a = 1;\nconst b = a;\n');
  writeFileSync(join(root, '.env'), 'SECRET=1');
  folder = await directory(root).open({ agent: 'a', sessionId: 's' });
  await folder.lock({ runId: 'r' });
});
afterEach(() => rmSync(base, { recursive: true }));

const call = (name: string, input: object, options = {}) => callTool(folder, name, input, options);
const text = (path: string): string => readFileSync(join(root, path), 'utf8');

describe('read', () => {
  test('gives a file, or some of its lines', async () => {
    expect(await call('read', { path: './src/index.ts' })).toEqual({
      content: 'const a = 1;\nconst b = a;\n',
    });
    writeFileSync(
      join(root, 'long'),
      Array.from({ length: 50_000 }, (_, at) => `line ${at + 1}\n`).join(''),
    );
    const part = { path: 'long', from: 49_999, lines: 1 };
    expect(await call('read', part)).toEqual({ content: 'line 49999\n' });
    const cut = (await call('read', { path: 'long' })) as { content: string; cutAtLine: number };
    expect(cut.content.length).toBeLessThanOrEqual(65_536);
    expect(cut.content.startsWith('line 1\n')).toBe(true);
    expect(cut.content.split('\n').length).toBe(cut.cutAtLine);
  });

  test('refuses what is outside, secret, binary or missing', async () => {
    symlinkSync('/etc', join(root, 'etc'));
    writeFileSync(join(root, 'binary'), Buffer.from([1, 0, 2]));
    await refused(call('read', { path: '../x' }), 'INVALID_ARGUMENT');
    await refused(call('read', { path: '/etc/passwd' }), 'INVALID_ARGUMENT');
    await refused(call('read', { path: 'etc/passwd' }), 'PERMISSION_DENIED');
    await refused(call('read', { path: '.env' }), 'PERMISSION_DENIED');
    await refused(call('read', { path: 'binary' }), 'FAILED_PRECONDITION');
    await refused(call('read', { path: 'missing' }), 'NOT_FOUND');
    await refused(call('read', { path: 'src' }), 'FAILED_PRECONDITION');
    await refused(call('read', {}), 'INVALID_ARGUMENT');
    await refused(callTool(undefined, 'read', { path: 'x' }), 'FAILED_PRECONDITION');
  });
});

describe('write and edit', () => {
  test('write makes and replaces files, and keeps their permissions', async () => {
    expect(await call('write', { path: 'new/deep/file', content: 'é' })).toEqual({
      path: 'new/deep/file',
      created: true,
    });
    expect(text('new/deep/file')).toBe('é');
    chmodSync(join(root, 'new/deep/file'), 0o755);
    expect(await call('write', { path: 'new/deep/file', content: '' })).toMatchObject({
      created: false,
    });
    expect(text('new/deep/file')).toBe('');
    expect(statSync(join(root, 'new/deep/file')).mode & 0o777).toBe(0o755);
  });

  test('edit replaces a text that occurs exactly once', async () => {
    writeFileSync(join(root, 'run.sh'), '\ufeffone\r\ntwo $& three\r\n', { mode: 0o755 });
    const edit = { path: 'run.sh', find: '$& three', replace: '$1 four' };
    expect(await call('edit', edit)).toEqual({ path: 'run.sh', line: 2 });
    expect(text('run.sh')).toBe('\ufeffone\r\ntwo $1 four\r\n');
    expect(statSync(join(root, 'run.sh')).mode & 0o777).toBe(0o755);
    const before = text('src/index.ts');
    for (const find of ['const', 'missing']) {
      await refused(call('edit', { path: 'src/index.ts', find, replace: '' }), 'INVALID_ARGUMENT');
    }
    await refused(
      call('edit', { path: 'src/index.ts', find: '', replace: '' }),
      'INVALID_ARGUMENT',
    );
    writeFileSync(join(root, 'overlap'), 'aaa');
    await refused(call('edit', { path: 'overlap', find: 'aa', replace: 'b' }), 'INVALID_ARGUMENT');
    writeFileSync(join(root, 'latin'), Buffer.from([0x61, 0xe9]));
    await refused(call('edit', { path: 'latin', find: 'a', replace: 'b' }), 'FAILED_PRECONDITION');
    await refused(call('edit', { path: 'missing', find: 'a', replace: 'b' }), 'NOT_FOUND');
    expect(text('src/index.ts')).toBe(before);
  });

  test('both refuse what is outside, secret or a link', async () => {
    symlinkSync(base, join(root, 'up'));
    symlinkSync('src/index.ts', join(root, 'alias'));
    for (const [path, status] of [
      ['../x', 'INVALID_ARGUMENT'],
      ['/tmp/x', 'INVALID_ARGUMENT'],
      ['.env', 'INVALID_ARGUMENT'],
      ['.git/hooks/x', 'INVALID_ARGUMENT'],
      ['up/x', 'FAILED_PRECONDITION'],
      ['alias', 'FAILED_PRECONDITION'],
      ['src', 'FAILED_PRECONDITION'],
      ['src/index.ts/x', 'FAILED_PRECONDITION'],
    ] as const) {
      await refused(call('write', { path, content: 'x' }), status);
    }
    expect(existsSync(join(base, 'x'))).toBe(false);
    expect(text('.env')).toBe('SECRET=1');
    await refused(call('edit', { path: '.env', find: 'SECRET', replace: '' }), 'INVALID_ARGUMENT');
  });
});

describe('list and search', () => {
  test('list gives sizes, links and empty folders, without ignored files', async () => {
    writeFileSync(join(root, '.gitignore'), 'ignored\n');
    writeFileSync(join(root, 'ignored'), '');
    mkdirSync(join(root, 'empty'));
    symlinkSync('src', join(root, 'link'));
    expect(await call('list', {})).toEqual({
      entries: [
        { path: '.gitignore', size: 8 },
        { path: 'empty/' },
        { path: 'link', link: 'src' },
        { path: 'src/index.ts', size: 26 },
      ],
    });
    const inner = { entries: [{ path: 'src/index.ts', size: 26 }] };
    for (const path of ['src', './src/', 'src/index.ts'])
      expect(await call('list', { path })).toEqual(inner);
    expect(await call('list', { path: '.' })).toEqual(await call('list', {}));
    await refused(call('list', { path: '..' }), 'NOT_FOUND');
    for (let at = 0; at < 1_010; at++) writeFileSync(join(root, `many-${at}`), '');
    expect(await call('list', {})).toMatchObject({ more: 14 });
  });

  test('search finds lines', async () => {
    writeFileSync(join(root, 'binary'), Buffer.from('const\0'));
    expect(await call('search', { pattern: '^CONST \\w =', ignoreCase: true })).toEqual({
      matches: [
        { path: 'src/index.ts', line: 1, text: 'const a = 1;' },
        { path: 'src/index.ts', line: 2, text: 'const b = a;' },
      ],
    });
    expect(await call('search', { pattern: '^CONST' })).toEqual({ matches: [] });
    writeFileSync(join(root, 'many'), 'hit\n'.repeat(1_000));
    const { matches, more } = (await call('search', { pattern: 'hit' })) as {
      matches: unknown[];
      more: boolean;
    };
    expect([matches.length, more]).toEqual([100, true]);
    await refused(call('search', { pattern: '(' }), 'INVALID_ARGUMENT');
    await refused(call('search', { pattern: 'x', path: 'none' }), 'NOT_FOUND');
  });

  test('a pattern that takes exponential time ends, and holds up nothing else', async () => {
    writeFileSync(join(root, 'a'), `${'a'.repeat(60)}!`);
    let turns = 0;
    const timer = setInterval(() => turns++, 1);
    await refused(call('search', { pattern: '^(a+)+$' }), 'RESOURCE_EXHAUSTED');
    clearInterval(timer);
    expect(turns).toBeGreaterThan(50);
  });

  test('works in a workspace in memory', async () => {
    const memory = await memoryWorkspace({ files: { 'a/b.txt': 'one\ntwo' } }).open({
      agent: 'a',
      sessionId: 's',
    });
    await memory.lock({ runId: 'r' });
    await callTool(memory, 'edit', { path: 'a/b.txt', find: 'two', replace: 'three' });
    expect(await callTool(memory, 'read', { path: 'a/b.txt' })).toEqual({ content: 'one\nthree' });
    expect(await callTool(memory, 'search', { pattern: 'thr' })).toMatchObject({
      matches: [{ line: 2 }],
    });
    await refused(
      callTool(memory, 'shell', { command: 'ls' }, { shell: true }),
      'FAILED_PRECONDITION',
    );
  });
});

describe('shell', () => {
  const shell = (command: string, options = {}) =>
    call('shell', { command }, { shell: true, ...options });

  test('exists only if it is asked for, and asks a person', async () => {
    const names = async (options = {}) =>
      (
        await workspaceTools(options).list({
          context: {},
          signal: new AbortController().signal,
          report() {},
        })
      ).map(({ name }) => name);
    expect(await names()).toEqual(['read', 'write', 'edit', 'list', 'search']);
    expect(await names({ shell: 'ask' })).toContain('shell');
    expect(await shell('touch made', { shell: 'ask' })).toEqual({
      interrupted: { approval: { tool: 'shell', input: { command: 'touch made' } } },
    });
    expect(existsSync(join(root, 'made'))).toBe(false);
    expect(() => workspaceTools({ shell: 'yes' as 'ask' })).toThrow("true, false or 'ask'");
    expect(() => workspaceTools({ timeout: 0, shell: true })).toThrow('positive');
  });

  test('gives the output of both streams in order, and the exit code', async () => {
    expect(await shell('echo one; echo two >&2; echo three; pwd; exit 3')).toEqual({
      exitCode: 3,
      output: `one\ntwo\nthree\n${root}\n`,
    });
    expect(await shell('nonsense-command')).toMatchObject({ exitCode: 127 });
    expect(await shell('kill -9 $$')).toMatchObject({ exitCode: null });
  });

  test('passes on no secrets', async () => {
    process.env.WAYMARK_TEST_SECRET = 'secret';
    const { output } = (await shell('env', { env: { MINE: '1' } })) as { output: string };
    delete process.env.WAYMARK_TEST_SECRET;
    expect(output).toContain('PATH=');
    expect(output).toContain('MINE=1');
    expect(output).not.toContain('secret');
  });

  test('cuts the middle of a long output', async () => {
    const { output } = (await shell('echo begin; yes | head -c 3000000; echo end', {
      maxOutputBytes: 1_000,
    })) as {
      output: string;
    };
    expect(output).toMatch(/^begin\ny\n[\s\S]*\n\[… 299\d+ bytes cut …\]\n[\s\S]*end\n$/);
    expect(output.length).toBeLessThan(1_100);
  });

  test('ends with all of its processes after its time, and what it has left in the background', async () => {
    const slow = (await shell('(sleep 600; touch late) & sleep 600', {
      timeout: 300,
    })) as object;
    expect(slow).toMatchObject({ exitCode: null, timedOut: true });
    expect(await shell('sleep 601 & echo $! > pid')).toMatchObject({ exitCode: 0 });
    const pid = Number(text('pid'));
    await eventually(() => !isAlive(pid));
  });

  test('ends with all of its processes when the turn is aborted', async () => {
    const stopped = new AbortController();
    const running = shell('sleep 602 & echo $! > pid; wait', { signal: stopped.signal });
    const pid = await eventually(() => existsSync(join(root, 'pid')) && Number(text('pid')));
    stopped.abort();
    await refused(running, 'CANCELLED');
    await eventually(() => !isAlive(pid));
  });
});

function isAlive(pid: number): boolean {
  try {
    return !readFileSync(`/proc/${pid}/stat`, 'utf8').includes(') Z ');
  } catch {
    return false;
  }
}
