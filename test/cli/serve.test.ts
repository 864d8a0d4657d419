import { createServer } from 'node:net';
import { fileURLToPath } from 'node:url';
import { afterAll, describe, expect, test } from 'vitest';
import { agentsFile, command, Running, tempFolder } from './support/command.ts';

const folder = tempFolder();
const authed = fileURLToPath(new URL('./fixture/authed.ts', import.meta.url));
const started: Running[] = [];
afterAll(() => {
  for (const { child } of started) child.kill('SIGKILL');
  folder.remove();
});

const serve = (args: readonly string[], env: Record<string, string> = {}): Running => {
  const running = new Running(['serve', ...args], folder.path, env);
  started.push(running);
  return running;
};
const urlOf = ({ stderr }: Running): string => / at (http:\S+)\. /.exec(stderr)?.[1] ?? '';

describe('serve', () => {
  test('serves with the options that the file exports, and drains at SIGTERM', async () => {
    const running = serve([authed, '--port', '0', '--host', '0.0.0.0']);
    await running.see(/Serving 1 agent of .*authed\.ts at http:\S+\. /);
    const url = urlOf(running).replace('0.0.0.0', '127.0.0.1');
    expect((await fetch(`${url}/agents`)).status).toBe(401);
    const header = ['--header', 'authorization: Bearer secret'];
    const answer = await command(folder.path, ['chat', 'chat', 'Hi', '--url', url, ...header]);
    expect(answer).toMatchObject({ code: 0, stdout: 'Hello.\n' });
    expect(answer.stderr).toContain(`--url ${url} --header "authorization: …"`);
    const refused = await command(folder.path, ['chat', 'chat', 'Hi', '--url', url]);
    expect(refused.stderr).toContain('use --header "authorization: Bearer …"');
    // There is no Studio.
    expect((await fetch(`${url}/studio/`)).status).not.toBe(200);
    running.child.kill('SIGTERM');
    const { code, stdout, stderr } = await running.finished;
    expect(code).toBe(0);
    expect(stderr).toContain('Draining');
    const entries = stdout
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line));
    expect(entries.at(0)).toMatchObject({ level: 'info', msg: 'listening' });
  });

  test('needs authentication to listen for other machines', async () => {
    const { code, stderr } = await command(folder.path, ['serve', agentsFile, '--host', '0.0.0.0']);
    expect(code).toBe(1);
    expect(stderr).toContain('Listening on 0.0.0.0 lets other machines connect');
    expect(stderr).toContain('export const serverOptions = { auth: (request) => … }');
  });

  test('without authentication serves this machine, on the port of the environment', async () => {
    const running = serve([agentsFile, '--no-work'], { PORT: '0' });
    await running.see(/There is no authentication: only this machine can connect/);
    const { items } = (await (await fetch(`${urlOf(running)}/agents`)).json()) as { items: [] };
    expect(items).toHaveLength(4);
    running.interrupt();
    expect((await running.finished).code).toBe(0);
  });

  test('says that a port is in use, or is none', async () => {
    const server = createServer().listen(0, '127.0.0.1');
    await new Promise((listening) => server.once('listening', listening));
    const address = server.address();
    const port = typeof address === 'object' && address ? String(address.port) : '';
    const taken = await command(folder.path, ['serve', agentsFile, '--port', port]);
    server.close();
    expect(taken.code).toBe(5);
    expect(taken.stderr).toContain(`Port ${port} on 127.0.0.1 is in use. Stop the other process`);
    const wrong = await command(folder.path, ['serve', agentsFile, '--port', 'http']);
    expect(wrong.code).toBe(2);
    expect(wrong.stderr).toContain('--port takes a port from 0 to 65535, not "http"');
  });
});

describe('worker', () => {
  test('without a queue says so', async () => {
    const { code, stderr } = await command(folder.path, ['worker', agentsFile]);
    expect(code).toBe(1);
    expect(stderr).toContain('has no queue: its engine "local" runs background work');
    expect(stderr).toContain('pgBossEngine');
  });
});
