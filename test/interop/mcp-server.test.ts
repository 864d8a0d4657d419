import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { Client as OldClient } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport as OldTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { startServer } from '../server/kit.ts';

let server: Awaited<ReturnType<typeof startServer>>;
let url: URL;

beforeAll(async () => {
  server = await startServer({ mcp: true, keepAlive: 1000 });
  url = new URL(`${server.url}/mcp`);
});
afterAll(() => server.close());

const info = { name: 'test', version: '1' };

async function newClient(): Promise<Client> {
  const client = new Client(info, {
    capabilities: { elicitation: { form: {} } },
    versionNegotiation: { mode: 'auto' },
  });
  await client.connect(new StreamableHTTPClientTransport(url));
  return client;
}

describe('the official client', () => {
  test('lists and calls an agent in the 2026 revision', async () => {
    const client = await newClient();
    expect(client.getNegotiatedProtocolVersion()).toBe('2026-07-28');
    const { tools } = await client.listTools();
    expect(tools.map(({ name }) => name)).toEqual(['chat', 'other', 'busy']);
    const texts: string[] = [];
    await client.callTool(
      { name: 'chat', arguments: { message: 'count 5 5' } },
      { onprogress: ({ message = '' }) => void texts.push(message) },
    );
    expect(texts.join('')).toBe('0 1 2 3 4 ');
    await client.close();
  });
});

describe('the official client of 2025', () => {
  test('lists and calls an agent', async () => {
    const client = new OldClient(info, { capabilities: { elicitation: {} } });
    await client.connect(new OldTransport(url) as never);
    const { tools } = await client.listTools();
    expect(tools.map(({ name }) => name)).toEqual(['chat', 'other', 'busy']);
    const texts: string[] = [];
    await client.callTool({ name: 'chat', arguments: { message: 'count 5 5' } }, undefined, {
      onprogress: ({ message = '' }) => void texts.push(message),
    });
    expect(texts.join('')).toBe('0 1 2 3 4 ');
    await client.close();
  });
});
