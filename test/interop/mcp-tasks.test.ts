import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import {
  createTaskSessionFromClient,
  resultFromTaskOutcome,
  type TaskEnabledSession,
  toolDeclarationFromMcpTool,
} from '@modelcontextprotocol/ext-tasks/client';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { memoryStore, waymark } from '../../src/index.ts';
import { scriptedModel } from '../../src/testing/index.ts';
import { startServer } from '../server/kit.ts';
import { legacy, modern } from '../server/mcp-calls.ts';
import { bundleChild } from '../support/bundle-child.ts';
import { startProcess } from '../support/child-process.ts';
import { eventually } from '../support/eventually.ts';
import { sharedClock } from '../support/shared-clock.ts';
import { killableServers } from './killable-servers.ts';

const info = { name: 'test', version: '1' };
const capabilities = {
  elicitation: { form: {} },
  extensions: { 'io.modelcontextprotocol/tasks': {} },
};

/** A session of the Tasks package, over the official client. */
async function openSession(
  url: string,
  mode: 'auto' | 'legacy',
): Promise<TaskEnabledSession<unknown>> {
  const client = new Client(info, {
    capabilities: { elicitation: { form: {} } },
    ...(mode === 'auto' && { versionNegotiation: { mode } }),
  });
  await client.connect(new StreamableHTTPClientTransport(new URL(`${url}/mcp`)));
  const declared = (await client.listTools()).tools.map(toolDeclarationFromMcpTool);
  return createTaskSessionFromClient(client, {
    endpointId: 'test',
    tools: { currentTool: (name) => declared.find((tool) => tool.name === name) },
    onInputRequest: (async () => ({ action: 'accept', content: { approved: true } })) as never,
    ...(mode === 'auto' && {
      // The SDK knows no tasks since 2026-07-28: the package needs another way to send them.
      rawDispatch: async (request) => {
        const { method, params } = request as { method: string; params: Record<string, unknown> };
        const { body } = await modern({ url, capabilities }, method, params);
        return body.error ? { kind: 'error', error: body.error } : { kind: 'result', ...body };
      },
      v2RequestFraming: {
        protocolVersion: '2026-07-28',
        clientInfo: info,
        clientCapabilities: capabilities,
      },
    }),
  } as Parameters<typeof createTaskSessionFromClient>[1]);
}

describe('the Tasks package', () => {
  let server: Awaited<ReturnType<typeof startServer>>;
  beforeAll(async () => {
    server = await startServer({ mcp: true });
  });
  afterAll(() => server.close());

  test.each(['auto', 'legacy'] as const)('runs a task to its end (%s)', async (mode) => {
    const session = await openSession(server.url, mode);
    const execution = await session.callTool(
      'chat',
      { message: 'hello' },
      { task: { preference: 'require' } },
    );
    expect(execution.kind).toBe('task');
    const { outcome } = await execution.settle();
    expect(resultFromTaskOutcome(outcome)).toMatchObject({
      structuredContent: { output: 'You said 1 things.' },
    });
    await session.close();
  });

  test('answers the questions of a task', async () => {
    const session = await openSession(server.url, 'auto');
    const execution = await session.callTool('chat', { message: 'transfer 5' });
    const { outcome } = await execution.settle();
    expect(resultFromTaskOutcome(outcome)).toMatchObject({
      structuredContent: { finishReason: 'stop' },
    });
    await session.close();
  });

  test.each(['auto', 'legacy'] as const)('cancels a task (%s)', async (mode) => {
    const session = await openSession(server.url, mode);
    const execution = await session.callTool(
      'chat',
      { message: 'hang' },
      { task: { preference: 'require' } },
    );
    await execution.cancel();
    const { outcome } = await execution.settle();
    expect(outcome.status).toBe('cancelled');
    await session.close();
  });

  test('waits for the result of 2025, and asks the user on the way', async () => {
    const opened = await legacy(
      { url: server.url },
      {
        id: 1,
        method: 'initialize',
        params: {
          protocolVersion: '2025-11-25',
          capabilities: { elicitation: {} },
          clientInfo: info,
        },
      },
    );
    const target = {
      url: server.url,
      headers: {
        'mcp-session-id': opened.headers.get('mcp-session-id') ?? '',
        'mcp-protocol-version': '2025-11-25',
      },
    };
    const call = { name: 'chat', arguments: { message: 'transfer 6' }, task: {} };
    const created = await legacy(target, { id: 2, method: 'tools/call', params: call });
    const { taskId } = created.body.result.task;
    const client = new Client(info, { capabilities: { elicitation: {} } });
    let asked = 0;
    client.setRequestHandler('elicitation/create', async () => {
      asked++;
      return { action: 'accept', content: { approved: true } };
    });
    await client.connect(new StreamableHTTPClientTransport(new URL(`${server.url}/mcp`)));
    const result = await client.request({ method: 'tasks/result', params: { taskId } } as never, {
      '~standard': { version: 1, vendor: 'test', validate: (value: unknown) => ({ value }) },
    });
    expect(result).toMatchObject({ structuredContent: { finishReason: 'stop' } });
    expect(asked).toBe(1);
    await client.close();
  });
});

describe('a task', () => {
  const servers = killableServers();

  test.each(['sqlite', 'postgres'] as const)(
    'is completed by another process after the server was killed (%s)',
    async (kind) => {
      const [doomed, survivor] = await Promise.all([servers.start(kind), servers.start(kind)]);
      const file = join(servers.folder(), `held-${kind}`);
      await writeFile(file, '');
      const call = { name: 'chat', arguments: { message: `hold ${file} 30` } };
      const begun = await modern({ url: doomed.url, capabilities }, 'tools/call', call);
      const { taskId } = begun.body.result;
      const statusAt = async (url: string): Promise<string> =>
        (await modern({ url, capabilities }, 'tasks/get', { taskId })).body.result.status;
      expect(await statusAt(survivor.url)).toBe('working');
      const snapshotId = taskId.split(':').at(-1);
      await eventually(async () => {
        const events = await fetch(`${survivor.url}/agents/chat/runs`);
        return JSON.stringify(await events.json()).includes(snapshotId);
      });
      await servers.kill(doomed, () => rm(file));
      await eventually(async () => (await statusAt(survivor.url)) === 'completed');
      const done = await modern({ url: survivor.url, capabilities }, 'tasks/get', { taskId });
      const pieces = Array.from({ length: 30 }, (_, piece) => `${piece} `).join('');
      expect(done.body.result.result.structuredContent).toMatchObject({ output: pieces });
    },
  );

  test('is not started again by the process that takes over the turn of a killed agent (S515)', async () => {
    const release = Promise.withResolvers<void>();
    const app = waymark({
      model: scriptedModel([{ toolCalls: [{ name: 'wait' }] }, 'forty-two']),
      store: memoryStore(),
    });
    const wait = app.defineTool({ name: 'wait', description: 'Waits.' }, async () => {
      await release.promise;
      return 'waited';
    });
    app.defineAgent({ name: 'expert', system: 'Wait.', tools: [wait] });
    const methods: string[] = [];
    const server = await startServer({
      app,
      mcp: true,
      log: ({ rpc }) => void methods.push(String(rpc)),
    });
    const count = (method: string): number => methods.filter((each) => each === method).length;
    const script = bundleChild(new URL('./mcp-task-agent.ts', import.meta.url));
    const folder = await mkdtemp(join(tmpdir(), 'waymark-mcp-'));
    const clockFile = join(folder, 'clock');
    const args = [script, join(folder, 'db'), clockFile, `${server.url}/mcp`];
    const doomed = startProcess(args);
    const id = await doomed.take((line) => /^run (.+)$/.exec(line)?.[1], 'a run');
    await eventually(() => count('tasks/get') > 0);
    await doomed.end();
    sharedClock(clockFile).advance(120_000);
    const before = count('tasks/get');
    const other = startProcess([...args, id]);
    await eventually(() => count('tasks/get') > before);
    release.resolve();
    const text = await other.take((line) => /^text (.+)$/.exec(line)?.[1], 'the text');
    expect(text).toContain('forty-two');
    expect(count('tools/call')).toBe(1);
    await other.end();
    await server.close();
    await rm(folder, { recursive: true, force: true });
  });
});
