import { Client } from '@modelcontextprotocol/client';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';
import { afterAll, describe, expect, test } from 'vitest';
import { builtCommand, withBuiltPackage } from '../cli/support/built-package.ts';
import { agentsFile, tempFolder } from '../cli/support/command.ts';

const folder = tempFolder();
afterAll(() => folder.remove());

describe.each(['auto', 'legacy'] as const)('the official client over stdio (%s)', (mode) => {
  test('starts the command, calls an agent, and lets its user answer', async () => {
    const found = withBuiltPackage();
    const client = new Client(
      { name: 'test', version: '1' },
      {
        capabilities: { elicitation: { form: {} } },
        ...(mode === 'auto' && { versionNegotiation: { mode } }),
      },
    );
    client.setRequestHandler('elicitation/create', async () => ({
      action: 'accept',
      content: { approved: true },
    }));
    await client.connect(
      new StdioClientTransport({
        command: process.execPath,
        args: [...found.options, builtCommand(), 'mcp', agentsFile],
        env: { ...found.env, PATH: process.env.PATH ?? '' },
        cwd: folder.path,
      }),
    );
    expect(client.getNegotiatedProtocolVersion()).toBe(
      mode === 'auto' ? '2026-07-28' : '2025-11-25',
    );
    const texts: string[] = [];
    const slow = await client.callTool(
      { name: 'talker', arguments: { message: 'slowly' } },
      { onprogress: ({ message = '' }) => void texts.push(message) },
    );
    // The SDK drops progress that it reads together with the result. test/server/mcp.test.ts holds that all of it is sent before.
    expect('One. Two. Three. Four.').toContain(texts.join(''));
    expect(texts.join('')).toContain('One. ');
    expect(slow.structuredContent).toMatchObject({ output: 'One. Two. Three. Four.' });
    const booked = await client.callTool({ name: 'talker', arguments: { message: 'book trains' } });
    expect(JSON.stringify(booked.content)).toContain('booked');
    await client.close();
  });
});
