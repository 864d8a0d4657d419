import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { createMCPClient } from '@ai-sdk/mcp';
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { Client as OldClient } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport as OldTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { ElicitRequestSchema } from '@modelcontextprotocol/sdk/types.js';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { get, startServer } from '../server/kit.ts';
import { eventually } from '../support/eventually.ts';

let server: Awaited<ReturnType<typeof startServer>>;
let url: URL;

beforeAll(async () => {
  server = await startServer({ mcp: true, keepAlive: 1000 });
  url = new URL(`${server.url}/mcp`);
});
afterAll(() => server.close());

const info = { name: 'test', version: '1' };
const approve = { action: 'accept' as const, content: { approved: true } };

/** The official client, in each of its two eras. */
async function newClient(
  mode: 'auto' | 'legacy',
  { elicits = true }: { readonly elicits?: boolean } = {},
): Promise<Client> {
  const client = new Client(info, {
    capabilities: elicits ? { elicitation: { form: {} } } : {},
    ...(mode === 'auto' && { versionNegotiation: { mode } }),
  });
  if (elicits) client.setRequestHandler('elicitation/create', async () => approve);
  await client.connect(new StreamableHTTPClientTransport(url));
  return client;
}

interface Place {
  readonly sessionId: string;
  readonly snapshotId: string;
  readonly finishReason: string;
  readonly output?: unknown;
}

const placeOf = (result: object): Place =>
  (result as { structuredContent?: unknown }).structuredContent as Place;

/** Waits until the turn of a session has begun; gives its id. */
async function runningIn(sessionId: string): Promise<string> {
  return await eventually(async () => {
    const response = await fetch(`${server.url}/agents/chat/sessions/${sessionId}`);
    if (!response.ok) return false;
    return ((await response.json()) as { running?: string }).running ?? false;
  });
}

/** What a stopped turn has kept. */
async function keptBy(snapshotId: string): Promise<string> {
  const snapshot = await eventually(async () => {
    const found = await get(`${server.url}/agents/chat/snapshots/${snapshotId}`);
    return found.finishReason === 'aborted' && found;
  });
  return JSON.stringify(snapshot.state.messages);
}

describe.each(['auto', 'legacy'] as const)('the official client (%s)', (mode) => {
  test('negotiates, lists, calls and hears of progress', async () => {
    const client = await newClient(mode);
    const revision = mode === 'auto' ? '2026-07-28' : '2025-11-25';
    expect(client.getNegotiatedProtocolVersion()).toBe(revision);
    const { tools } = await client.listTools();
    expect(tools.map(({ name }) => name)).toEqual(['chat', 'other', 'busy']);
    const texts: string[] = [];
    const result = await client.callTool(
      { name: 'chat', arguments: { message: 'count 5 5' } },
      { onprogress: ({ message = '' }) => void texts.push(message) },
    );
    // The SDK drops progress that it reads together with the result. test/server/mcp.test.ts holds that all of it is sent before.
    expect('0 1 2 3 4 ').toContain(texts.join(''));
    expect(texts.join('')).toContain('0 1 ');
    expect(placeOf(result)).toMatchObject({ finishReason: 'stop', output: '0 1 2 3 4 ' });
    const { sessionId } = placeOf(result);
    const again = await client.callTool({
      name: 'chat',
      arguments: { message: 'hello', sessionId },
    });
    expect(placeOf(again).output).toBe('You said 2 things.');
    await client.close();
  });

  test('lets its user answer an interrupt within the call', async () => {
    const client = await newClient(mode);
    const result = await client.callTool({ name: 'chat', arguments: { message: 'transfer 7' } });
    const { finishReason, snapshotId } = placeOf(result);
    expect(finishReason).toBe('stop');
    const { state } = await get(`${server.url}/agents/chat/snapshots/${snapshotId}`);
    expect(JSON.stringify(state.messages)).toContain('"moved":7');
    await client.close();
  });

  test('without elicitation is told in words', async () => {
    const client = await newClient(mode, { elicits: false });
    const result = await client.callTool({ name: 'chat', arguments: { message: 'transfer 7' } });
    expect(JSON.stringify(result.content)).toContain('waits until a person answers: transfer');
    await client.close();
  });

  test('cancels a call, which keeps the partial answer', async () => {
    const client = await newClient(mode);
    const stop = new AbortController();
    const sessionId = `cancelled-${mode}`;
    const call = client.callTool(
      { name: 'chat', arguments: { message: 'hang', sessionId } },
      { signal: stop.signal },
    );
    const snapshotId = await runningIn(sessionId);
    stop.abort();
    await expect(call).rejects.toThrow();
    expect(await keptBy(snapshotId)).toContain('It ');
    await client.close();
  });

  test('reads snapshots and artifacts', async () => {
    const client = await newClient(mode);
    const result = await client.callTool({ name: 'chat', arguments: { message: 'remember rain' } });
    const link = (result.content as { type: string; uri?: string }[]).find(
      ({ type }) => type === 'resource_link',
    );
    const { contents } = await client.readResource({ uri: link?.uri ?? '' });
    expect(contents).toMatchObject([{ text: '# rain', mimeType: 'text/markdown' }]);
    const { resources } = await client.listResources();
    expect(resources.map(({ uri }) => uri)).toContain(
      `waymark://chat/snapshots/${placeOf(result).snapshotId}`,
    );
    expect((await client.listResourceTemplates()).resourceTemplates).toHaveLength(2);
    await expect(client.readResource({ uri: `${link?.uri}x` })).rejects.toThrow(/no resource/);
    await client.close();
  });
});

describe('the SDK of 2025', () => {
  test('calls, hears of progress, and lets its user answer', async () => {
    const client = new OldClient(info, { capabilities: { elicitation: {} } });
    client.setRequestHandler(ElicitRequestSchema, async () => approve);
    await client.connect(new OldTransport(url) as never);
    const texts: string[] = [];
    const result = await client.callTool(
      { name: 'chat', arguments: { message: 'count 5 5' } },
      undefined,
      { onprogress: ({ message = '' }) => void texts.push(message) },
    );
    // The SDK drops progress that it reads together with the result. test/server/mcp.test.ts holds that all of it is sent before.
    expect('0 1 2 3 4 ').toContain(texts.join(''));
    expect(texts.join('')).toContain('0 1 ');
    expect(placeOf(result).output).toBe('0 1 2 3 4 ');
    const asked = await client.callTool({ name: 'chat', arguments: { message: 'transfer 7' } });
    expect(placeOf(asked).finishReason).toBe('stop');
    await client.close();
  });
});

test('the AI SDK uses the agents as tools', async () => {
  const client = await createMCPClient({ transport: { type: 'http', url: url.href } });
  const tools = await client.tools();
  expect(Object.keys(tools)).toEqual(['chat', 'other', 'busy']);
  const result = await tools.chat?.execute?.({ message: 'hello' }, {
    toolCallId: '1',
    messages: [],
    context: {},
  } as never);
  expect(JSON.stringify(result)).toContain('You said 1 things.');
  await client.close();
});

describe('the inspector', () => {
  const launcher = fileURLToPath(
    new URL(
      './node_modules/@modelcontextprotocol/inspector/clients/launcher/build/index.js',
      import.meta.url,
    ),
  );
  const inspect = async (...args: readonly string[]): Promise<string> => {
    const options = ['--cli', url.href, '--transport', 'http', '--method', ...args];
    const { stdout } = await promisify(execFile)(process.execPath, [launcher, ...options]);
    return stdout;
  };

  test('lists the tools, and calls one', async () => {
    expect(await inspect('tools/list')).toContain('Does what it is told');
    const called = ['--tool-name', 'chat', '--tool-arg', 'message=hello'];
    expect(await inspect('tools/call', ...called)).toContain('You said 1 things.');
  });
});
