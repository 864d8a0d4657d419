import { createHash } from 'node:crypto';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { memoryStore, waymark } from '../../src/index.ts';
import { handler, serve } from '../../src/server/index.ts';
import { scriptedModel } from '../../src/testing/scripted-model.ts';
import { eventually } from '../support/eventually.ts';
import { createTestApp, get, post, startServer } from './kit.ts';
import { legacy, modern, say, type Target } from './mcp-calls.ts';

let server: Awaited<ReturnType<typeof startServer>>;
let target: Target;

beforeAll(async () => {
  server = await startServer({ mcp: { secret: 'a secret of thirty-two characters' } });
  target = { url: server.url };
});
afterAll(() => server.close());

const asking = (): Target => ({ ...target, capabilities: { elicitation: {} } });
const withTasks = (): Target => ({
  ...target,
  capabilities: { elicitation: {}, extensions: { 'io.modelcontextprotocol/tasks': {} } },
});

describe('tools', () => {
  test('are the agents with a store, with schemas', async () => {
    const { body } = await modern(target, 'tools/list');
    expect(body.result).toMatchObject({ resultType: 'complete', ttlMs: 0, cacheScope: 'private' });
    expect(body.result.tools).toMatchObject([
      {
        name: 'chat',
        description: 'Does what it is told',
        inputSchema: { type: 'object', required: ['message'] },
        outputSchema: { type: 'object', properties: { output: { type: 'string' } } },
      },
      { name: 'other' },
      { name: 'busy' },
    ]);
  });

  test('answer with text, and where the conversation stands', async () => {
    const { body } = await say(target, 'hello');
    const { content, structuredContent } = body.result;
    expect(content[0]).toEqual({ type: 'text', text: 'You said 1 things.' });
    expect(structuredContent).toEqual({
      sessionId: expect.any(String),
      snapshotId: expect.any(String),
      finishReason: 'stop',
      output: 'You said 1 things.',
    });
    const { sessionId, snapshotId } = structuredContent;
    expect(content.at(-1).text).toContain(sessionId);
    const again = await say(target, 'again', { sessionId });
    expect(again.body.result.structuredContent).toMatchObject({
      sessionId,
      output: 'You said 2 things.',
    });
    await say(target, 'once more', { sessionId });
    const branch = await say(target, 'instead', { snapshotId });
    expect(branch.body.result.structuredContent.output).toBe('You said 2 things.');
  });

  test('give the structured output of an agent, under its schema', async () => {
    const app = waymark({
      model: scriptedModel([{ text: '{"city":"Oslo"}' }]),
      store: memoryStore(),
    });
    const schema = {
      type: 'object',
      properties: { city: { $ref: '#/definitions/name' } },
      definitions: { name: { type: 'string' } },
    };
    app.defineAgent({ name: 'geo.graph', system: 'Find.', output: { schema } });
    const typed = await startServer({ app, mcp: true });
    const { body } = await modern({ url: typed.url }, 'tools/list');
    expect(body.result.tools).toMatchObject([
      {
        name: 'geo_graph',
        title: 'geo.graph',
        outputSchema: {
          properties: { output: { properties: { city: { $ref: '#/definitions/name' } } } },
          definitions: { name: { type: 'string' } },
        },
      },
    ]);
    const answer = await say({ url: typed.url }, 'where?', { name: 'geo_graph' });
    expect(answer.body.result.structuredContent.output).toEqual({ city: 'Oslo' });
    await typed.close();
  });

  test('stream their text as progress, if the caller wants to see it', async () => {
    const call = { name: 'chat', arguments: { message: 'count 6 2' } };
    const { before } = await modern(target, 'tools/call', call, { meta: { progressToken: 'p' } });
    const notes = before.map(({ params }) => params);
    expect(notes.map(({ message }) => message).join('')).toBe('0 1 2 3 4 5 ');
    expect(notes.every(({ progressToken }) => progressToken === 'p')).toBe(true);
    const steps = notes.map(({ progress }) => progress);
    expect(steps).toEqual([...new Set(steps)].sort((a, b) => a - b));
    expect((await modern(target, 'tools/call', call)).before).toEqual([]);
  });

  test('stream the text of a turn that ends at once', async () => {
    const app = waymark({ store: memoryStore() });
    app.defineModel({ name: 'instant' }, async (_, { stream }) => {
      for (const text of ['One. ', 'Two.']) void stream({ content: [{ text }] });
      const content = [{ text: 'One. Two.' }];
      return { message: { role: 'model', content }, finishReason: 'stop' };
    });
    app.defineAgent({ name: 'quick', model: 'instant' });
    const quick = await startServer({ app, mcp: true });
    const call = { name: 'quick', arguments: { message: 'go' } };
    const { before } = await modern({ url: quick.url }, 'tools/call', call, {
      meta: { progressToken: 'p' },
    });
    expect(before.map(({ params }) => params.message).join('')).toBe('One. Two.');
    await quick.close();
  });

  test('answer with JSON where the client takes no stream', async () => {
    const { headers, body } = await modern(
      target,
      'tools/call',
      { name: 'chat', arguments: { message: 'hello' } },
      { headers: { accept: 'application/json' } },
    );
    expect(headers.get('content-type')).toContain('application/json');
    expect(body.result.structuredContent.output).toBe('You said 1 things.');
  });

  test('link to the artifacts that they made', async () => {
    const { body } = await say(target, 'remember rain');
    const link = body.result.content.find(({ type }: { type: string }) => type === 'resource_link');
    expect(link.name).toBe('topics.md');
    const read = await modern(target, 'resources/read', { uri: link.uri });
    expect(read.body.result.contents).toEqual([
      { uri: link.uri, mimeType: 'text/markdown', text: '# rain' },
    ]);
  });

  test('say what went wrong in a way that a model can read', async () => {
    const wrong = await modern(target, 'tools/call', { name: 'chat', arguments: { text: 'hi' } });
    expect(wrong.body.result).toMatchObject({
      isError: true,
      content: [{ text: expect.stringContaining('message') }],
    });
    const unknown = await say(target, 'hi', { snapshotId: 'nothing' });
    expect(unknown.body.result).toMatchObject({ isError: true });
    const failed = await say(target, 'fail');
    expect(failed.body.result).toMatchObject({ isError: true });
    expect(JSON.stringify(failed.body)).not.toContain('secret of the model');
    const none = await say(target, 'hi', { name: 'nobody' });
    expect(none.body.error).toMatchObject({ code: -32602 });
  });

  test('are stopped by a client that leaves, and keep the partial answer', async () => {
    const gone = new AbortController();
    const sessionId = 'left-by-client';
    const answer = say({ ...target, signal: gone.signal }, 'hang', { sessionId });
    const path = `${server.url}/agents/chat/sessions/${sessionId}`;
    let running: string | undefined;
    await eventually(async () => {
      const response = await fetch(path);
      running = response.ok ? ((await response.json()) as { running?: string }).running : undefined;
      return running !== undefined;
    });
    gone.abort();
    await expect(answer).rejects.toThrow();
    await eventually(async () => {
      const { finishReason } = await get(`${server.url}/agents/chat/snapshots/${running}`);
      return finishReason === 'aborted';
    });
    const { state } = await get(`${server.url}/agents/chat/snapshots/${running}`);
    expect(JSON.stringify(state.messages)).toContain('It ');
  });
});

describe('interrupts', () => {
  test('are questions that the client answers once', async () => {
    const asked = await say(asking(), 'transfer 7');
    const { resultType, inputRequests, requestState } = asked.body.result;
    expect(resultType).toBe('input_required');
    const [[key, request]] = Object.entries(inputRequests) as [[string, object]];
    expect(key).toMatch(/^[0-9a-f-]{36}:.+/);
    expect(request).toMatchObject({
      method: 'elicitation/create',
      params: {
        message: expect.stringContaining('transfer {"sum":7}'),
        requestedSchema: { type: 'object', properties: { approved: { type: 'boolean' } } },
      },
    });
    const answer = { [key]: { action: 'accept', content: { approved: true } } };
    const nothing = await say(asking(), 'transfer 7', { requestState });
    expect(nothing.body.result).toMatchObject({ resultType: 'input_required' });
    const done = await say(asking(), 'transfer 7', { requestState, inputResponses: answer });
    expect(done.body.result.structuredContent).toMatchObject({ finishReason: 'stop' });
    const second = await say(asking(), 'transfer 7', { requestState, inputResponses: answer });
    expect(second.body.result).toMatchObject({ isError: true });
  });

  test('can be declined, or left open', async () => {
    const asked = await say(asking(), 'transfer 8');
    const { inputRequests, requestState } = asked.body.result;
    const [key = ''] = Object.keys(inputRequests);
    const respond = (action: string): ReturnType<typeof say> =>
      say(asking(), '', { requestState, inputResponses: { [key]: { action } } });
    const left = await respond('cancel');
    expect(left.body.result.structuredContent).toMatchObject({ finishReason: 'interrupted' });
    const declined = await respond('decline');
    const { sessionId, finishReason } = declined.body.result.structuredContent;
    expect(finishReason).toBe('stop');
    const { state } = await get(`${server.url}/agents/chat/sessions/${sessionId}/snapshot`);
    expect(JSON.stringify(state.messages)).not.toContain('"moved"');
  });

  test('that ask for an answer get a form for it', async () => {
    const asked = await say(asking(), 'ask');
    const { inputRequests, requestState } = asked.body.result;
    const [key = ''] = Object.keys(inputRequests);
    expect(inputRequests[key].params.requestedSchema.properties).toMatchObject({
      answer: { type: 'string' },
    });
    const wrong = { [key]: { action: 'accept', content: {} } };
    const refused = await say(asking(), 'ask', { requestState, inputResponses: wrong });
    expect(refused.body.result).toMatchObject({ isError: true });
    const right = { [key]: { action: 'accept', content: { answer: 'blue' } } };
    const done = await say(asking(), 'ask', { requestState, inputResponses: right });
    expect(done.body.result.structuredContent.finishReason).toBe('stop');
  });

  test('are told in words to a client that cannot ask', async () => {
    const { body } = await say(target, 'transfer 9');
    expect(body.result.content[0].text).toContain('waits until a person answers: transfer');
    expect(body.result.structuredContent).toMatchObject({ finishReason: 'interrupted' });
  });

  test('accept only the state that they gave', async () => {
    const asked = await say(asking(), 'transfer 1');
    const { requestState } = asked.body.result;
    const [payload = '', mac = ''] = requestState.split('.');
    const other = (await say(asking(), 'transfer 2')).body.result.requestState.split('.');
    for (const forged of ['', 'x', payload, `${payload}.`, `${other[0]}.${mac}`]) {
      const { body } = await say(asking(), 'x', { requestState: forged, inputResponses: {} });
      expect(body.result).toMatchObject({ isError: true });
    }
    const elsewhere = await say(asking(), 'x', { requestState, name: 'other' });
    expect(elsewhere.body.result).toMatchObject({ isError: true });
  });

  test('can be answered in another process with the same secret', async () => {
    const store = memoryStore();
    const mcp = { secret: 'a secret of thirty-two characters' };
    const first = await startServer({ app: createTestApp({ store }), mcp });
    const asked = await say({ ...asking(), url: first.url }, 'transfer 3');
    const { inputRequests, requestState } = asked.body.result;
    const [key = ''] = Object.keys(inputRequests);
    await first.close();
    const second = await startServer({ app: createTestApp({ store }), mcp });
    const inputResponses = { [key]: { action: 'accept', content: { approved: true } } };
    const done = await say({ ...asking(), url: second.url }, 'x', { requestState, inputResponses });
    expect(done.body.result.structuredContent).toMatchObject({ finishReason: 'stop' });
    await second.close();
  });
});

describe('tasks', () => {
  const until = async (taskId: string, wanted: string): Promise<Record<string, never>> => {
    let result: Record<string, never> = {};
    await eventually(async () => {
      ({ result } = (await modern(withTasks(), 'tasks/get', { taskId })).body);
      return result.status === wanted;
    });
    return result;
  };

  test('complete in the background', async () => {
    const { body } = await say(withTasks(), 'hello');
    expect(body.result).toMatchObject({ resultType: 'task', status: 'working', ttlMs: null });
    const done = await until(body.result.taskId, 'completed');
    expect(done).toMatchObject({
      resultType: 'complete',
      result: { structuredContent: { output: 'You said 1 things.' } },
    });
  });

  test('wait for input, and continue with it', async () => {
    const { taskId } = (await say(withTasks(), 'transfer 4')).body.result;
    const { inputRequests } = await until(taskId, 'input_required');
    const [key = ''] = Object.keys(inputRequests ?? {});
    const inputResponses = { [key]: { action: 'accept', content: { approved: true } } };
    const update = { taskId, inputResponses };
    expect((await modern(withTasks(), 'tasks/update', update)).body.result).toMatchObject({
      resultType: 'complete',
    });
    await until(taskId, 'completed');
    expect((await modern(withTasks(), 'tasks/update', update)).body.error).toMatchObject({
      message: expect.stringContaining('answered already'),
    });
  });

  test('fail, and are cancelled', async () => {
    const failing = (await say(withTasks(), 'fail')).body.result;
    expect(await until(failing.taskId, 'failed')).toMatchObject({ error: { code: -32000 } });
    const hanging = (await say(withTasks(), 'hang')).body.result;
    await modern(withTasks(), 'tasks/cancel', { taskId: hanging.taskId });
    await until(hanging.taskId, 'cancelled');
  });

  test('are not made where the caller wants to see progress', async () => {
    const call = { name: 'chat', arguments: { message: 'hello' } };
    const { body } = await modern(withTasks(), 'tools/call', call, { meta: { progressToken: 1 } });
    expect(body.result.resultType).toBe('complete');
  });
});

describe('resources', () => {
  test('are listed page by page, and read as JSON', async () => {
    const said = (await say(target, 'hello', { sessionId: 'listed' })).body.result;
    const { snapshotId } = said.structuredContent;
    const uri = `waymark://chat/snapshots/${snapshotId}`;
    const found: unknown[] = [];
    for (let cursor: string | undefined; ; ) {
      const params = cursor === undefined ? {} : { cursor };
      const { result } = (await modern(target, 'resources/list', params)).body;
      found.push(...result.resources.map((each: { uri: string }) => each.uri));
      cursor = result.nextCursor;
      if (cursor === undefined) break;
    }
    expect(found).toContain(uri);
    const { result } = (await modern(target, 'resources/read', { uri })).body;
    expect(JSON.parse(result.contents[0].text)).toMatchObject({ snapshotId, sessionId: 'listed' });
    const missing = `${uri}/artifacts/none`;
    const refused = await modern(target, 'resources/read', { uri: missing });
    expect(refused.body.error).toEqual({
      code: -32602,
      message: expect.stringContaining('There is no resource'),
      data: { uri: missing },
    });
    const { resourceTemplates } = (await modern(target, 'resources/templates/list')).body.result;
    expect(resourceTemplates).toHaveLength(2);
  });
});

describe('the protocol', () => {
  test('is described, with its revisions', async () => {
    const { body } = await modern(target, 'server/discover');
    expect(body.result).toMatchObject({
      supportedVersions: expect.arrayContaining(['2026-07-28', '2025-11-25']),
      capabilities: { tools: {}, resources: {}, extensions: {} },
    });
  });

  test('refuses headers that differ from the body, and revisions that it does not know', async () => {
    const call = { name: 'chat', arguments: { message: 'hi' } };
    const wrong = [{ 'mcp-name': 'other' }, { 'mcp-method': 'tools/list' }];
    for (const headers of wrong) {
      const { status, body } = await modern(target, 'tools/call', call, { headers });
      expect({ status, code: body.error.code }).toEqual({ status: 400, code: -32020 });
    }
    const encoded = { 'mcp-name': `=?base64?${btoa('chat')}?=` };
    expect((await modern(target, 'tools/call', call, { headers: encoded })).status).toBe(200);
    const meta = { 'io.modelcontextprotocol/protocolVersion': '2031-01-01' };
    const future = await modern(target, 'tools/list', {}, { meta });
    expect(future).toMatchObject({ status: 400, body: { error: { code: -32022 } } });
    const bare = { 'io.modelcontextprotocol/clientCapabilities': 7 };
    const malformed = await modern(target, 'tools/list', {}, { meta: bare });
    expect(malformed).toMatchObject({ status: 400, body: { error: { code: -32602 } } });
    const unknown = await modern(target, 'nothing/here');
    expect(unknown).toMatchObject({ status: 404, body: { error: { code: -32601 } } });
  });

  test('speaks with clients of 2025, in sessions that need no memory', async () => {
    const params = {
      protocolVersion: '2025-06-18',
      capabilities: { elicitation: {} },
      clientInfo: { name: 'test', version: '1' },
    };
    const opened = await legacy(target, { id: 1, method: 'initialize', params });
    expect(opened.body.result).toMatchObject({
      protocolVersion: '2025-06-18',
      serverInfo: { name: 'waymark' },
    });
    const session = opened.headers.get('mcp-session-id') ?? '';
    const headers = { 'mcp-session-id': session, 'mcp-protocol-version': '2025-06-18' };
    const inSession = { ...target, headers };
    const ready = await legacy(inSession, { method: 'notifications/initialized' });
    expect(ready.status).toBe(202);
    expect((await legacy(inSession, { id: 2, method: 'ping' })).body.result).toEqual({});
    const odd = { ...target, headers: { 'mcp-session-id': 'someone' } };
    expect((await legacy(odd, { id: 3, method: 'tools/list' })).status).toBe(404);
    const unknown = await legacy(inSession, { id: 4, method: 'prompts/list' });
    expect(unknown.body.error.code).toBe(-32601);
  });

  test('refuses what is no message', async () => {
    const send = async (body: string, type = 'application/json'): Promise<unknown[]> => {
      const response = await post(`${server.url}/mcp`, body, { 'content-type': type });
      const { error } = (await response.json()) as { error: { code: number } };
      return [response.status, error.code];
    };
    expect(await send('{')).toEqual([400, -32700]);
    expect(await send('[]')).toEqual([400, -32600]);
    expect(await send('{"jsonrpc":"2.0"}')).toEqual([400, -32600]);
    expect(await send('{}', 'text/plain')).toEqual([415, -32600]);
    expect((await fetch(`${server.url}/mcp`)).status).toBe(405);
    expect((await fetch(`${server.url}/mcp`, { method: 'DELETE' })).status).toBe(204);
  });
});

describe('the option', () => {
  test('is off by default, and works in a handler under a path', async () => {
    const off = handler(createTestApp());
    const request = (path: string): Request =>
      new Request(`http://localhost${path}`, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'ping' }),
      });
    expect((await off(request('/mcp'))).status).toBe(404);
    const on = handler(createTestApp(), { mcp: true, basePath: '/ai' });
    expect(await (await on(request('/ai/mcp'))).json()).toEqual({
      jsonrpc: '2.0',
      id: 1,
      result: {},
    });
  });

  test('names agents that exist and have a store, and a secret that protects', () => {
    const app = createTestApp();
    expect(() => handler(app, { mcp: { agents: ['nobody'] } })).toThrow(/no such agent/);
    expect(() => handler(app, { mcp: { agents: ['held'] } })).toThrow(/has no store/);
    expect(() => handler(app, { mcp: { secret: 'short' } })).toThrow(/at least 32 bytes/);
  });

  test('keeps to the checks of the server', async () => {
    const guarded = await startServer({
      mcp: true,
      auth: (request) => {
        const principal = request.headers.get('authorization');
        return principal ? { principal } : undefined;
      },
      authorize: ({ operation, principal }) => operation !== 'runTurn' || principal !== 'reader',
      limits: { turnsPerPrincipal: 1 },
    });
    const as = (authorization: string): Target => ({
      url: guarded.url,
      headers: { authorization },
    });
    const nobody = await modern({ url: guarded.url }, 'tools/list');
    expect(nobody.status).toBe(401);
    expect(nobody.headers.get('www-authenticate')).toBe('Bearer');
    expect(nobody.body).toMatchObject({ id: null, error: { data: { status: 'UNAUTHENTICATED' } } });
    const reader = await say(as('reader'), 'hi');
    expect(reader.body.result).toMatchObject({
      isError: true,
      _meta: { 'waymark/status': 'PERMISSION_DENIED' },
    });
    const gone = new AbortController();
    const busy = say({ ...as('ann'), signal: gone.signal }, 'hang');
    await eventually(async () => (await get(`${guarded.url}/healthz`)).turns === 1);
    const second = await say(as('ann'), 'hi');
    expect(second.status).toBe(429);
    gone.abort();
    await expect(busy).rejects.toThrow();
    const origin = await modern(
      { ...as('ann'), headers: { authorization: 'ann', origin: 'https://evil.example' } },
      'tools/list',
    );
    expect(origin).toMatchObject({ status: 403, body: { jsonrpc: '2.0' } });
    await guarded.close();
  });
});

describe('skills', () => {
  let folder = '';
  beforeAll(() => {
    folder = mkdtempSync(join(tmpdir(), 'waymark-served-skills-'));
    for (const name of ['refunds', 'notes']) {
      mkdirSync(join(folder, name, 'references'), { recursive: true });
      const head = `---\nname: ${name}\ndescription: About ${name}.\nlicense: MIT\n---\n`;
      writeFileSync(join(folder, name, 'SKILL.md'), `${head}Do it.\n`);
      writeFileSync(join(folder, name, 'references/a b.md'), 'More');
      writeFileSync(join(folder, name, 'logo.png'), Buffer.from([0x89, 0xff]));
    }
  });
  afterAll(() => rmSync(folder, { recursive: true }));
  const servers: { close(): Promise<void> }[] = [];
  afterEach(async () => {
    for (const each of servers.splice(0)) await each.close();
  });

  async function start(options: Parameters<typeof serve>[1] = {}) {
    const app = waymark({ model: scriptedModel([]), store: memoryStore(), skills: folder });
    app.defineAgent({ name: 'desk' });
    app.defineAgent({ name: 'plain', skills: [] });
    const skilled = await serve(app, { mcp: true, port: 0, ...options });
    servers.push(skilled);
    return skilled;
  }
  const extension = 'io.modelcontextprotocol/skills';

  test('S838 are offered with their front matter and the hashes of their files', async () => {
    const skilled = await start();
    const { result: discovered } = (await modern(skilled, 'server/discover')).body;
    expect(discovered.capabilities).toMatchObject({
      resources: {},
      extensions: { [extension]: {} },
    });
    const { result } = (await modern(skilled, 'skills/list')).body;
    expect(result).toMatchObject({ resultType: 'complete', ttlMs: 0, cacheScope: 'private' });
    expect(result.skills.map(({ uri }: { uri: string }) => uri)).toEqual([
      'skill://desk/notes/SKILL.md',
      'skill://desk/refunds/SKILL.md',
    ]);
    const [skill] = result.skills;
    expect(skill.frontmatter).toEqual({
      name: 'notes',
      description: 'About notes.',
      license: 'MIT',
    });
    const one = await modern(skilled, 'skills/get', { uri: skill.uri });
    expect(one.body.result.skill).toEqual(skill);
    expect(skill.resources).toHaveLength(3);
    for (const { uri, digest, size } of skill.resources) {
      const { contents } = (await modern(skilled, 'resources/read', { uri })).body.result;
      const [{ text, blob }] = contents;
      const bytes = Buffer.from(text ?? blob, text === undefined ? 'base64' : 'utf8');
      expect(bytes.length).toBe(size);
      expect(digest).toBe(`sha256:${createHash('sha256').update(bytes).digest('hex')}`);
    }
  });

  test('S838 are resources for clients without the extension', async () => {
    const skilled = await start();
    const { resources } = (await modern(skilled, 'resources/list')).body.result;
    expect(resources).toContainEqual({
      uri: 'skill://desk/notes/SKILL.md',
      name: 'notes',
      description: 'About notes.',
      mimeType: 'text/markdown',
      size: expect.any(Number),
    });
  });

  test('S838 have the hashes of now after an edit', async () => {
    const skilled = await start();
    const uri = 'skill://desk/refunds/SKILL.md';
    const before = (await modern(skilled, 'skills/get', { uri })).body.result.skill;
    writeFileSync(join(folder, 'refunds/references/a b.md'), 'Other');
    const after = (await modern(skilled, 'skills/get', { uri })).body.result.skill;
    expect(after.resources).not.toEqual(before.resources);
    const listed = (await modern(skilled, 'skills/list')).body.result.skills;
    expect(listed[1]).toEqual(after);
  });

  test.each([
    ['skills/get', 'skill://desk/none/SKILL.md'],
    ['skills/get', 'skill://plain/notes/SKILL.md'],
    ['skills/get', 'skill://desk/notes/logo.png'],
    ['skills/get', 'waymark://desk/notes'],
    ['skills/get', 7],
    ['resources/read', 'skill://desk/notes/../refunds/SKILL.md'],
    ['resources/read', 'skill://desk/notes/%2e%2e/%2e%2e/etc/passwd'],
    ['resources/read', 'skill://desk/notes/%E0%A4%A'],
  ])('S838 refuse %s of %j', async (method, uri) => {
    const skilled = await start();
    const { body } = await modern(skilled, method, { uri });
    expect(body.error.code).toBe(-32602);
  });

  test('S838 are hidden from callers that may not see the agent, and with `skills: false`', async () => {
    const uri = 'skill://desk/notes/SKILL.md';
    const authorize = ({ operation }: { readonly operation: string }): boolean =>
      operation !== 'getAgent';
    const closed = await start({ authorize });
    expect((await modern(closed, 'skills/list')).body.result.skills).toEqual([]);
    expect((await modern(closed, 'resources/read', { uri })).body.error.code).toBe(-32602);
    const off = await start({ mcp: { skills: false } });
    const { capabilities } = (await modern(off, 'server/discover')).body.result;
    expect(capabilities.extensions).not.toHaveProperty([extension]);
    expect((await modern(off, 'skills/list')).body.result.skills).toEqual([]);
    expect((await modern(off, 'skills/get', { uri })).body.error.code).toBe(-32602);
  });

  test('S839 are part of the description of an agent', async () => {
    const skilled = await start();
    const { skills } = await get(`${skilled.url}/agents/desk`);
    expect(skills).toEqual([
      {
        name: 'notes',
        description: 'About notes.',
        version: expect.stringMatching(/^[0-9a-f]{64}$/),
      },
      { name: 'refunds', description: 'About refunds.', version: expect.any(String) },
    ]);
  });
});
