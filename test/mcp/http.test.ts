import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import { afterEach, expect, test } from 'vitest';
import { type App, waymark } from '../../src/index.ts';
import { type McpUrl, mcp } from '../../src/mcp/index.ts';
import { Servers } from '../../src/mcp/server.ts';
import { type ScriptStep, scriptedModel } from '../../src/testing/index.ts';

const open: { close(): unknown }[] = [];
afterEach(async () => {
  for (const each of open.splice(0).reverse()) await each.close();
});

type Handler = (name: string, id: unknown, response: ServerResponse) => void;

/** A server of 2025 in plain JSON over HTTP; `call` answers the calls of its tools, `stream` the request for a stream. */
async function rawHttp(
  tools: readonly string[] | ((request: IncomingMessage) => readonly string[]),
  call: Handler,
  seen: IncomingMessage[] = [],
  stream = (response: ServerResponse): unknown => response.writeHead(405).end(),
): Promise<string> {
  const server: Server = createServer(async (request, response) => {
    seen.push(request);
    if (request.method !== 'POST') return void stream(response);
    const { id, method, params } = JSON.parse(await text(request));
    if (id === undefined) return void response.writeHead(202).end();
    const answer = (body: object): unknown =>
      response
        .writeHead(200, { 'content-type': 'application/json' })
        .end(JSON.stringify({ jsonrpc: '2.0', id, ...body }));
    if (method === 'initialize') {
      const serverInfo = { name: 'raw', version: '1' };
      const capabilities = { tools: {} };
      return void answer({ result: { protocolVersion: '2025-11-25', capabilities, serverInfo } });
    }
    if (method === 'tools/list') {
      const inputSchema = { type: 'object' };
      const listed = typeof tools === 'function' ? tools(request) : tools;
      return void answer({ result: { tools: listed.map((name) => ({ name, inputSchema })) } });
    }
    if (method !== 'tools/call') return void answer({ error: { code: -32601, message: 'No' } });
    call(params.name, id, response);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  open.push({
    close: () => {
      server.closeAllConnections();
      server.close();
    },
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}/mcp`;
}

function agentOf(url: string, steps: readonly ScriptStep[], options: Partial<McpUrl> = {}) {
  const errors: string[] = [];
  const app: App = waymark({
    model: scriptedModel(steps),
    onError: (error) => errors.push(String((error as Error).message)),
  });
  open.push(app);
  const tools = [mcp('web', { url, ...options })];
  return { errors, agent: app.defineAgent({ name: 'chat', system: 'Help.', tools }) };
}

const call = (name: string): ScriptStep => ({ toolCalls: [{ name }] });
const repeat: ScriptStep = ({ messages }) => {
  const part = messages.at(-1)?.content[0];
  return part && 'toolResponse' in part ? String(part.toolResponse?.output) : '';
};
const result = (id: unknown, said: string): string =>
  JSON.stringify({ jsonrpc: '2.0', id, result: { content: [{ type: 'text', text: said }] } });

test('S315 over HTTP: too much, a stream that breaks off, a status of failure; then it works again', async () => {
  const url = await rawHttp(['big', 'cut', 'fail', 'good'], (name, id, response) => {
    if (name === 'fail') return void response.writeHead(500).end('secret stack');
    if (name === 'good') {
      response.writeHead(200, { 'content-type': 'application/json' });
      return void response.end(result(id, 'fine'));
    }
    response.writeHead(200, { 'content-type': 'text/event-stream' });
    if (name === 'big') {
      return void response.end(`data: ${result(id, 'x'.repeat(2_000_000))}\n\n`);
    }
    response.write('data: {"jsonrpc": "2.0"', () => response.destroy());
  });
  const names = ['web_big', 'web_cut', 'web_fail', 'web_good'];
  const { agent, errors } = agentOf(
    url,
    names.flatMap((name) => [call(name), repeat]),
    { maxMessageBytes: 1_000_000, timeout: 3_000 },
  );
  expect((await agent.run('1')).text).toMatch(/sent a message of more than 1000000 bytes/);
  expect((await agent.run('2')).text).toMatch(/^MCP server "web" /);
  const failed = (await agent.run('3')).text;
  expect(failed).toBe('MCP server "web" cannot be reached: the call to "fail" failed.');
  expect((await agent.run('4')).text).toBe('fine');
  expect(errors).toHaveLength(3);
});

test('headers are made for each request to the server, and a refusal names the setting', async () => {
  const seen: IncomingMessage[] = [];
  let count = 0;
  const url = await rawHttp(
    ['good'],
    (_, id, response) =>
      void response.writeHead(200, { 'content-type': 'application/json' }).end(result(id, 'fine')),
    seen,
  );
  const headers = (): Record<string, string> => ({ authorization: `Bearer ${++count}` });
  const { agent } = agentOf(url, [call('web_good'), repeat], { headers });
  expect((await agent.run('Go')).text).toBe('fine');
  const given = seen.map((request) => request.headers.authorization);
  expect(given).toEqual(given.map((_, index) => `Bearer ${index + 1}`));

  const closed = createServer((_, response) => response.writeHead(401).end());
  await new Promise<void>((resolve) => closed.listen(0, '127.0.0.1', resolve));
  open.push(closed);
  const { port } = closed.address() as AddressInfo;
  const refused = agentOf(`http://127.0.0.1:${port}/mcp`, ['Done']);
  expect((await refused.agent.run('Go')).text).toBe('Done');
  expect(refused.errors[0]).toMatch(
    /MCP server "web" requires authorization\. Check its `headers`/,
  );
});

const fine: Handler = (_, id, response) =>
  void response.writeHead(200, { 'content-type': 'application/json' }).end(result(id, 'fine'));
const userOf = ({ user }: Readonly<Record<string, unknown>>): string | undefined =>
  user as string | undefined;
const headersOf = (user = ''): Record<string, string> => ({ 'x-user': user });

test('S518 a tool of `only` that a user may not see is left out, and reported once', async () => {
  const url = await rawHttp(
    (request) => (request.headers['x-user'] === 'admin' ? ['read', 'delete'] : ['read']),
    fine,
  );
  const errors: string[] = [];
  const offered: (readonly string[])[] = [];
  const note: ScriptStep = ({ tools = [] }) => {
    offered.push(tools.map(({ name }) => name));
    return 'Done';
  };
  const app = waymark({
    model: scriptedModel(Array.from({ length: 4 }, () => note)),
    onError: (error) => errors.push(String((error as Error).message)),
  });
  open.push(app);
  const source = mcp('web', { url, user: userOf, headers: headersOf }).only('read', 'delete');
  const agent = app.defineAgent({ name: 'chat', system: 'Help.', tools: [source] });
  for (const user of ['admin', 'ada', 'bob', 'admin']) await agent.run('Go', { context: { user } });
  const all = ['web_delete', 'web_read'];
  expect(offered).toEqual([all, ['web_read'], ['web_read'], all]);
  expect(errors).toEqual(['MCP server "web" has no tool "delete" for a user. It has read.']);
});

test('S518 of too many connections, one in use stays open, and one that is used again is closed afterwards', async () => {
  const streams = new Set<ServerResponse>();
  let answerSlow: (() => void) | undefined;
  const url = await rawHttp(
    ['slow', 'quick'],
    (name, id, response) => {
      if (name === 'quick') return fine(name, id, response);
      answerSlow = () => fine(name, id, response);
    },
    [],
    (response) => {
      streams.add(response);
      response.on('close', () => streams.delete(response));
      response.writeHead(200, { 'content-type': 'text/event-stream' }).flushHeaders();
    },
  );
  const servers = new Servers('web', { url, user: userOf, headers: headersOf }, 1);
  open.push(servers);
  const listOf = async (user: string) => {
    const scope = { context: { user }, signal: new AbortController().signal, report() {} };
    return (await servers.of({ user })?.list(scope)) ?? [];
  };
  // The connection of the user is closed between the list and the call.
  const quick: ScriptStep = async () => {
    await listOf('bob');
    await listOf('eve');
    await expect.poll(() => streams.size).toBe(1);
    return { toolCalls: [{ name: 'web_quick' }] };
  };
  const app: App = waymark({
    model: scriptedModel([call('web_slow'), repeat, quick, repeat]),
  });
  open.push(app);
  const list = async ({ context }: { readonly context: Readonly<Record<string, unknown>> }) =>
    (await listOf(String(context.user))).map(({ tool }) => tool);
  const tools = [{ name: 'web', list }];
  const agent = app.defineAgent({ name: 'chat', system: 'Help.', tools });

  const running = agent.run('slow', { context: { user: 'ada' } });
  await expect.poll(() => answerSlow).toBeDefined();
  await listOf('bob');
  await expect.poll(() => streams.size).toBe(2);
  answerSlow?.();
  expect((await running).text).toBe('fine');

  expect((await agent.run('quick', { context: { user: 'ada' } })).text).toBe('fine');
  await expect.poll(() => streams.size).toBe(1);
});
