import { writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { afterAll, describe, expect, test } from 'vitest';
import { agentsFile, command, Running, tempFolder } from './support/command.ts';

const folder = tempFolder();
const started: Running[] = [];
afterAll(() => {
  for (const { child } of started) child.kill('SIGKILL');
  folder.remove();
});

const dev = (...args: string[]): Running => {
  const running = new Running(['dev', ...args], folder.path);
  started.push(running);
  return running;
};
const urlOf = ({ stdout }: Running): string => /Server +(http:\S+)/.exec(stdout)?.[1] ?? '';
const agentsAt = async (url: string): Promise<string[]> => {
  const { items } = (await (await fetch(`${url}/agents`)).json()) as { items: { name: string }[] };
  return items.map(({ name }) => name);
};
const agents = (name: string): string => `
  import { memoryStore, waymark } from 'waymark';
  import { scriptedModel } from 'waymark/testing';
  import { greeting } from './greeting.ts';
  export const app = waymark({ model: scriptedModel({ patterns: [], otherwise: greeting }), store: memoryStore() });
  app.defineAgent({ name: '${name}' });
`;

describe('dev', () => {
  test('serves a file, says what is there, and ends cleanly at Ctrl-C', async () => {
    const running = dev(agentsFile, '--port', '0');
    await running.see(/worker +Works/);
    expect(running.stdout).toContain('Model   a script for tests');
    expect(running.stdout).toContain('Store   sqlite');
    const url = urlOf(running);
    expect(url).toMatch(/^http:\/\/127\.0\.0\.1:\d+$/);
    const answer = await command(folder.path, ['chat', 'talker', 'Hi', '--url', url]);
    expect(answer).toMatchObject({ code: 0, stdout: 'Message 1.\n' });
    expect(answer.stderr).toContain(`--url ${url}`);
    const { stdout } = await command(folder.path, ['sessions', '--url', url, '--json']);
    expect(JSON.parse(stdout).items).toHaveLength(1);
    running.interrupt();
    const { code, stderr } = await running.finished;
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    await expect(fetch(url)).rejects.toThrow();
  });

  test('S146 shows the message and the stack of what agents throw, once; their clients see neither', async () => {
    const running = dev(agentsFile, '--port', '0');
    await running.see(/worker +Works/);
    const asked = ['chat', 'thrower', 'x', '--debug', '--url', urlOf(running)];
    const client = await command(folder.path, asked);
    expect(client.code).toBe(1);
    expect(client.stderr).toContain('✗ An unexpected error occurred. (INTERNAL)');
    expect(client.stdout + client.stderr).not.toContain('my bug');
    await running.see(/my bug is here\n {4}at /);
    running.interrupt();
    const { stdout, stderr } = await running.finished;
    expect(stderr).toMatch(
      /^✗ Agent "thrower" failed in turn 1 \(session .*, run .*\)\nTypeError: my bug/,
    );
    expect(`${stdout}${stderr}`.match(/my bug is here/g)).toHaveLength(1);
  });

  test('starts anew when any of its files changes, on the same address', async () => {
    writeFileSync(join(folder.path, 'greeting.ts'), `export const greeting = 'Good morning';`);
    writeFileSync(join(folder.path, 'agents.ts'), agents('first'));
    const running = dev('--port', '0');
    await running.see(/Server/);
    await running.see(/first/);
    const url = urlOf(running);
    const ask = () => command(folder.path, ['sessions', '--url', url]);
    expect(running.stdout).toContain('sessions are lost on restart');

    writeFileSync(join(folder.path, 'greeting.ts'), `export const greeting = 'Good evening';`);
    await running.see(/greeting\.ts changed[\s\S]*Reloaded/);
    const { stdout } = await command(folder.path, ['chat', 'first', 'Hi', '--url', url]);
    expect(stdout).toBe('Good evening\n');

    running.stderr = '';
    writeFileSync(join(folder.path, 'greeting.ts'), `export const greeting = ;`);
    await running.see(/greeting\.ts:1: Expression expected[\s\S]*Waiting for a change/);
    expect((await ask()).code).toBe(5);

    running.stderr = '';
    writeFileSync(join(folder.path, 'agents.ts'), agents('second'));
    writeFileSync(join(folder.path, 'greeting.ts'), `export const greeting = 'Hello';`);
    await running.see(/Reloaded/);
    expect(await agentsAt(url)).toEqual(['second']);
    running.interrupt();
    expect((await running.finished).code).toBe(0);
  });

  test('says that a port is taken when it was asked for it', async () => {
    const server = createServer().listen(0, '127.0.0.1');
    await new Promise((listening) => server.once('listening', listening));
    const address = server.address();
    const port = typeof address === 'object' && address ? String(address.port) : '';
    // With and without the supervisor, which otherwise waits for a change of a file.
    const plain = await command(folder.path, ['dev', agentsFile, '--no-reload', '--port', port]);
    const { code, stderr } = await command(folder.path, ['dev', agentsFile, '--port', port]);
    server.close();
    expect(plain).toEqual({ code: 5, stdout: '', stderr });
    expect(code).toBe(5);
    const message = `Port ${port} on 127.0.0.1 is in use. Stop the other process, or choose another port with --port.`;
    expect(stderr).toBe(`✗ ${message}\n`);
  });

  test('refuses a file without an app, and one that is not there', async () => {
    writeFileSync(join(folder.path, 'empty.ts'), 'export const nothing = 1;');
    const empty = await command(folder.path, ['dev', 'empty.ts', '--no-reload']);
    expect(empty.code).toBe(1);
    expect(empty.stderr).toContain('empty.ts does not export an app');
    for (const name of [['dev', '--no-reload'], ['serve']]) {
      const named = await command(folder.path, [...name, '--file', 'empty.ts']);
      expect(named.stderr).toContain('empty.ts does not export an app');
    }
    expect((await command(folder.path, ['dev', 'nowhere.ts'])).code).toBe(3);
  });

  test('listens on this machine only', async () => {
    // With the supervisor, too: no change of a file changes an option.
    for (const reload of [['--no-reload'], []]) {
      const { code, stderr } = await command(folder.path, [
        ...['dev', agentsFile, '--host', '0.0.0.0'],
        ...reload,
      ]);
      expect(code).toBe(1);
      expect(stderr).toContain('lets other machines in');
    }
  });
});
