import { once } from 'node:events';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { WebSocket } from 'ws';
import type { App } from '../../src/index.ts';
import { httpRoutes, routerPath } from '../../src/server/a2a/http-routes.ts';
import { createRouter, createServerContext } from '../../src/server/create-fetch.ts';
import { allProtocols } from '../../src/server/handler.ts';
import type { HandlerOptions } from '../../src/server/http/handler-options.ts';
import { eventually } from '../support/eventually.ts';
import { canary, createCanaryApp, leakIn, mask, transforms } from './canary-app.ts';
import { startServer, userInput } from './kit.ts';
import { receiveWebhooks } from './webhook-receiver.ts';

// biome-ignore lint/suspicious/noExplicitAny: tests look into whatever came
type Any = any;

const options: HandlerOptions = {
  reflection: true,
  mcp: true,
  openai: true,
  agui: true,
  a2a: true,
  edit: true,
  auth: () => ({ principal: 'ann' }),
};

/** Every route of a server, as `METHOD path`. A new one has to be asked below. */
function mountedRoutes(app: App): readonly string[] {
  const { routes } = createRouter(createServerContext(app, options, allProtocols(options)));
  const own = routes.filter(({ method }) => method !== 'ALL');
  return [...new Set(own.map(({ method, path }) => `${method} ${path}`))];
}

interface Asked {
  readonly body?: unknown;
  readonly headers?: Record<string, string>;
  /** Shows content, which must be there in its transformed form. */
  readonly shows?: boolean;
  /** Its answer is an error. */
  readonly fails?: boolean;
}

describe.each(Object.entries(transforms))('with the %s transform', (_, transform) => {
  let server: Awaited<ReturnType<typeof startServer>>;
  let hooks: Awaited<ReturnType<typeof receiveWebhooks>>;
  const asked = new Set<string>();

  beforeAll(async () => {
    hooks = await receiveWebhooks('ann');
    server = await startServer({ ...options, app: createCanaryApp(transform) });
  });
  afterAll(async () => {
    await server.close();
    hooks.close();
  });

  /** Asks a route with its parameters filled in, and looks for the canary in everything that comes back. */
  const ask = async (
    route: string,
    parameters: Record<string, string> = {},
    { body, headers = {}, shows = false, fails = false }: Asked = {},
  ): Promise<Any> => {
    asked.add(route.split('?')[0] ?? route);
    const [method = '', pattern = ''] = route.split(' ');
    const path = pattern.replace(/:(\w+)(\{\[\^\/\]\+(:\w+)\})?/g, (found, name, __, verb = '') =>
      parameters[name] === undefined ? found : `${encodeURIComponent(parameters[name])}${verb}`,
    );
    const response = await fetch(`${server.url}${path}`, {
      method,
      headers: { 'content-type': 'application/json', ...headers },
      ...(body !== undefined && { body: JSON.stringify(body) }),
      signal: AbortSignal.timeout(20_000),
    });
    const text = await response.text();
    const head = JSON.stringify([...response.headers]);
    expect([route, leakIn(head), leakIn(text)]).toEqual([route, undefined, undefined]);
    expect([route, response.ok ? 'ok' : text]).toEqual([route, fails ? expect.any(String) : 'ok']);
    if (fails) expect(response.ok).toBe(false);
    if (shows) expect([route, text]).toEqual([route, expect.stringContaining(mask)]);
    const isJson = response.headers.get('content-type')?.startsWith('application/json');
    return isJson ? JSON.parse(text) : text;
  };

  const stream = { accept: 'text/event-stream' };
  const turn = 'POST /agents/:agent/turns';
  const chat = { agent: 'chat' };
  const says = (text: string, init: object = {}, input: object = {}) => ({
    init,
    input: { ...userInput(text), ...input },
  });
  /** Starts a run that does not end by itself. */
  const hang = async (sessionId: string): Promise<string> =>
    (await ask(turn, chat, { body: says('hang', { sessionId }, { detach: true }) })).snapshotId;

  test('S685 the native protocol hides it in turns, sessions, snapshots and runs', async () => {
    const first = await ask(turn, chat, {
      body: says('everything', { sessionId: 'n1' }),
      shows: true,
    });
    const second = await ask(turn, chat, { body: says('more', { sessionId: 'n1' }), shows: true });
    const streamed = { body: says('everything', { sessionId: 'n2' }), headers: stream };
    await ask(turn, chat, { ...streamed, shows: true });
    const once = { body: says('more', { sessionId: 'n3' }, { requestId: 'r1' }), headers: stream };
    for (const headers of [stream, stream, {}]) await ask(turn, chat, { ...once, headers });
    for (const [word, session] of [
      ['ask', 'n4'],
      ['fail', 'n5'],
      ['bad', 'n6'],
    ] as const) {
      await ask(turn, chat, { body: says(word, { sessionId: session }) });
      await ask(turn, chat, { body: says(word), headers: stream });
    }
    const custom = await ask(turn, { agent: 'custom' }, { body: says('x'), headers: stream });
    expect(custom).toContain(mask);
    const held = await ask(turn, { agent: 'held' }, { body: says('x'), shows: true });
    await ask(turn, { agent: 'held' }, { body: says('y', { state: held.state }), shows: true });

    const { snapshotId: a } = first;
    const { snapshotId: b } = second;
    const one = { agent: 'chat', session: 'n1', snapshot: a, other: b, artifact: 'notes.md' };
    await ask('GET /agents', one);
    await ask('GET /agents/:agent', one);
    await ask('GET /agents/:agent/sessions', one);
    await ask('GET /agents/:agent/interrupts', one, { shows: true });
    await ask('GET /interrupts', one, { shows: true });
    await ask('GET /agents/:agent/sessions/:session', one, { shows: true });
    await ask('GET /agents/:agent/sessions/:session/snapshot', one, { shows: true });
    for (const session of ['n1', 'n5', 'n6']) {
      const at = { ...one, session };
      const { items } = await ask('GET /agents/:agent/sessions/:session/snapshots', at);
      for (const { snapshotId: snapshot } of items) {
        await ask('GET /agents/:agent/snapshots/:snapshot', { ...at, snapshot }, { shows: true });
        await ask('GET /agents/:agent/snapshots/:snapshot/events', { ...at, snapshot });
      }
    }
    await ask('GET /agents/:agent/sessions/:session/artifacts/:artifact', one, { shows: true });
    await ask('GET /agents/:agent/snapshots/:snapshot/artifacts/:artifact', one, { shows: true });
    const file = { ...one, artifact: 'file.txt' };
    await ask('GET /agents/:agent/sessions/:session/artifacts/:artifact', file, { fails: true });
    await ask('GET /agents/:agent/snapshots/:snapshot/diff/:other', one, { shows: true });
    const named = { body: { title: `Mine, ${canary}`, metadata: { mine: 1 } } };
    await ask('PATCH /agents/:agent/sessions/:session', one, named);
    await ask('PATCH /agents/:agent/snapshots/:snapshot', one, { body: { label: 'x' } });
    await ask('POST /agents/:agent/snapshots/:snapshot/restore', one, { body: {} });
    await ask('POST /agents/:agent/snapshots/:snapshot/fork', one, { body: {} });
    await ask('POST /agents/:agent/snapshots/:snapshot/edit', one, {
      body: { change: { artifacts: [{ name: 'mine', parts: [{ text: 'x' }] }] } },
      shows: true,
    });
    const snapshot = await hang('n7');
    const run = { ...one, snapshot };
    await ask('GET /agents/:agent/runs', run);
    const more = { input: userInput('hang') };
    await ask('POST /agents/:agent/snapshots/:snapshot/steer', run, { body: more });
    await ask('GET /agents/:agent/snapshots/:snapshot', run);
    const watched = ask('GET /agents/:agent/snapshots/:snapshot/events', run, { shows: true });
    await ask('POST /agents/:agent/snapshots/:snapshot/abort', run, { body: {} });
    await watched;
    await ask('GET /agents/:agent/dead-runs', run);
    await ask('POST /agents/:agent/snapshots/:snapshot/retry', run, { body: {}, fails: true });
    await ask('GET /agents/:agent/usage', run);
    await ask('DELETE /agents/:agent/sessions/:session', { ...one, session: 'n2' });
  });

  test('S685 the native protocol hides it in files of a workspace and in plans to undo', async () => {
    const files = { agent: 'files' };
    const turns: Any[] = [];
    for (const text of ['more', 'write']) {
      turns.push(await ask(turn, files, { body: says(text, { sessionId: 'w1' }) }));
    }
    const [before, after] = turns.map(({ snapshotId }) => snapshotId);
    const at = { ...files, snapshot: after, other: before, file: 'notes.txt' };
    const { items } = await ask('GET /agents/:agent/snapshots/:snapshot/files', at);
    expect(items.map(({ path }: Any) => path)).toEqual(['notes.txt', 'plain.txt']);
    await ask('GET /agents/:agent/snapshots/:snapshot/diff/:other', at, { shows: true });
    await ask('GET /agents/:agent/snapshots/:snapshot/files/:file', { ...at, file: 'plain.txt' });

    const { snapshotId: snapshot } = await ask(turn, chat, {
      body: says('more', { sessionId: 'n8' }),
    });
    await ask(turn, chat, { body: says('everything', { sessionId: 'n8' }) });
    const one = { ...chat, snapshot };
    const undo = '/agents/:agent/snapshots/:snapshot/undo';
    const plan = await ask(`GET ${undo}`, one, { shows: true });
    expect(plan.effects.length).toBeGreaterThan(1);
    await ask(`POST ${undo}`, one, { body: { undo: 'another plan' }, fails: true });
    await ask(`POST ${undo}`, one, { body: { undo: plan.id } });
  });

  test('S685 S944 the native protocol hides it in entries of a memory', async () => {
    const files = { agent: 'files' };
    const written = { body: says('write', { sessionId: 'w2' }) };
    const { snapshotId: snapshot } = await ask(turn, files, written);
    const at = '/agents/:agent/memory';
    const value = { text: `Of ${canary}` };
    const { id: entry } = await ask(`POST ${at}`, files, { body: { value }, shows: true });
    const one = { ...files, entry };
    await ask(`PATCH ${at}/:entry`, one, { body: { value }, shows: true });
    await ask(`GET ${at}/:entry`, one, { shows: true });
    const { items } = await ask(`GET ${at}`, files, { shows: true });
    expect(items.length).toBeGreaterThan(1);
    await ask(`POST ${at}`, files, { body: { value: { text: 'Likes tea' } } });
    expect(await ask(`GET ${at}?query=${canary}`, files)).toEqual({ items: [] });
    expect((await ask(`GET ${at}?query=tea`, files)).items).toHaveLength(1);
    const known = 'GET /agents/:agent/snapshots/:snapshot/memory';
    expect((await ask(known, { ...files, snapshot }, { shows: true })).learned).toHaveLength(1);
    await ask(`DELETE ${at}/:entry`, one);
  });

  test('S685 a WebSocket hides it in every frame', async () => {
    asked.add('GET /agents/:agent/connect');
    for (const words of [['everything', 'more'], ['fail'], ['bad']]) {
      const socket = new WebSocket(`${server.url.replace('http', 'ws')}/agents/chat/connect`);
      await once(socket, 'open');
      let frames = '';
      socket.on('message', (data) => {
        frames += String(data);
      });
      socket.send(JSON.stringify({ type: 'init', init: {} }));
      for (const word of words) {
        socket.send(JSON.stringify({ type: 'input', input: userInput(word) }));
      }
      socket.send(JSON.stringify({ type: 'close' }));
      await once(socket, 'close');
      expect(leakIn(frames)).toBeUndefined();
      expect(frames).toContain(mask);
      expect(frames).toContain('"type":"output"');
    }
  });

  test('S685 the protocols of Genkit, its development tools and AI SDK UI hide it', async () => {
    const run = 'POST /genkit/:agent';
    const genkit = { data: userInput('everything'), init: { sessionId: 'g1' } };
    const { result } = await ask(run, chat, { body: genkit, shows: true });
    await ask(`${run}?stream=true`, chat, { body: { data: userInput('everything') }, shows: true });
    for (const word of ['fail', 'bad']) {
      await ask(`${run}?stream=true`, chat, { body: { data: userInput(word) } });
    }
    const lookup = { data: { snapshotId: result.snapshotId } };
    await ask('POST /genkit/:agent/getSnapshot', chat, { body: lookup, shows: true });
    await ask('POST /genkit/:agent/abort', chat, { body: lookup });

    await ask('GET /api/__health');
    await ask('GET /api/envs');
    await ask('POST /api/notify', {}, { body: {} });
    const actions = Object.keys(await ask('GET /api/actions'));
    for (const key of actions.filter((each) => each.includes('chat'))) {
      const isTurn = key === '/agent/chat';
      const ids = { snapshotId: result.snapshotId, sessionId: 'g1' };
      const body = { key, input: isTurn ? userInput('everything') : ids };
      await ask('POST /api/runAction', {}, { body, shows: /^.agent.chat|get/.test(key) });
      if (!isTurn) continue;
      await ask('POST /api/runAction?stream=true', {}, { body, shows: true });
      for (const word of ['fail', 'bad']) {
        await ask('POST /api/runAction', {}, { body: { key, input: userInput(word) } });
      }
    }
    await ask('POST /api/cancelAction', {}, { body: { traceId: 'none' }, fails: true });

    const ui = (id: string, text: string) => ({
      body: { id, messages: [{ role: 'user', parts: [{ type: 'text', text }] }] },
    });
    await ask('POST /ui/:agent', chat, { ...ui('u1', 'everything'), shows: true });
    await ask('POST /ui/:agent', chat, { ...ui('u2', 'ask'), shows: true });
    for (const word of ['fail', 'bad']) await ask('POST /ui/:agent', chat, ui(`u-${word}`, word));
    for (const id of ['u1', 'u2']) {
      await ask('GET /ui/:agent/:chat/messages', { ...chat, chat: id }, { shows: true });
    }
    await hang('u3');
    const watched = ask('GET /ui/:agent/:chat/stream', { ...chat, chat: 'u3' }, { shows: true });
    await ask('POST /ui/:agent/:chat/stop', { ...chat, chat: 'u3' }, { body: {} });
    await watched;
  });

  test('S685 MCP hides it in results, questions, tasks and resources', async () => {
    let id = 0;
    const mcp = async (
      method: string,
      params: Record<string, unknown>,
      { shows = false, task = false } = {},
    ): Promise<Any> => {
      const extensions = { 'io.modelcontextprotocol/tasks': {} };
      const capabilities = { elicitation: {}, ...(task && { extensions }) };
      const meta = {
        'io.modelcontextprotocol/protocolVersion': '2026-07-28',
        'io.modelcontextprotocol/clientCapabilities': capabilities,
        ...(!task && { progressToken: ++id }),
      };
      const name = params.name ?? params.uri ?? params.taskId;
      const answer = await ask(
        'POST /mcp',
        {},
        {
          body: { jsonrpc: '2.0', id, method, params: { ...params, _meta: meta } },
          headers: {
            accept: 'application/json, text/event-stream',
            'mcp-protocol-version': '2026-07-28',
            'mcp-method': method,
            ...(typeof name === 'string' && { 'mcp-name': name }),
          },
          shows,
        },
      );
      if (typeof answer !== 'string') return answer;
      return JSON.parse(answer.trim().split('data: ').at(-1) ?? '');
    };
    const { tools } = (await mcp('tools/list', {})).result;
    const [offered] = tools.filter(({ name }: Any) => name === 'chat');
    expect(offered.outputSchema.properties.output).toEqual({});
    for (const word of ['everything', 'ask', 'question']) {
      await mcp('tools/call', { name: 'chat', arguments: { message: word } }, { shows: true });
    }
    for (const word of ['fail', 'bad']) {
      await mcp('tools/call', { name: 'chat', arguments: { message: word } });
    }
    for (const word of ['everything', 'fail', 'bad', 'ask']) {
      const call = { name: 'chat', arguments: { message: word } };
      const { taskId } = (await mcp('tools/call', call, { task: true })).result;
      const read = (of = {}): Promise<Any> => mcp('tasks/get', { taskId }, { task: true, ...of });
      await eventually(async () => (await read()).result.status !== 'working');
      if (word === 'everything') await read({ shows: true });
    }
    const listed: string[] = [];
    for (let cursor: string | undefined = ''; cursor !== undefined; ) {
      const { result } = await mcp('resources/list', cursor === '' ? {} : { cursor });
      listed.push(...result.resources.map(({ uri }: Any) => uri));
      cursor = result.nextCursor;
    }
    // A sub-agent that can be called as well needs a transform of its own.
    const own = listed.filter((uri) => uri.startsWith('waymark://chat/'));
    expect(own.length).toBeGreaterThan(2);
    for (const uri of own) await mcp('resources/read', { uri }, { shows: true });
    await ask('GET /mcp', {}, { fails: true });
    await ask('DELETE /mcp');
  });

  test('S685 the OpenAI Responses API hides it in responses, conversations and items', async () => {
    const at = 'POST /openai/v1/responses';
    const create = (input: string, more: object = {}, of: Asked = {}): Promise<Any> =>
      ask(at, {}, { body: { model: 'chat', input, ...more }, ...of });
    await ask('GET /openai/v1/models');
    await ask('GET /openai/v1/models/:model', { model: 'chat' });
    const { id: response } = await create('everything', {}, { shows: true });
    await create('everything', { stream: true }, { shows: true });
    await create('ask', {}, { shows: true });
    await create('more', { store: false, include: ['reasoning.encrypted_content'] });
    for (const word of ['fail', 'bad']) {
      await create(word, { stream: true });
      await create(word);
    }
    await ask('GET /openai/v1/responses/:response', { response }, { shows: true });
    await ask('GET /openai/v1/responses/:response?stream=true', { response }, { shows: true });
    await ask('GET /openai/v1/responses/:response/input_items', { response });
    const { id: hanging } = await create('hang', { background: true });
    await ask('POST /openai/v1/responses/:response/cancel', { response: hanging }, { body: {} });
    const { output } = await ask(
      'POST /openai/v1/responses/compact',
      {},
      { body: { model: 'chat', previous_response_id: response } },
    );
    expect(output.length).toBeGreaterThan(0);
    await ask(
      'POST /openai/v1/responses/input_tokens',
      {},
      { body: { model: 'chat', input: 'x' } },
    );
    await ask('DELETE /openai/v1/responses/:response', { response });

    const base = '/openai/v1/conversations';
    const { id: conversation } = await ask(`POST ${base}`, {}, { body: {} });
    await create('everything', { conversation }, { shows: true });
    await ask(`GET ${base}/:conversation`, { conversation });
    await ask(`POST ${base}/:conversation`, { conversation }, { body: { metadata: { a: 'b' } } });
    const items = await ask(`GET ${base}/:conversation/items`, { conversation }, { shows: true });
    const [{ id: item }] = items.data;
    await ask(`GET ${base}/:conversation/items/:item`, { conversation, item });
    const more = { items: [{ role: 'user', content: 'x' }] };
    await ask(`POST ${base}/:conversation/items`, { conversation }, { body: more });
    const last = await ask(`GET ${base}/:conversation/items`, { conversation });
    const gone = { conversation, item: last.data[0].id };
    await ask(`DELETE ${base}/:conversation/items/:item`, gone, { fails: true });
    await ask(`DELETE ${base}/:conversation`, { conversation });
  });

  test('S685 Chat Completions hides it in completions and chunks', async () => {
    const at = 'POST /openai/v1/chat/completions';
    for (const stream of [false, true]) {
      const says = (content: string, more: object = {}) => ({
        body: { model: 'chat', stream, messages: [{ role: 'user', content }], ...more },
      });
      await ask(at, {}, { ...says('everything'), shows: true });
      await ask(
        at,
        {},
        { ...says('everything', { metadata: { session_id: `c-${stream}` } }), shows: true },
      );
      await ask(at, {}, { ...says('ask'), shows: true });
      for (const word of ['fail', 'bad']) await ask(at, {}, { ...says(word), fails: !stream });
    }
  });

  test('S685 AG-UI hides it in events and threads', async () => {
    const run = (threadId: string, content: string, of: Asked = {}): Promise<Any> =>
      ask('POST /agui/:agent', chat, {
        body: {
          threadId,
          runId: `run-${threadId}`,
          messages: [{ id: 'm1', role: 'user', content }],
          tools: [],
          context: [],
          state: {},
        },
        headers: stream,
        ...of,
      });
    await ask('GET /agui/:agent', chat);
    await run('a1', 'everything', { shows: true });
    await run('a2', 'ask', { shows: true });
    for (const word of ['fail', 'bad']) await run(`a-${word}`, word);
    for (const thread of ['a1', 'a2', 'a-fail', 'none']) {
      await ask('GET /agui/:agent/:thread', { ...chat, thread });
    }
    await hang('a3');
    const watched = ask('GET /agui/:agent/:thread', { ...chat, thread: 'a3' }, { shows: true });
    await ask('POST /agui/:agent/:thread/cancel', { ...chat, thread: 'a3' }, { body: {} });
    await watched;
  });

  test('S685 A2A hides it in tasks, streams and push notifications', async () => {
    const message = (text: string, more: object = {}) => ({
      message: { messageId: crypto.randomUUID(), role: 'ROLE_USER', parts: [{ text }], ...more },
    });
    const at = (name: keyof typeof httpRoutes, method?: string): string => {
      const route = httpRoutes[name] as (typeof httpRoutes)[string];
      return `${method ?? route.http[0]} ${routerPath(route)}`;
    };
    await ask('GET /.well-known/agent-card.json', chat);
    await ask('GET /a2a/:agent/.well-known/agent-card.json', chat);
    const { task } = await ask(at('SendMessage'), chat, {
      body: message('everything'),
      shows: true,
    });
    await ask(at('SendStreamingMessage'), chat, { body: message('everything'), shows: true });
    const rpc = { jsonrpc: '2.0', id: 1, method: 'SendMessage', params: message('ask') };
    await ask('POST /a2a/:agent', chat, { body: rpc, shows: true });
    for (const word of ['fail', 'bad']) {
      await ask(at('SendMessage'), chat, { body: message(word) });
      await ask(at('SendStreamingMessage'), chat, { body: message(word) });
    }
    const done = { ...chat, task: task.id };
    await ask(at('GetTask'), done, { shows: true });
    await ask(at('ListTasks'), done, { shows: true });

    const background = { ...message('hang'), configuration: { returnImmediately: true } };
    const begun = await ask(at('SendMessage'), chat, { body: background });
    const open = { ...chat, task: begun.task.id, config: 'c1' };
    const config = { id: 'c1', url: hooks.url };
    await ask(at('CreateTaskPushNotificationConfig'), open, { body: config });
    await ask(at('ListTaskPushNotificationConfigs'), open);
    await ask(at('GetTaskPushNotificationConfig'), open);
    const watched = [
      ask(at('SubscribeToTask', 'POST'), open, { shows: true }),
      ask(at('SubscribeToTask', 'GET'), open, { shows: true }),
    ];
    await ask(at('CancelTask'), open);
    await Promise.all(watched);
    const push = { body: config };
    await ask(at('CreateTaskPushNotificationConfig'), done, push);
    await eventually(() => hooks.got.length > 1);
    expect(leakIn(JSON.stringify(hooks.got))).toBeUndefined();
    expect(JSON.stringify(hooks.got)).toContain(mask);
    await ask(at('DeleteTaskPushNotificationConfig'), open);
  });

  test('S682 a search for it finds nothing, by any call that searches', async () => {
    const sessions = await ask('GET /agents/:agent/sessions', chat);
    expect(sessions.items.length).toBeGreaterThan(5);
    for (const query of [canary, canary.slice(0, 6), `About ${canary}`, canary.toUpperCase()]) {
      const text = encodeURIComponent(query);
      expect(await ask(`GET /agents/:agent/sessions?query=${text}`, chat)).toEqual({ items: [] });
    }
    const found = await ask('GET /agents/:agent/sessions?query=n1', chat);
    expect(found.items).toMatchObject([{ sessionId: 'n1' }]);
  });

  test('S685 every route of the server was asked', async () => {
    for (const route of ['GET /healthz', 'GET /readyz', 'GET /openapi.json']) {
      await ask(route);
    }
    const mounted = mountedRoutes(server.app);
    expect(mounted.filter((route) => !asked.has(route))).toEqual([]);
    expect([...asked].filter((route) => !mounted.includes(route))).toEqual([]);
  });
});
