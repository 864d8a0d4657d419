// biome-ignore-all lint/suspicious/noExplicitAny: tests look into whatever came
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { memoryStore, waymark } from '../../src/index.ts';
import { handler } from '../../src/server/index.ts';
import { scriptedModel } from '../../src/testing/scripted-model.ts';
import { receiverSecrets } from '../../src/webhook/sign.ts';
import {
  answerOf,
  artifactsAfter,
  call,
  rpc,
  send,
  stream,
  type Target,
  userMessage,
} from './a2a-calls.ts';
import { createTestApp, post, startServer, testWebhooks } from './kit.ts';
import { type Received, receiveWebhooks } from './webhook-receiver.ts';

let server: Awaited<ReturnType<typeof startServer>>;
let target: Target;

beforeAll(async () => {
  server = await startServer({ a2a: true });
  target = { url: server.url };
});
afterAll(() => server.close());

const closing: (() => Promise<void> | void)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close();
});

async function all<T>(items: AsyncIterable<T>): Promise<T[]> {
  const list: T[] = [];
  for await (const item of items) list.push(item);
  return list;
}

describe('cards', () => {
  test('S373 are public, and readable for both generations', async () => {
    const response = await fetch(`${server.url}/.well-known/agent-card.json`);
    const url = `${server.url}/a2a/chat`;
    expect(await response.json()).toMatchObject({
      name: 'chat',
      description: 'Does what it is told',
      supportedInterfaces: [
        { url, protocolBinding: 'JSONRPC', protocolVersion: '1.0' },
        { url, protocolBinding: 'HTTP+JSON', protocolVersion: '1.0' },
        { url, protocolBinding: 'JSONRPC', protocolVersion: '0.3' },
      ],
      capabilities: { streaming: true, pushNotifications: false },
      url,
      protocolVersion: '0.3.0',
      skills: [{ id: 'chat' }],
    });
    const other = await fetch(`${server.url}/a2a/other/.well-known/agent-card.json`);
    expect(await other.json()).toMatchObject({ name: 'other', url: `${server.url}/a2a/other` });
    expect((await fetch(`${server.url}/a2a/none/.well-known/agent-card.json`)).status).toBe(404);
  });

  test('name the public address, and what the operator adds', async () => {
    const app = createTestApp();
    const { card } = {
      card: { provider: { organization: 'ACME', url: 'https://acme.example' } },
    };
    const fetchApp = handler(app, {
      a2a: { agents: ['other'], url: 'https://agents.example/', card },
      auth: () => undefined,
    });
    const response = await fetchApp(new Request('https://inside/.well-known/agent-card.json'));
    expect(await response.json()).toMatchObject({
      name: 'other',
      url: 'https://agents.example/a2a/other',
      provider: { organization: 'ACME' },
    });
    const refused = await fetchApp(
      new Request('https://inside/a2a/other', {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: '{}',
      }),
    );
    expect(refused.status).toBe(401);
    expect(await refused.json()).toMatchObject({ jsonrpc: '2.0', error: { code: -32000 } });
  });

  test('are refused for agents that cannot have tasks', () => {
    const app = waymark({ model: scriptedModel([]) });
    app.defineAgent({ name: 'stateless' });
    expect(() => handler(app, { a2a: { agents: ['stateless'] } })).toThrow('run in the background');
    expect(() => handler(app, { a2a: { agents: ['none'] } })).toThrow('no such agent');
    expect(() => handler(app, { a2a: { url: 'nonsense' } })).toThrow('a2a.url');
  });
});

describe('tasks', () => {
  test('S373 a message is a task of the turn, in the context of the session', async () => {
    const task = await send(target, 'hello');
    expect(task).toMatchObject({
      status: { state: 'TASK_STATE_COMPLETED' },
      artifacts: [{ artifactId: 'response', parts: [{ text: 'You said 1 things.' }] }],
      history: [
        { role: 'ROLE_USER', parts: [{ text: 'hello' }] },
        { role: 'ROLE_AGENT', parts: [{ text: 'You said 1 things.' }] },
      ],
    });
    const session = await server.app.agent('chat').getSession(task.contextId);
    expect(session?.headId).toBe(task.id);
    const next = await send(target, 'again', { contextId: task.contextId });
    expect(answerOf(next)).toBe('You said 2 things.');
    expect(next.id).not.toBe(task.id);
    expect(next.history).toHaveLength(2);
    expect(await call(target, 'GetTask', { id: task.id })).toEqual(task);
    const short = await call(target, 'GetTask', { id: task.id, historyLength: 1 });
    expect(short.history).toEqual(task.history.slice(1));
    expect((await call(target, 'GetTask', { id: task.id, historyLength: 0 })).history).toEqual([]);
  });

  test('S374 a message that is sent again under its id is not run twice', async () => {
    const message = userMessage('hello');
    const [one, two] = await Promise.all([
      call(target, 'SendMessage', { message }),
      call(target, 'SendMessage', { message }),
    ]);
    expect(two).toEqual(one);
    const other = { ...message, parts: [{ text: 'another' }] };
    await expect(call(target, 'SendMessage', { message: other })).rejects.toThrow('-32602');
  });

  test('S373 all kinds of parts reach the agent', async () => {
    const raw = btoa('hi');
    const task = await send(target, [
      { text: 'look' },
      { raw, mediaType: 'image/png' },
      { url: 'https://files.example/a.pdf', mediaType: 'application/pdf' },
      { data: { n: 1 } },
    ]);
    const snapshot = await server.app.agent('chat').getSnapshot({ snapshotId: task.id });
    expect(snapshot?.state?.messages?.[0]?.content).toEqual([
      { text: 'look' },
      { media: { url: `data:image/png;base64,${raw}`, contentType: 'image/png' } },
      { media: { url: 'https://files.example/a.pdf', contentType: 'application/pdf' } },
      { data: { n: 1 } },
    ]);
    expect(task.history[0].parts).toEqual([
      { text: 'look', mediaType: 'text/plain' },
      { raw, mediaType: 'image/png' },
      { url: 'https://files.example/a.pdf', mediaType: 'application/pdf' },
      { data: { n: 1 }, mediaType: 'application/json' },
    ]);
  });

  test.each([
    [[{ url: 'file:///etc/passwd' }]],
    [[{ raw: 'not base64!' }]],
    [[{}]],
    [[]],
    [[{ raw: '', mediaType: 'text/html;x="' }]],
    ['text'],
  ])('refuses the parts %j', async (parts) => {
    const message = { ...userMessage(''), parts };
    await expect(call(target, 'SendMessage', { message })).rejects.toThrow('-32602');
  });

  test('S375 an interrupt is input that is required, and answered under the same task id', async () => {
    const task = await send(target, 'transfer 5');
    expect(task.status.state).toBe('TASK_STATE_INPUT_REQUIRED');
    const [text, data] = task.status.message.parts;
    expect(text.text).toContain('transfer {"sum":5}');
    expect(data.data.questions).toMatchObject([
      { key: expect.stringContaining(task.id), schema: { required: ['approved'] } },
    ]);
    const again = await send(target, 'yes', { taskId: task.id });
    expect(again).toMatchObject({ id: task.id, status: { state: 'TASK_STATE_COMPLETED' } });
    expect(again.history).toHaveLength(2);
    expect(answerOf(again)).toBe('{"moved":5,"resumed":true}');
    await expect(send(target, 'yes', { taskId: task.id })).rejects.toThrow(
      '-32004 The task has ended',
    );
  });

  test('S375 an answer is given once, also when it is sent again', async () => {
    const task = await send(target, 'transfer 5');
    const message = userMessage([{ data: { approved: true } }], { taskId: task.id });
    const one = await call(target, 'SendMessage', { message });
    expect(await call(target, 'SendMessage', { message })).toEqual(one);
    expect(one.task.status.state).toBe('TASK_STATE_COMPLETED');
  });

  test.each([
    [[{ text: 'no, too much' }], 'too much'],
    [[{ data: { approved: false, reason: 'never' } }], 'never'],
    [[{ data: null }], 'declined'],
  ])('S375 %j declines', async (parts, reason) => {
    const task = await send(target, 'transfer 5');
    await send(target, parts, { taskId: task.id });
    const session = await server.app.agent('chat').getSession(task.contextId);
    const tool = session?.state?.messages?.find(({ role }) => role === 'tool');
    expect(JSON.stringify(tool)).toContain(reason);
    expect(JSON.stringify(tool)).not.toContain('moved');
  });

  test.each([[[{ text: 'perhaps' }]], [[{ data: {} }]], [[{ data: 'yes' }]], [[{ text: ' ' }]]])(
    'S375 %j leaves the question open',
    async (parts) => {
      const task = await send(target, 'transfer 5');
      await expect(send(target, parts, { taskId: task.id })).rejects.toThrow('-32602');
      const now = await call(target, 'GetTask', { id: task.id });
      expect(now.status.state).toBe('TASK_STATE_INPUT_REQUIRED');
    },
  );

  test('S375 a question takes text, or an object that fits its schema', async () => {
    for (const parts of ['blue', [{ data: { answer: 'blue' } }]]) {
      const task = await send(target, 'ask');
      expect(task.status.message.parts[1].data.questions[0].schema).toMatchObject({
        properties: { answer: { type: 'string' } },
      });
      await send(target, parts, { taskId: task.id });
      const session = await server.app.agent('chat').getSession(task.contextId);
      expect(JSON.stringify(session?.state?.messages)).toContain('"output":"blue"');
    }
  });

  test('S375 another message in the context leaves the question, and is a task of its own', async () => {
    const task = await send(target, 'transfer 5');
    const other = await send(target, 'never mind', { contextId: task.contextId });
    expect(other.status.state).toBe('TASK_STATE_COMPLETED');
    expect(other.id).not.toBe(task.id);
    const left = await call(target, 'GetTask', { id: task.id });
    expect(left.status.state).toBe('TASK_STATE_CANCELED');
    await expect(send(target, 'yes', { taskId: task.id })).rejects.toThrow('-32004');
    const { tasks } = await call(target, 'ListTasks', { contextId: task.contextId });
    expect(tasks.map(({ id }: { id: string }) => id).sort()).toEqual([task.id, other.id].sort());
  });

  test('S376 a working task and a waiting one can be cancelled, an ended one cannot', async () => {
    const working = await send(target, 'hang', {}, { returnImmediately: true });
    expect(working.status.state).toBe('TASK_STATE_WORKING');
    const waiting = await send(target, 'transfer 5');
    for (const { id } of [working, waiting]) {
      expect((await call(target, 'CancelTask', { id })).status.state).toBe('TASK_STATE_CANCELED');
      expect((await call(target, 'GetTask', { id })).status.state).toBe('TASK_STATE_CANCELED');
      await expect(call(target, 'CancelTask', { id })).rejects.toThrow('-32002');
      await expect(send(target, 'yes', { taskId: id })).rejects.toThrow('-32004');
    }
    const next = await send(target, 'hello', { contextId: waiting.contextId });
    expect(next.status.state).toBe('TASK_STATE_COMPLETED');
  });

  test('a failed turn says so without what the model said', async () => {
    const task = await send(target, 'fail');
    expect(task.status.state).toBe('TASK_STATE_FAILED');
    expect(JSON.stringify(task)).not.toContain('secret of the model');
  });

  test('structured output is data', async () => {
    const app = waymark({
      model: scriptedModel([{ text: '{"city":"Oslo"}' }]),
      store: memoryStore(),
    });
    const schema = { type: 'object', properties: { city: { type: 'string' } } };
    app.defineAgent({ name: 'chat', output: { schema } });
    const typed = await startServer({ app, a2a: true });
    closing.push(() => typed.close());
    const task = await send({ url: typed.url }, 'where?');
    expect(task.artifacts[0].parts[1].data).toEqual({ city: 'Oslo' });
  });

  test('S373 lists the tasks of a caller, the last changed first', async () => {
    const app = createTestApp();
    const own = await startServer({ app, a2a: true });
    closing.push(() => own.close());
    const there = { url: own.url };
    const first = await send(there, 'hello');
    const waiting = await send(there, 'transfer 5', { contextId: first.contextId });
    const other = await send(there, 'ask');
    const ids = ({ tasks }: { tasks?: { id: string }[] }): string[] =>
      tasks?.map(({ id }) => id) ?? [];
    const everything = await call(there, 'ListTasks');
    expect(ids(everything)).toEqual([other.id, waiting.id, first.id]);
    expect(everything).toMatchObject({ totalSize: 3, pageSize: 50, nextPageToken: '' });
    expect(everything.tasks[0]).not.toHaveProperty('artifacts');
    expect(ids(await call(there, 'ListTasks', { contextId: first.contextId }))).toHaveLength(2);
    const status = 'TASK_STATE_COMPLETED';
    expect(ids(await call(there, 'ListTasks', { status }))).toEqual([first.id]);
    const page = await call(there, 'ListTasks', { pageSize: 2 });
    expect(ids(page)).toEqual([other.id, waiting.id]);
    const rest = await call(there, 'ListTasks', { pageSize: 2, pageToken: page.nextPageToken });
    expect(ids(rest)).toEqual([first.id]);
    await send(there, 'yes', { taskId: waiting.id });
    expect(ids(await call(there, 'ListTasks'))).toEqual([waiting.id, other.id, first.id]);
    for (const bad of [{ pageSize: 0 }, { pageSize: 101 }, { pageToken: 'x' }, { status: 'x' }]) {
      await expect(call(there, 'ListTasks', bad)).rejects.toThrow('-32602');
    }
  });
});

describe('streams', () => {
  test('S377 begin with the task, append the text, and end with the status', async () => {
    const events = await all(
      stream(target, 'SendStreamingMessage', { message: userMessage('count 20 1') }),
    );
    expect(events[0]?.task.status.state).toBe('TASK_STATE_WORKING');
    expect(events.at(-1)?.statusUpdate.status.state).toBe('TASK_STATE_COMPLETED');
    const id = events[0]?.task.id;
    const { response } = artifactsAfter(events);
    expect(response).toBe(answerOf(await call(target, 'GetTask', { id })));
    expect(events.filter(({ artifactUpdate }) => artifactUpdate).length).toBeGreaterThan(1);
  });

  test('S377 the text after a tool call replaces the text before it, and artifacts come whole', async () => {
    const events = await all(
      stream(target, 'SendStreamingMessage', { message: userMessage('remember cats') }),
    );
    expect(artifactsAfter(events)).toEqual({
      'artifact:topics.md': '# cats',
      response: 'noted',
    });
    const weather = await all(
      stream(target, 'SendStreamingMessage', { message: userMessage('weather in Rome') }),
    );
    expect(artifactsAfter(weather)).toEqual({ response: 'Sunny in Rome' });
  });

  test('S377 a subscriber gets the whole answer, and hears of a cancel', async () => {
    const task = await send(target, 'hang', {}, { returnImmediately: true });
    const events: any[] = [];
    for await (const event of stream(target, 'SubscribeToTask', { id: task.id })) {
      events.push(event);
      if (event.artifactUpdate && artifactsAfter(events).response === 'It hangs') {
        await call(target, 'CancelTask', { id: task.id });
      }
    }
    expect(events[0].task.id).toBe(task.id);
    expect(events.at(-1).statusUpdate.status.state).toBe('TASK_STATE_CANCELED');
    await expect(all(stream(target, 'SubscribeToTask', { id: task.id }))).rejects.toThrow('-32004');
  });

  test('S377 a subscriber of a waiting task gets its question', async () => {
    const task = await send(target, 'ask');
    const events = await all(stream(target, 'SubscribeToTask', { id: task.id }));
    expect(events.at(-1)?.statusUpdate.status).toEqual(task.status);
    const answered = await all(
      stream(target, 'SendStreamingMessage', { message: userMessage('red', { taskId: task.id }) }),
    );
    expect(answered[0]?.task.id).toBe(task.id);
    expect(answered.at(-1)?.statusUpdate.status.state).toBe('TASK_STATE_COMPLETED');
  });
});

describe('0.3', () => {
  const message = (text: string, more: object = {}): object => ({
    kind: 'message',
    messageId: crypto.randomUUID(),
    role: 'user',
    parts: [{ kind: 'text', text }],
    ...more,
  });

  test('S378 has the same tasks in its own shape', async () => {
    const task = await call(target, 'message/send', { message: message('transfer 3') });
    expect(task).toMatchObject({
      kind: 'task',
      status: {
        state: 'input-required',
        message: { kind: 'message', role: 'agent', parts: [{ kind: 'text' }, { kind: 'data' }] },
      },
    });
    const answered = await call(target, 'message/send', {
      message: message('yes', { taskId: task.id }),
    });
    expect(answered).toMatchObject({
      kind: 'task',
      id: task.id,
      status: { state: 'completed' },
      artifacts: [{ parts: [{ kind: 'text', text: '{"moved":3,"resumed":true}' }] }],
      history: [{ role: 'user' }, { role: 'agent' }],
    });
    expect(await call(target, 'tasks/get', { id: task.id })).toEqual(answered);
  });

  test('S378 streams in its own shape', async () => {
    const events = await all(stream(target, 'message/stream', { message: message('count 5 1') }));
    expect(events[0]).toMatchObject({ kind: 'task', status: { state: 'working' } });
    expect(events[1]).toMatchObject({ kind: 'artifact-update', append: false });
    expect(events.at(-1)).toMatchObject({
      kind: 'status-update',
      final: true,
      status: { state: 'completed' },
    });
    const again = await all(stream(target, 'tasks/resubscribe', { id: events[0]?.id }));
    expect(again.at(-1)).toMatchObject({ final: true, status: { state: 'completed' } });
  });
});

describe('refusals', () => {
  test.each([
    ['1.0', undefined],
    ['1.0.3', undefined],
    ['0.3', undefined],
    ['2.0', -32009],
    ['0.2', -32009],
    ['x', -32009],
  ])('S378 version %s gives %s', async (version, code) => {
    const { body } = await rpc({ ...target, version }, 'ListTasks', { pageSize: 1 });
    expect(body.error?.code).toBe(code);
  });

  test.each([
    ['nonsense', {}, -32601],
    ['__proto__', {}, -32601],
    ['constructor', {}, -32601],
    ['SendMessage', {}, -32602],
    [
      'SendMessage',
      { message: { messageId: 'x', role: 'ROLE_AGENT', parts: [{ text: 'a' }] } },
      -32602,
    ],
    ['GetTask', { id: 'x' }, -32001],
    ['GetTask', { id: '01890000-0000-7000-8000-000000000000' }, -32001],
    ['CancelTask', { id: '01890000-0000-7000-8000-000000000000' }, -32001],
    ['SubscribeToTask', { id: '../..' }, -32001],
    ['ListTaskPushNotificationConfigs', { taskId: 'x' }, -32003],
  ])('%s %j is %s', async (method, params, code) => {
    const { body } = await rpc(target, method, params);
    expect(body.error?.code).toBe(code);
  });

  test('an unknown agent, another type and no JSON-RPC', async () => {
    expect((await rpc({ ...target, agent: 'none' }, 'ListTasks')).body.error.code).toBe(-32602);
    const post = (body: string, type = 'application/json'): Promise<Response> =>
      fetch(`${server.url}/a2a/chat`, { method: 'POST', headers: { 'content-type': type }, body });
    expect((await post('{}', 'text/plain')).status).toBe(415);
    expect((await post('{')).status).toBe(400);
    expect((await post('[]')).status).toBe(400);
    expect((await post('{"jsonrpc":"1.0","method":"GetTask","id":1}')).status).toBe(400);
  });

  test('S373 tasks of another user are unknown, by every method', async () => {
    const own = await startServer({
      a2a: true,
      auth: (request) => ({ principal: request.headers.get('authorization')?.slice(7) ?? 'none' }),
    });
    closing.push(() => own.close());
    const ada = { url: own.url, token: 'ada' };
    const eve = { url: own.url, token: 'eve' };
    const task = await send(ada, 'transfer 5');
    for (const method of [
      'GetTask',
      'CancelTask',
      'SubscribeToTask',
      'tasks/get',
      'tasks/cancel',
      'tasks/resubscribe',
    ]) {
      expect((await rpc(eve, method, { id: task.id })).body.error.code).toBe(-32001);
    }
    const answer = { message: userMessage('yes', { taskId: task.id }) };
    expect((await rpc(eve, 'SendMessage', answer)).body.error.code).toBe(-32001);
    const listed = await call(eve, 'ListTasks', { contextId: task.contextId });
    expect(listed.tasks).toEqual([]);
    const same = await send(eve, 'hello', { contextId: task.contextId });
    expect(answerOf(same)).toBe('You said 1 things.');
    expect((await call(ada, 'GetTask', { id: task.id })).status.state).toBe(
      'TASK_STATE_INPUT_REQUIRED',
    );
  });
});

describe('push notifications', () => {
  const { secret } = testWebhooks;

  async function pushServer(): Promise<{
    readonly there: Target;
    readonly hook: string;
    readonly got: readonly Received[];
  }> {
    const own = await startServer({ app: createTestApp({ webhooks: testWebhooks }), a2a: true });
    const receiver = await receiveWebhooks();
    closing.push(receiver.close, () => own.close());
    return { there: { url: own.url }, hook: receiver.url, got: receiver.got };
  }

  test('S379 come once for each state in which a task stops, signed', async () => {
    const { there, hook, got } = await pushServer();
    const config = {
      url: hook,
      token: 'abc',
      authentication: { scheme: 'Bearer', credentials: 'xyz' },
    };
    const task = await send(there, 'transfer 5', {}, { taskPushNotificationConfig: config });
    await expect.poll(() => got.length).toBe(1);
    expect(got[0]?.body.task).toEqual(task);
    expect(got[0]?.headers).toMatchObject({
      'x-a2a-notification-token': 'abc',
      authorization: 'Bearer xyz',
    });
    const done = await send(there, 'yes', { taskId: task.id });
    await expect.poll(() => got.length).toBe(2);
    expect(got[1]?.body.task).toEqual(done);
    expect(new Set(got.map(({ id }) => id)).size).toBe(2);
  });

  test('S379 configurations are read, replaced and deleted', async () => {
    const { there, hook, got } = await pushServer();
    const task = await send(there, 'hang', {}, { returnImmediately: true });
    const taskId = task.id;
    const create = (config: object): Promise<any> =>
      call(there, 'CreateTaskPushNotificationConfig', { taskId, ...config });
    const one = await create({ id: 'one', url: hook, token: 'x' });
    expect(one).toEqual({ taskId, id: 'one', url: hook, token: 'x' });
    await create({ id: 'one', url: `${hook}/changed` });
    const two = await create({ url: `${hook}/two` });
    const list = async (): Promise<any[]> =>
      (await call(there, 'ListTaskPushNotificationConfigs', { taskId })).configs;
    expect((await list()).map(({ id }) => id).sort()).toEqual(['one', two.id].sort());
    expect(await call(there, 'GetTaskPushNotificationConfig', { taskId, id: 'one' })).toMatchObject(
      {
        url: `${hook}/changed`,
      },
    );
    await call(there, 'DeleteTaskPushNotificationConfig', { taskId, id: two.id });
    expect(await list()).toHaveLength(1);
    await expect(
      call(there, 'GetTaskPushNotificationConfig', { taskId, id: two.id }),
    ).rejects.toThrow('-32001');
    await call(there, 'CancelTask', { id: taskId });
    await expect.poll(() => got.length).toBe(1);
    expect(got[0]?.body.task.status.state).toBe('TASK_STATE_CANCELED');
  });

  test('S725 the response to a configuration has the secret of its receiver in a header', async () => {
    const { there, hook } = await pushServer();
    const { id: taskId } = await send(there, 'hang', {}, { returnImmediately: true });
    const ask = async (method: string, params: object): Promise<string | null> => {
      const body = { jsonrpc: '2.0', id: 1, method, params };
      const response = await post(`${there.url}/a2a/chat`, body);
      expect(await response.json()).toHaveProperty('result');
      return response.headers.get('webhook-secret');
    };
    const [known] = receiverSecrets(secret, { url: hook });
    const config = { taskId, id: 'one', url: hook };
    expect(await ask('CreateTaskPushNotificationConfig', config)).toBe(known);
    expect(await ask('GetTaskPushNotificationConfig', { taskId, id: 'one' })).toBe(known);
    expect(await ask('ListTaskPushNotificationConfigs', { taskId })).toBe(null);
    await call(there, 'CancelTask', { id: taskId });
  });

  test('S727 a caller has as many open configurations as background runs', async () => {
    const receiver = await receiveWebhooks();
    const own = await startServer({
      app: createTestApp({ webhooks: testWebhooks }),
      a2a: true,
      auth: (request) => ({ principal: request.headers.get('authorization')?.slice(7) ?? 'none' }),
      limits: { backgroundRunsPerPrincipal: 2 },
    });
    closing.push(receiver.close, () => own.close());
    const as = (user: string): Target => ({ url: own.url, token: user });
    const task = await send(as('ada'), 'hang', {}, { returnImmediately: true });
    const create = (id: string): Promise<unknown> =>
      call(as('ada'), 'CreateTaskPushNotificationConfig', {
        taskId: task.id,
        id,
        url: receiver.url,
      });
    await create('one');
    await create('two');
    await expect(create('three')).rejects.toThrow('which is the limit');
    // Others are not affected.
    const other = await send(as('bob'), 'hang', {}, { returnImmediately: true });
    const config = { taskId: other.id, url: receiver.url };
    await call(as('bob'), 'CreateTaskPushNotificationConfig', config);
    await call(as('ada'), 'DeleteTaskPushNotificationConfig', { taskId: task.id, id: 'one' });
    await create('three');
    for (const [user, { id }] of [
      ['ada', task],
      ['bob', other],
    ] as const) {
      await call(as(user), 'CancelTask', { id });
    }
  });

  test('S379 have the shape of the generation that configured them', async () => {
    const { there, hook, got } = await pushServer();
    const task = await call(there, 'message/send', {
      message: {
        kind: 'message',
        messageId: 'm1',
        role: 'user',
        parts: [{ kind: 'text', text: 'hi' }],
      },
      configuration: { pushNotificationConfig: { url: hook, token: 't' } },
    });
    await expect.poll(() => got.length).toBe(1);
    expect(got[0]?.body).toEqual(task);
    const params = { id: task.id };
    const [config] = (await call(there, 'tasks/pushNotificationConfig/list', params)) as any;
    expect(config).toMatchObject({
      taskId: task.id,
      pushNotificationConfig: { url: hook, token: 't' },
    });
    const deleted = { id: task.id, pushNotificationConfigId: config.pushNotificationConfig.id };
    expect(await call(there, 'tasks/pushNotificationConfig/delete', deleted)).toBe(null);
  });

  test.each([
    { url: 'http://example.com/' },
    { url: 'ftp://example.com/' },
    { url: 'nonsense' },
    { url: 'https://a:b@example.com/' },
    { url: 'https://10.0.0.1/' },
    { url: 'https://localhost/' },
    { url: 'https://example.com/', token: 'a\r\nx: y' },
    { url: 'https://example.com/', authentication: { scheme: 'Bearer', credentials: 'ü' } },
  ])('S379 refuse %j', async (config) => {
    const app = createTestApp({ webhooks: { secret } });
    const own = await startServer({ app, a2a: true });
    closing.push(() => own.close());
    const there = { url: own.url };
    const task = await send(there, 'hello');
    const params = { taskId: task.id, ...config };
    await expect(call(there, 'CreateTaskPushNotificationConfig', params)).rejects.toThrow('-32602');
  });
});
