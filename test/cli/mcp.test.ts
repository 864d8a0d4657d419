import { readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { afterAll, describe, expect, test } from 'vitest';
import { builtCommand } from './support/built-package.ts';
import { agentsFile, command, Running, tempFolder } from './support/command.ts';

const folder = tempFolder();
const started: Running[] = [];
afterAll(() => {
  for (const { child } of started) child.kill('SIGKILL');
  folder.remove();
});

const start = (args: readonly string[] = []): Running => {
  const running = new Running(['mcp', agentsFile, ...args], folder.path);
  started.push(running);
  return running;
};
const send = (running: Running, message: object): void =>
  running.type(JSON.stringify({ jsonrpc: '2.0', ...message }));
// biome-ignore lint/suspicious/noExplicitAny: tests look into whatever came
const messagesOf = ({ stdout }: { readonly stdout: string }): any[] =>
  stdout
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line));

const initialize = {
  id: 1,
  method: 'initialize',
  params: { protocolVersion: '2025-11-25', capabilities: { elicitation: {} } },
};
const modernMeta = {
  'io.modelcontextprotocol/protocolVersion': '2026-07-28',
  'io.modelcontextprotocol/clientCapabilities': {},
};

describe('mcp', () => {
  test('answers a client of 2025, and ends when the input ends', async () => {
    const running = start();
    send(running, initialize);
    send(running, { method: 'notifications/initialized' });
    send(running, { id: 2, method: 'tools/list' });
    const call = { name: 'talker', arguments: { message: 'hello' } };
    send(running, { id: 3, method: 'tools/call', params: call });
    const { code, stdout } = await running.end();
    expect(code).toBe(0);
    const messages = messagesOf({ stdout });
    expect(messages.find(({ id }) => id === 1).result.protocolVersion).toBe('2025-11-25');
    expect(messages.find(({ id }) => id === 2).result.tools[0].name).toBe('talker');
    expect(messages.find(({ id }) => id === 3).result.structuredContent).toMatchObject({
      output: 'Message 1.',
    });
  });

  test('asks the user of the client in the middle of a call', async () => {
    const running = start();
    send(running, initialize);
    const call = { name: 'talker', arguments: { message: 'book trains' } };
    send(running, { id: 2, method: 'tools/call', params: call });
    await running.see(/"elicitation\/create".*\n/);
    const asked = messagesOf(running).find(({ method }) => method === 'elicitation/create');
    expect(asked.params.message).toBe('Really book trains?');
    send(running, { id: asked.id, result: { action: 'accept', content: { approved: true } } });
    await running.see(/"id":2.*\n/);
    const { stdout } = await running.end();
    expect(JSON.stringify(messagesOf({ stdout }).at(-1).result.content)).toContain('booked');
  });

  test('serves 2026-07-28 with progress, and stops what is cancelled', async () => {
    const running = start();
    const params = { name: 'talker', arguments: { message: 'hang', sessionId: 'hung' } };
    const meta = { ...modernMeta, progressToken: 'p' };
    send(running, { id: 1, method: 'tools/call', params: { ...params, _meta: meta } });
    await running.see(/Here I am.*\n/);
    send(running, { method: 'notifications/cancelled', params: { requestId: 1 } });
    const next = { name: 'talker', arguments: { message: 'hello' }, _meta: modernMeta };
    send(running, { id: 2, method: 'tools/call', params: next });
    await running.see(/"id":2.*\n/);
    const { stdout } = await running.end();
    expect(messagesOf({ stdout }).some(({ id }) => id === 1)).toBe(false);
    // The partial answer is part of the conversation.
    const later = start();
    const more = { name: 'talker', arguments: { message: 'hello', sessionId: 'hung' } };
    send(later, { id: 3, method: 'tools/call', params: { ...more, _meta: modernMeta } });
    const [answer] = messagesOf(await later.end());
    expect(answer.result.structuredContent).toMatchObject({ output: 'Message 3.' });
  });

  test('answers lines that are no messages, and offers the agents that were named', async () => {
    const running = start(['--agent', 'talker', '--owner', 'ann']);
    running.type('not json');
    running.type('[]');
    send(running, { id: 1, method: 'tools/list', params: { _meta: modernMeta } });
    const { stdout } = await running.end();
    const messages = messagesOf({ stdout });
    expect(messages.map(({ error }) => error?.code).filter(Boolean)).toEqual([-32700, -32600]);
    expect(messages.find(({ id }) => id === 1).result.tools).toHaveLength(1);
    const wrong = await command(folder.path, ['mcp', agentsFile, '--agent', 'nobody']);
    expect(wrong.code).toBe(1);
    expect(wrong.stderr).toContain('no such agent');
    expect(wrong.stdout).toBe('');
  });
});

test('a server without MCP or AG-UI does not load them', () => {
  const seen = new Map<string, string>();
  const follow = (file: string): void => {
    if (seen.has(file)) return;
    const text = readFileSync(file, 'utf8');
    seen.set(file, text);
    // Dynamic imports are not among them.
    for (const [, from = ''] of text.matchAll(/(?:^|;)\s*(?:import|export)[^;(]*?"(\.[^"]+)"/gm)) {
      follow(join(dirname(file), from));
    }
  };
  follow(join(dirname(builtCommand()), 'server.mjs'));
  const texts = [...seen.values()].join('\n');
  expect(texts).toContain('mountNative');
  expect(texts).not.toContain('notifications/progress');
  expect(texts).not.toContain('TEXT_MESSAGE_CONTENT');
});
