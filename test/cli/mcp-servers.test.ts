import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, expect, test } from 'vitest';
import { command, tempFolder } from './support/command.ts';

const folder = tempFolder();
afterAll(() => folder.remove());

const run = (...args: string[]) => command(folder.path, ['mcp', ...args]);
const script = fileURLToPath(new URL('../mcp/support/raw-server.ts', import.meta.url));

test('a server is added, listed and tried', async () => {
  expect(await run('list')).toMatchObject({ code: 0, stdout: '' });
  const added = await run('add', 'raw', '--env', 'TOKEN=secret', '--', process.execPath, script);
  expect(added.stderr).toBe('');
  expect(added.stdout).toMatch(/^Added raw with \d+ tools to mcp\.json\.\n/);
  expect(added.stdout).toContain(`const raw = mcp('raw', {"command":`);
  expect(added.stdout).not.toContain('secret');
  expect(JSON.parse(readFileSync(join(folder.path, 'mcp.json'), 'utf8'))).toEqual({
    mcpServers: { raw: { command: process.execPath, args: [script], env: { TOKEN: 'secret' } } },
  });

  const [listed, tools, called, unknown, wrong] = await Promise.all([
    run('list', '--json'),
    run('test', 'raw'),
    run('test', 'raw', 'echo', '{ "text": "hi" }'),
    run('test', 'raw', 'eko'),
    run('test', 'raw', 'echo', 'hi'),
  ]);
  expect(JSON.parse(listed.stdout)).toMatchObject([
    { name: 'raw', tools: expect.arrayContaining(['echo', 'remove']) },
  ]);
  expect(tools.stdout).toMatch(/^echo {2}Repeats a text\.$/m);
  expect(called).toMatchObject({ code: 0, stdout: 'echo hi\n' });
  expect(unknown).toMatchObject({ code: 3 });
  expect(unknown.stderr).toContain('There is no tool "eko". Available tools: echo, ');
  expect(wrong).toMatchObject({ code: 2 });
});

test('a server that does not work is not added; one that is down is told apart from the others', async () => {
  const failed = await run('add', 'down', '--', process.execPath, script, 'exit');
  expect(failed).toMatchObject({ code: 5, stdout: '' });
  expect(failed.stderr).toContain('MCP server "down"');
  const missing = await run('test', 'down');
  expect(missing).toMatchObject({ code: 3 });
  expect(missing.stderr).toContain('There is no MCP server "down" in mcp.json.');
});
