import { readFileSync } from 'node:fs';
import { afterAll, describe, expect, test } from 'vitest';
import { exitCodeMeanings } from '../../src/cli/exit-code.ts';
import { agentsFile, command, tempFolder } from './support/command.ts';

const folder = tempFolder();
afterAll(() => folder.remove());

const docs = readFileSync(new URL('../../docs/cli.md', import.meta.url), 'utf8');
const run = (...args: string[]) => command(folder.path, args);

describe('how the command is called', () => {
  test('help lists every command, and each command has its own', async () => {
    const { code, stdout } = await run('--help');
    expect(code).toBe(0);
    for (const [exit, meaning] of Object.entries(exitCodeMeanings)) {
      expect(stdout).toContain(`${exit.padStart(5)}  ${meaning}`);
      expect(docs).toContain(`| ${exit} | ${meaning} |`);
    }
    const names =
      'init dev chat serve worker sessions snapshots show diff files checkout restore fork label rename runs watch abort retry ' +
      'backup restore-backup verify prune erase export import migrate';
    for (const name of names.split(' ')) expect(stdout).toMatch(new RegExp(`^ {2}${name} `, 'm'));
    const chat = await run('chat', '--help');
    expect(chat.stdout).toContain('waymark chat [agent] [message] [options]');
    expect(chat.stdout).toContain('--snapshot <id>');
  });

  test('without a command it shows the help and exits with 2', async () => {
    const { code, stdout } = await run();
    expect(code).toBe(2);
    expect(stdout).toContain('Usage');
  });

  test('a mistyped command and a mistyped option are told what was meant', async () => {
    const [first, second] = await Promise.all([
      run('snapshot', 'x'),
      run('sessions', '--querry', 'x'),
    ]);
    expect(first).toMatchObject({ code: 2, stdout: '' });
    expect(first.stderr).toBe(
      '✗ There is no command "snapshot". Did you mean "snapshots"? See "waymark --help".\n',
    );
    expect(second.code).toBe(2);
    expect(second.stderr).toContain('Did you mean --query?');
  });

  test('a typo never leads to something that deletes', async () => {
    const [command, short, option] = await Promise.all([
      run('eras', 'x'),
      run('abor', 'x'),
      run('erase', 'x', '--ye'),
    ]);
    expect(command.stderr).toBe('✗ There is no command "eras". See "waymark --help".\n');
    expect(short.stderr).not.toContain('"abort"');
    expect(option.code).toBe(2);
    expect(option.stderr).not.toContain('--yes');
  });

  test('what is missing and what is too much is said', async () => {
    const [missing, more, number] = await Promise.all([
      run('diff', 'a'),
      run('sessions', 'a'),
      run('sessions', '--limit', 'many'),
    ]);
    expect(missing).toMatchObject({ code: 2 });
    expect(missing.stderr).toContain('<to> is missing: waymark diff <from> <to>.');
    expect(more.stderr).toContain('takes no arguments');
    expect(number.stderr).toContain('--limit takes a whole number');
  });

  test('errors are one line; --debug shows where they come from, --json gives them as data', async () => {
    const [plain, debug, json] = await Promise.all([
      run('show', 'x', '--file', 'nowhere.ts'),
      run('show', 'x', '--file', 'nowhere.ts', '--debug'),
      run('show', 'x', '--file', 'nowhere.ts', '--json'),
    ]);
    expect(plain).toMatchObject({
      code: 3,
      stdout: '',
      stderr: '✗ There is no file nowhere.ts.\n',
    });
    expect(debug.stderr).toContain('at findAgentsFile');
    expect(JSON.parse(json.stderr)).toEqual({
      error: { status: 'NOT_FOUND', message: 'There is no file nowhere.ts.' },
    });
  });

  test('without a file of agents it says where one was looked for', async () => {
    const { code, stderr } = await run('sessions');
    expect(code).toBe(3);
    expect(stderr).toContain('src/agents.ts');
    expect(stderr).toContain('waymark init');
  });

  test('a server that is not there is exit code 5', async () => {
    const { code, stderr } = await run('sessions', '--url', 'http://127.0.0.1:9');
    expect(code).toBe(5);
    expect(stderr).toMatch(/^✗ .*127\.0\.0\.1:9.*\n$/);
  });

  test('an unknown agent is told which there are', async () => {
    const { code, stderr } = await run('chat', 'nobody', 'Hi', '--file', agentsFile);
    expect(code).toBe(3);
    expect(stderr).toContain('Agents: talker, bare, worker, thrower');
  });
});
