import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { endProcesses, startProcess, type TestProcess } from '../support/child-process.ts';
import { linkPackage, type RuntimeName, root, runtimes } from './commands.ts';

const folder = mkdtempSync(join(tmpdir(), 'waymark-runtimes-'));
beforeAll(linkPackage);
afterEach(endProcesses);
afterAll(() => rmSync(folder, { recursive: true, force: true }));

describe.each(['node', 'node22', 'bun', 'deno'] satisfies RuntimeName[])(
  'the command line on %s',
  (name) => {
    const start = (...args: string[]): TestProcess => {
      const { execPath: command, execArgv } = runtimes[name];
      return startProcess([...execArgv, join(root, 'dist/cli.mjs'), ...args], {
        command,
        cwd: join(root, 'test/runtimes/app'),
        env: { APP_STORE: join(folder, `${name}.db`) },
        mayDie: true,
      });
    };

    test('chats, and lists the messages', async () => {
      const chat = start('chat', 'chat', 'Hi', '--file', 'agents.ts');
      await chat.finished();
      expect(chat.lines).toContain('hello there');
      const list = start('sessions', '--file', 'agents.ts');
      await list.finished();
      expect(list.lines.join('\n')).toMatch(/chat +1 .*Hi/);
    });

    test('serves, answers over HTTP, and ends at SIGTERM', async () => {
      const server = start('serve', 'agents.ts', '--port', '0', '--host', '127.0.0.1');
      const url = await server.when(
        () => /http:\/\/127\.0\.0\.1:\d+/.exec(server.lines.join('\n') + server.stderr)?.[0],
        'its address',
      );
      const message = { role: 'user', content: [{ text: 'Hi' }] };
      const response = await fetch(`${url}/agents/chat/turns`, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify({ input: { message } }),
      });
      expect(await response.json()).toMatchObject({ finishReason: 'stop', output: 'hello there' });
      expect((await server.end('SIGTERM')).code).toBe(0);
    });
  },
);
