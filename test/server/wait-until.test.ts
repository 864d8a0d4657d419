import { expect, test } from 'vitest';
import { memoryStore, model, waymark } from '../../src/index.ts';
import { type HandlerOptions, handler } from '../../src/server/index.ts';
import { readEvents, userInput } from './kit.ts';

test.each([true, false])(
  'waitUntil gets a promise that lasts as long as the turn (detached: %s, S509)',
  async (detach) => {
    const gate = Promise.withResolvers<void>();
    const app = waymark({ store: memoryStore() });
    const slow = model({ name: 'slow' }, async (_, { stream }) => {
      await stream({ content: [{ text: 'It ' }] });
      await gate.promise;
      return { message: { role: 'model', content: [{ text: 'It ends' }] }, finishReason: 'stop' };
    });
    const chat = app.defineAgent({ name: 'chat', model: slow });
    const work: Promise<unknown>[] = [];
    const waitUntil: HandlerOptions['waitUntil'] = (promise) => void work.push(promise);
    const fetch = handler(app, { waitUntil });
    const response = await fetch(
      new Request('http://localhost/agents/chat/turns', {
        method: 'POST',
        headers: { accept: 'text/event-stream' },
        body: JSON.stringify({ input: { ...userInput('hello'), ...(detach && { detach }) } }),
      }),
    );
    let snapshotId = '';
    // The client leaves after the first event; leaving the loop cancels the body.
    for await (const { data } of readEvents(response)) {
      snapshotId = data.turnStart?.snapshotId ?? data.snapshotId;
      break;
    }
    expect(work).toHaveLength(1);
    let isOver = false;
    void work[0]?.then(() => {
      isOver = true;
    });
    // Everything that is due has run.
    await new Promise((resolve) => setImmediate(resolve));
    expect(isOver).toBe(false);
    gate.resolve();
    await work[0];
    expect((await chat.getSnapshot({ snapshotId }))?.status).toBe('succeeded');
    await app.close();
  },
);

const mcpMeta = {
  'io.modelcontextprotocol/protocolVersion': '2026-07-28',
  'io.modelcontextprotocol/clientCapabilities': {
    extensions: { 'io.modelcontextprotocol/tasks': {} },
  },
};

test.each([
  [
    'A2A',
    '/a2a/chat',
    { 'a2a-version': '1.0' },
    {
      jsonrpc: '2.0',
      id: 1,
      method: 'SendMessage',
      params: {
        message: { messageId: 'one', role: 'ROLE_USER', parts: [{ text: 'hello' }] },
        configuration: { returnImmediately: true },
      },
    },
  ],
  [
    'MCP',
    '/mcp',
    {
      accept: 'application/json, text/event-stream',
      'mcp-protocol-version': '2026-07-28',
      'mcp-method': 'tools/call',
      'mcp-name': 'chat',
    },
    {
      jsonrpc: '2.0',
      id: 1,
      method: 'tools/call',
      params: { name: 'chat', arguments: { message: 'hello' }, _meta: mcpMeta },
    },
  ],
  ['OpenAI', '/openai/v1/responses', {}, { model: 'chat', input: 'hello', background: true }],
])('waitUntil gets a promise for a background run of %s (S509)', async (_, path, headers, body) => {
  const gate = Promise.withResolvers<void>();
  const app = waymark({ store: memoryStore() });
  const slow = model({ name: 'slow' }, async () => {
    await gate.promise;
    return { message: { role: 'model', content: [{ text: 'It ends' }] }, finishReason: 'stop' };
  });
  const chat = app.defineAgent({ name: 'chat', model: slow });
  const work: Promise<unknown>[] = [];
  const waitUntil: HandlerOptions['waitUntil'] = (promise) => void work.push(promise);
  const fetch = handler(app, { waitUntil, a2a: true, mcp: true, openai: true });
  const response = await fetch(
    new Request(`http://localhost${path}`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', ...headers },
      body: JSON.stringify(body),
    }),
  );
  expect(response.status).toBe(200);
  await response.text();
  expect(work).toHaveLength(1);
  const { items: running } = await chat.listRuns();
  expect(running).toHaveLength(1);
  let isOver = false;
  void work[0]?.then(() => {
    isOver = true;
  });
  // Everything that is due has run.
  await new Promise((resolve) => setImmediate(resolve));
  expect(isOver).toBe(false);
  gate.resolve();
  await work[0];
  const snapshotId = running[0]?.snapshotId ?? '';
  expect((await chat.getSnapshot({ snapshotId }))?.status).toBe('succeeded');
  await app.close();
});
