import { once } from 'node:events';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { WebSocket } from 'ws';
import { type Operation, routes } from '../../src/protocol/routes.ts';
import { httpRoutes, routerPath } from '../../src/server/a2a/http-routes.ts';
import { createRouter, createServerContext } from '../../src/server/create-fetch.ts';
import { allProtocols } from '../../src/server/handler.ts';
import type { HandlerOptions } from '../../src/server/http/handler-options.ts';
import type { AuthorizeCall } from '../../src/server/index.ts';
import { openAiPath, openAiRoutes } from '../../src/server/openai/routes.ts';
import { rpc, userMessage } from './a2a-calls.ts';
import { allEvents, createTestApp, get, post, startServer, streamTurn, userInput } from './kit.ts';
import { modern, say } from './mcp-calls.ts';

let server: Awaited<ReturnType<typeof startServer>>;
let url: string;
const calls: AuthorizeCall[] = [];

/** What Ann has: a finished turn, and a run that is under way. */
const ann = {
  sessionId: 'anns',
  snapshotId: '',
  running: '',
  busy: 'anns-busy',
  asked: '',
  call: '',
  held: [] as readonly object[],
};

const as = (name: string): Record<string, string> => ({ authorization: name });

beforeAll(async () => {
  server = await startServer({
    reflection: true,
    mcp: true,
    openai: true,
    agui: true,
    a2a: true,
    edit: true,
    app: createTestApp({
      webhooks: { secret: `whsec_${btoa('a secret for the webhooks of tests')}` },
    }),
    auth(request) {
      const principal = request.headers.get('authorization');
      if (principal === 'broken') throw new Error('database of users is down: secret');
      return principal ? { principal, context: { name: principal } } : undefined;
    },
    authorize(call) {
      calls.push(call);
      const mayWrite = call.principal !== 'reader';
      return mayWrite || !['deleteSession', 'runAction'].includes(call.operation);
    },
  });
  ({ url } = server);
  const done = await allEvents(
    await streamTurn(url, 'hello', { init: { sessionId: ann.sessionId }, headers: as('ann') }),
  );
  ann.snapshotId = done.at(-1)?.data.snapshotId;
  const detached = await post(
    `${url}/agents/chat/turns`,
    { init: { sessionId: ann.busy }, input: { ...userInput('hang'), detach: true } },
    as('ann'),
  );
  ann.running = (await detached.json()).snapshotId;
  const asking = { url, headers: as('ann'), capabilities: { elicitation: {} } };
  ann.asked = (await say(asking, 'transfer 3')).body.result.requestState;
  const openai = async (body: object): Promise<readonly { call_id: string }[]> =>
    (await (await post(`${url}/openai/v1/responses`, { model: 'chat', ...body }, as('ann'))).json())
      .output;
  ann.call = (await openai({ input: 'transfer 5' })).at(-1)?.call_id ?? '';
  ann.held = await openai({ input: 'hello', store: false });
});
afterAll(() => server.close());

type Attempt = () => Promise<Response>;

const asBob = (path: string, method: string, body?: unknown): Promise<Response> =>
  fetch(`${url}${path}`, {
    method,
    headers: { ...as('bob'), 'content-type': 'application/json' },
    ...(body !== undefined && { body: JSON.stringify(body) }),
  });

// Each call of the native dialect that names a session or a snapshot, with what its body needs.
const bodies: Partial<Record<Operation, unknown>> = {
  updateSession: { title: 'mine now' },
  label: { label: 'mine now' },
  restore: {},
  undo: { undo: true },
  fork: {},
  edit: { change: { custom: {} } },
  abort: {},
  retryRun: {},
  steer: { input: userInput('mine now') },
};
const natives = Object.entries(routes).filter(([, { path }]) => /:session|:snapshot/.test(path));

/** What is mounted, as `METHOD path`; what is not tried below must be named here, with a reason. */
const everything: HandlerOptions = {
  reflection: true,
  mcp: true,
  openai: true,
  agui: true,
  a2a: true,
  auth: () => undefined,
};
const mounted = createRouter(
  createServerContext(createTestApp(), everything, allProtocols(everything)),
)
  .routes.filter(({ method }) => method !== 'ALL')
  .map(({ method, path }) => `${method} ${path}`);

/** Lists show what is one's own; see below. */
const lists = [
  'listSessions',
  'listInterrupts',
  'listAllInterrupts',
  'listRuns',
  'listDeadRuns',
  'getUsage',
  // Of the caller's own scope; see memory-http.test.ts.
  'listMemory',
  'memoryHistory',
  'addMemory',
  'updateMemory',
  'forgetMemory',
] as const;

/** Routes that name nobody's session, snapshot or run. */
const nobodys = [
  ...(['listAgents', 'getAgent'] as const).map((name) => routes[name]),
  { method: 'GET', path: '/healthz' },
  { method: 'GET', path: '/readyz' },
  { method: 'GET', path: '/openapi.json' },
  { method: 'GET', path: '/api/__health' },
  { method: 'GET', path: '/api/actions' },
  { method: 'GET', path: '/api/envs' },
  { method: 'POST', path: '/api/notify' },
  { method: 'GET', path: '/mcp' },
  { method: 'DELETE', path: '/mcp' },
  { method: 'GET', path: '/openai/v1/models' },
  { method: 'GET', path: '/openai/v1/models/:model' },
  { method: 'POST', path: '/openai/v1/conversations' },
  { method: 'GET', path: '/agui/:agent' },
  { method: 'GET', path: '/.well-known/agent-card.json' },
  { method: 'GET', path: '/a2a/:agent/.well-known/agent-card.json' },
].map(({ method, path }) => `${method} ${path}`);

const mcpAsBob = async (method: string, params: Record<string, unknown>): Promise<Response> => {
  const capabilities = { elicitation: {}, extensions: { 'io.modelcontextprotocol/tasks': {} } };
  const { body } = await modern({ url, headers: as('bob'), capabilities }, method, params);
  return Response.json(body);
};
const a2aAsBob = async (method: string, params: object): Promise<Response> =>
  Response.json((await rpc({ url, token: 'bob', scheme: '' }, method, params)).body);
const noA2aTask = { error: { code: -32001, message: expect.stringContaining('There is no task') } };
const noHttpTask = { error: { code: 404, message: expect.stringContaining('There is no task') } };
const noTask = { error: { code: -32602, message: expect.stringContaining('There is no task') } };

/** Calls besides those of the native routes that name an id in their path. */
const elsewhere: Record<string, { route: string; attempt: Attempt; expected: unknown }> = {
  'a native turn from a snapshot': {
    route: 'POST /agents/:agent/turns',
    attempt: () =>
      asBob('/agents/chat/turns', 'POST', {
        init: { snapshotId: ann.snapshotId },
        input: userInput('x'),
      }),
    expected: { status: 'NOT_FOUND' },
  },
  'a run taken up from an event': {
    route: 'GET /agents/:agent/snapshots/:snapshot/events',
    attempt: () => asBob(`/agents/chat/snapshots/${ann.running}/events?after=1.0`, 'GET'),
    expected: { status: 'NOT_FOUND' },
  },
  'a Genkit turn from a snapshot': {
    route: 'POST /genkit/:agent',
    attempt: () =>
      asBob('/genkit/chat', 'POST', {
        init: { snapshotId: ann.snapshotId },
        data: userInput('x'),
      }),
    expected: { status: 'NOT_FOUND' },
  },
  'a Genkit lookup of a snapshot': {
    route: 'POST /genkit/:agent/getSnapshot',
    attempt: () =>
      asBob('/genkit/chat/getSnapshot', 'POST', { data: { snapshotId: ann.snapshotId } }),
    expected: { status: 'NOT_FOUND' },
  },
  'a Genkit lookup of a running turn': {
    route: 'POST /genkit/:agent/getSnapshot',
    attempt: () => asBob('/genkit/chat/getSnapshot', 'POST', { data: { snapshotId: ann.running } }),
    expected: { status: 'NOT_FOUND' },
  },
  'a Genkit lookup of a session': {
    route: 'POST /genkit/:agent/getSnapshot',
    attempt: () =>
      asBob('/genkit/chat/getSnapshot', 'POST', { data: { sessionId: ann.sessionId } }),
    expected: { status: 'NOT_FOUND' },
  },
  'a regenerated answer of the UI': {
    route: 'POST /ui/:agent',
    attempt: () =>
      asBob('/ui/chat', 'POST', {
        id: ann.sessionId,
        trigger: 'regenerate-message',
        messageId: ann.snapshotId,
        messages: [{ role: 'user', parts: [{ type: 'text', text: 'x' }] }],
      }),
    expected: { status: 'NOT_FOUND' },
  },
  'a stop of the UI': {
    route: 'POST /ui/:agent/:chat/stop',
    attempt: () => asBob(`/ui/chat/${ann.busy}/stop`, 'POST', {}),
    expected: { status: 'NOT_FOUND' },
  },
  'the history of the UI': {
    route: 'GET /ui/:agent/:chat/messages',
    attempt: () => asBob(`/ui/chat/${ann.sessionId}/messages`, 'GET'),
    expected: { status: 'NOT_FOUND' },
  },
  'a snapshot by reflection': {
    route: 'POST /api/runAction',
    attempt: () =>
      asBob('/api/runAction', 'POST', {
        key: '/agent-snapshot/chat',
        input: { snapshotId: ann.snapshotId },
      }),
    expected: { error: { code: 5 } },
  },
  'a turn by reflection': {
    route: 'POST /api/runAction',
    attempt: () =>
      asBob('/api/runAction', 'POST', {
        key: '/agent/chat',
        input: userInput('x'),
        init: { snapshotId: ann.snapshotId },
      }),
    expected: { error: { code: 5 } },
  },
  'the companions by reflection': {
    route: 'POST /api/runAction',
    attempt: () =>
      asBob('/api/runAction', 'POST', {
        key: '/session-store/chat/getSession',
        input: { sessionId: ann.sessionId },
        context: { owner: 'ann' },
      }),
    expected: { error: { code: 5 } },
  },
  'a snapshot over a WebSocket': {
    route: 'GET /agents/:agent/connect',
    attempt: async () => {
      const socket = new WebSocket(`${url.replace('http', 'ws')}/agents/chat/connect`, {
        headers: as('bob'),
      });
      await once(socket, 'open');
      const told = once(socket, 'message');
      socket.send(JSON.stringify({ type: 'init', init: { snapshotId: ann.snapshotId } }));
      socket.send(JSON.stringify({ type: 'input', input: userInput('x') }));
      const [data] = await told;
      socket.close();
      return Response.json(JSON.parse(String(data)).error);
    },
    expected: { status: 'NOT_FOUND' },
  },
  'a tool call of MCP from a snapshot': {
    route: 'POST /mcp',
    attempt: () =>
      mcpAsBob('tools/call', {
        name: 'chat',
        arguments: { message: 'x', snapshotId: ann.snapshotId },
        _meta: { progressToken: 1 },
      }),
    expected: { result: { isError: true, _meta: { 'waymark/status': 'NOT_FOUND' } } },
  },
  'the request state of MCP': {
    route: 'POST /mcp',
    attempt: () =>
      mcpAsBob('tools/call', {
        name: 'chat',
        arguments: { message: 'x' },
        requestState: ann.asked,
        inputResponses: {},
      }),
    expected: { result: { isError: true, _meta: { 'waymark/status': 'INVALID_ARGUMENT' } } },
  },
  'a resource of MCP': {
    route: 'POST /mcp',
    attempt: () =>
      mcpAsBob('resources/read', { uri: `waymark://chat/snapshots/${ann.snapshotId}` }),
    expected: { error: { code: -32602, message: expect.stringContaining('There is no resource') } },
  },
  'the list of resources of MCP': {
    route: 'POST /mcp',
    attempt: () => mcpAsBob('resources/list', {}),
    expected: { result: { resources: [] } },
  },
  ...Object.fromEntries(
    ['tasks/get', 'tasks/update', 'tasks/cancel'].map((method) => [
      `a task of MCP in ${method}`,
      {
        route: 'POST /mcp',
        attempt: () => mcpAsBob(method, { taskId: `chat:${ann.running}`, inputResponses: {} }),
        expected: noTask,
      },
    ]),
  ),
  ...Object.fromEntries(
    Object.values(openAiRoutes)
      .filter(({ path }) => /:response|:conversation/.test(path))
      .flatMap(({ method, path }) =>
        (['finished', 'running'] as const).map((which) => [
          `${which} response or conversation of OpenAI in ${method} ${path}`,
          {
            route: `${method} ${openAiPath}${path}`,
            attempt: () => {
              const [snapshot, session] =
                which === 'finished' ? [ann.snapshotId, ann.sessionId] : [ann.running, ann.busy];
              const at = path
                .replace(':response', `resp_${snapshot}`)
                .replace(':conversation', session)
                .replace(':item', `msg_${snapshot}_0`);
              const body = { metadata: {}, items: [{ role: 'user', content: 'x' }] };
              return asBob(`${openAiPath}${at}`, method, method === 'POST' ? body : undefined);
            },
            expected: { error: { code: expect.stringContaining('_not_found') } },
          },
        ]),
      ),
  ),
  ...Object.fromEntries(
    Object.entries<() => object>({
      'a response': () => ({ input: 'x', previous_response_id: `resp_${ann.snapshotId}` }),
      'a running response': () => ({ input: 'x', previous_response_id: `resp_${ann.running}` }),
      'a conversation': () => ({ input: 'x', conversation: ann.sessionId }),
      'an item': () => ({
        input: [
          { type: 'item_reference', id: `msg_${ann.snapshotId}_0` },
          { role: 'user', content: 'x' },
        ],
      }),
      'a function call': () => ({
        input: [{ type: 'function_call_output', call_id: ann.call, output: '{"approved":true}' }],
      }),
    }).flatMap(([what, body]) =>
      ['/responses', '/responses/compact', '/responses/input_tokens'].map((path) => [
        `${what} of OpenAI that is continued at ${path}`,
        {
          route: `POST ${openAiPath}${path}`,
          attempt: () => asBob(`${openAiPath}${path}`, 'POST', { model: 'chat', ...body() }),
          expected: { error: { code: expect.stringContaining('_not_found') } },
        },
      ]),
    ),
  ),
  ...Object.fromEntries(
    Object.entries<() => object>({
      'that is named by its id': () => ({ store: true }),
      'in the session': () => ({ metadata: { session_id: ann.sessionId } }),
    }).map(([what, body]) => [
      `a tool call of a chat completion ${what}`,
      {
        route: `POST ${openAiPath}/chat/completions`,
        attempt: () =>
          asBob(`${openAiPath}/chat/completions`, 'POST', {
            model: 'chat',
            messages: [{ role: 'tool', tool_call_id: ann.call, content: '{"approved":true}' }],
            ...body(),
          }),
        expected: { error: { code: expect.stringMatching(/_found$/) } },
      },
    ]),
  ),
  'the state that a client of OpenAI holds': {
    route: `POST ${openAiPath}/responses`,
    attempt: () =>
      asBob(`${openAiPath}/responses`, 'POST', {
        model: 'chat',
        store: false,
        input: [...ann.held, { role: 'user', content: 'x' }],
      }),
    expected: { error: { code: 'permission_denied' } },
  },
  'an interrupt of AG-UI': {
    route: 'POST /agui/:agent',
    attempt: () =>
      asBob('/agui/chat', 'POST', {
        threadId: ann.sessionId,
        runId: 'bobs',
        messages: [],
        resume: [{ interruptId: `${ann.snapshotId}:x`, status: 'resolved', payload: true }],
      }),
    expected: { status: 'INVALID_ARGUMENT', message: expect.stringContaining('no interrupt') },
  },
  'the answer of a thread of AG-UI once more': {
    route: 'POST /agui/:agent',
    attempt: () =>
      asBob('/agui/chat', 'POST', {
        threadId: ann.sessionId,
        runId: 'bobs-too',
        messages: [{ id: `${ann.snapshotId}:0`, role: 'assistant', content: 'x' }],
      }),
    expected: { status: 'INVALID_ARGUMENT', message: expect.stringContaining('nothing new') },
  },
  'a cancel of AG-UI': {
    route: 'POST /agui/:agent/:thread/cancel',
    attempt: () => asBob(`/agui/chat/${ann.busy}/cancel`, 'POST', {}),
    expected: { status: 'NOT_FOUND' },
  },
  'a connection of AG-UI, which is that to an empty thread': {
    route: 'GET /agui/:agent/:thread',
    attempt: async () => {
      const events = await allEvents(await asBob(`/agui/chat/${ann.busy}`, 'GET'));
      return Response.json(events.map(({ data }) => data));
    },
    expected: [
      { type: 'RUN_STARTED', threadId: ann.busy, runId: 'none' },
      { type: 'MESSAGES_SNAPSHOT', messages: [] },
      { type: 'RUN_FINISHED', threadId: ann.busy, runId: 'none' },
    ],
  },
  ...Object.fromEntries(
    [
      'GetTask',
      'CancelTask',
      'SubscribeToTask',
      'tasks/get',
      'tasks/cancel',
      'tasks/resubscribe',
      'CreateTaskPushNotificationConfig',
      'GetTaskPushNotificationConfig',
      'ListTaskPushNotificationConfigs',
      'DeleteTaskPushNotificationConfig',
      'tasks/pushNotificationConfig/list',
    ].flatMap((method) =>
      (['running', 'snapshotId'] as const).map((which) => [
        `a task of A2A (${which}) in ${method}`,
        {
          route: 'POST /a2a/:agent',
          attempt: () =>
            a2aAsBob(method, {
              ...(/Push/.test(method) && !method.includes('/')
                ? { taskId: ann[which], id: 'x' }
                : { id: ann[which] }),
              url: 'https://example.com/',
            }),
          expected: noA2aTask,
        },
      ]),
    ),
  ),
  'an answer to a task of A2A': {
    route: 'POST /a2a/:agent',
    attempt: () =>
      a2aAsBob('SendMessage', { message: userMessage('x', { taskId: ann.snapshotId }) }),
    expected: noA2aTask,
  },
  ...Object.fromEntries(
    Object.entries(httpRoutes)
      .filter(([, { path }]) => path.includes(':task'))
      .flatMap(([name, route]) => route.http.map((method) => ({ name, method, route })))
      .flatMap(({ name, method, route }) =>
        (['running', 'snapshotId'] as const).map((which) => [
          `a task of A2A (${which}) at ${method} ${name}`,
          {
            route: `${method} ${routerPath(route)}`,
            attempt: () => {
              const path = route.path.replace(':task', ann[which]).replace(':config', 'x');
              const body = { url: 'https://example.com/' };
              return asBob(`/a2a/chat${path}`, method, route.hasBody ? body : undefined);
            },
            expected: noHttpTask,
          },
        ]),
      ),
  ),
  ...Object.fromEntries(
    ['send', 'stream'].map((verb) => [
      `an answer to a task of A2A by message:${verb}`,
      {
        route: `POST /a2a/:agent/message:${verb}`,
        attempt: () =>
          asBob(`/a2a/chat/message:${verb}`, 'POST', {
            message: userMessage('x', { taskId: ann.snapshotId }),
          }),
        expected: noHttpTask,
      },
    ]),
  ),
  'the tasks of a context of A2A by HTTP': {
    route: 'GET /a2a/:agent/tasks',
    attempt: () => asBob(`/a2a/chat/tasks?contextId=${ann.sessionId}`, 'GET'),
    expected: { tasks: [], totalSize: 0 },
  },
  'the tasks of a context of A2A': {
    route: 'POST /a2a/:agent',
    attempt: () => a2aAsBob('ListTasks', { contextId: ann.sessionId }),
    expected: { result: { tasks: [], totalSize: 0 } },
  },
  'an action that is running': {
    route: 'POST /api/cancelAction',
    attempt: async () => {
      const traceId = 'e'.repeat(32);
      const running = await fetch(`${url}/api/runAction?stream=true`, {
        method: 'POST',
        headers: { ...as('ann'), traceparent: `00-${traceId}-${'d'.repeat(16)}-01` },
        body: JSON.stringify({ key: '/agent/chat', input: userInput('hang') }),
      });
      const id = running.headers.get('x-genkit-trace-id');
      const refused = await asBob('/api/cancelAction', 'POST', { traceId: id });
      const cancelled = await post(`${url}/api/cancelAction`, { traceId: id }, as('ann'));
      expect(cancelled.status).toBe(200);
      expect(await running.text()).toContain('aborted');
      return refused;
    },
    expected: { status: 'NOT_FOUND' },
  },
};

/** Routes whose wire has no NOT_FOUND. */
const unanswered = ['POST /genkit/:agent/abort', 'GET /ui/:agent/:chat/stream'];

describe('another principal’s', () => {
  test('session, snapshot or run is tried at every route of every dialect', () => {
    const named = [...natives.map(([name]) => name as Operation), ...lists].map(
      (name) => `${routes[name].method} ${routes[name].path}`,
    );
    const tried = [...named, ...Object.values(elsewhere).map(({ route }) => route), ...unanswered];
    expect(mounted.filter((route) => !tried.includes(route) && !nobodys.includes(route))).toEqual(
      [],
    );
    // And nothing is tried that is not there.
    expect([...tried, ...nobodys].filter((route) => !mounted.includes(route))).toEqual([]);
  });

  describe.each(natives)('%s', (name, { method, path }) => {
    test.each(['finished', 'running'])('%s is NOT_FOUND', async (which) => {
      const sessionId = which === 'finished' ? ann.sessionId : ann.busy;
      const snapshotId = which === 'finished' ? ann.snapshotId : ann.running;
      const at = path
        .replace(':agent', 'chat')
        .replace(':session', sessionId)
        .replace(':snapshot', snapshotId)
        .replace(':other', snapshotId);
      const response = await asBob(at, method, bodies[name as Operation]);
      const body = await response.json();
      expect(body).toMatchObject({ status: 'NOT_FOUND' });
      expect(response.status).toBe(404);
      expect(JSON.stringify(body)).not.toContain('hello');
    });
  });

  test.each(Object.entries(elsewhere))('%s is unknown', async (_, { attempt, expected }) => {
    const response = await attempt();
    expect(await response.json()).toMatchObject(expected as object);
  });

  // Where the wire has no NOT_FOUND, an id of somebody else is answered as one that nobody has.
  test('an abort or a reconnect answers as for an id that nobody has', async () => {
    const aborted = await asBob('/genkit/chat/abort', 'POST', {
      data: { snapshotId: ann.running },
    });
    expect(await aborted.json()).toEqual({ result: { snapshotId: ann.running } });
    const byTool = await asBob('/api/runAction', 'POST', {
      key: '/agent-abort/chat',
      input: { snapshotId: ann.running },
    });
    expect(await byTool.json()).toMatchObject({ result: { snapshotId: ann.running } });
    expect((await asBob(`/ui/chat/${ann.busy}/stream`, 'GET')).status).toBe(204);
    const still = await get(`${url}/agents/chat/snapshots/${ann.running}`, { headers: as('ann') });
    expect(still.status).toBe('pending');
  });

  test('the same session id is a session of one’s own', async () => {
    const mine = await post(
      `${url}/agents/chat/turns`,
      { init: { sessionId: ann.sessionId }, input: userInput('x') },
      as('carol'),
    );
    expect((await mine.json()).message.content[0].text).toBe('You said 1 things.');
    const { items } = await get(`${url}/agents/chat/sessions`, { headers: as('bob') });
    expect(items).toEqual([]);
    const runs = await get(`${url}/agents/chat/runs`, { headers: as('bob') });
    expect(runs.items).toEqual([]);
    const dead = await get(`${url}/agents/chat/dead-runs`, { headers: as('bob') });
    expect(dead.items).toEqual([]);
    const mineToo = await get(`${url}/agents/chat/runs`, { headers: as('ann') });
    expect(mineToo.items).toMatchObject([{ snapshotId: ann.running }]);
  });

  test('another agent’s ids are unknown as well', async () => {
    const response = await fetch(`${url}/agents/other/snapshots/${ann.snapshotId}`, {
      headers: as('ann'),
    });
    expect(response.status).toBe(404);
  });
});

describe('auth', () => {
  test('S710 a caller without credentials is UNAUTHENTICATED in every protocol, and an auth that throws INTERNAL', async () => {
    for (const path of [
      '/agents',
      '/agents/chat/sessions',
      '/genkit/chat',
      '/ui/chat',
      '/mcp',
      '/openai/v1/models',
      '/a2a/chat',
      '/a2a/chat/message:send',
      '/api/actions',
      '/nowhere',
    ]) {
      const method = path.includes('chat') ? 'POST' : 'GET';
      const refused = await fetch(`${url}${path}`, { method });
      expect(refused.status).toBe(401);
      expect(await refused.text()).toMatch(/UNAUTHENTICATED|authentication_error/);
      const failed = await fetch(`${url}${path}`, { method, headers: as('broken') });
      expect(failed.status).toBe(500);
      expect(await failed.text()).not.toContain('secret');
    }
    const stream = await post(`${url}/genkit/chat?stream=true`, { data: userInput('x') });
    expect(stream.status).toBe(200);
    expect(await stream.text()).toMatch(/^data: \{"error":\{"status":"UNAUTHENTICATED"/);
  });

  test('the context reaches the tools, and the detached work', async () => {
    const output = await (
      await post(`${url}/agents/chat/turns`, { input: userInput('who am i') }, as('dora'))
    ).json();
    expect(output.message.content[0].text).toContain('"name":"dora"');
    const detached = await post(
      `${url}/agents/chat/turns`,
      { input: { ...userInput('who am i'), detach: true } },
      as('dora'),
    );
    const { snapshotId } = await detached.json();
    const events = await allEvents(
      await fetch(`${url}/agents/chat/snapshots/${snapshotId}/events`, { headers: as('dora') }),
    );
    expect(events.at(-1)?.data.message.content[0].text).toContain('"name":"dora"');
  });

  test('authorize sees who does what, and may refuse', async () => {
    calls.length = 0;
    await fetch(`${url}/agents/chat/sessions/s1`, { headers: as('reader') });
    expect(calls).toMatchObject([
      {
        principal: 'reader',
        context: { name: 'reader' },
        operation: 'getSession',
        agent: 'chat',
        sessionId: 's1',
      },
    ]);
    const refused = await fetch(`${url}/agents/chat/sessions/s1`, {
      method: 'DELETE',
      headers: as('reader'),
    });
    expect(refused.status).toBe(403);
    expect(await refused.json()).toMatchObject({ status: 'PERMISSION_DENIED' });
    const weather = { key: '/tool/weather', input: {} };
    const action = await post(`${url}/api/runAction`, weather, as('reader'));
    expect(action.status).toBe(403);
    expect(calls.at(-1)).toMatchObject({ operation: 'runAction', action: '/tool/weather' });
  });

  test('without auth, another host is refused at start', async () => {
    for (const host of ['0.0.0.0', '::', '192.168.0.1', 'example.com']) {
      await expect(startServer({ host })).rejects.toMatchObject({ status: 'FAILED_PRECONDITION' });
    }
    const open = await startServer({ host: '0.0.0.0', auth: () => ({ principal: 'all' }) });
    expect((await fetch(`http://127.0.0.1:${open.port}/healthz`)).status).toBe(200);
    await open.close();
  });
});
