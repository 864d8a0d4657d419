import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { call, rpc, send, stream, type Target, userMessage } from './a2a-calls.ts';
import { startServer } from './kit.ts';

// The requirements of the A2A test kit for version 1.0 that a server of agents can be asked, under the kit's names.

// biome-ignore lint/suspicious/noExplicitAny: tests look into whatever came
type Any = any;

const codes = {
  taskNotFound: -32001,
  taskNotCancelable: -32002,
  pushNotSupported: -32003,
  unsupported: -32004,
  versionNotSupported: -32009,
} as const;

let server: Awaited<ReturnType<typeof startServer>>;
let target: Target;
beforeAll(async () => {
  server = await startServer({ a2a: true });
  target = { url: server.url, version: '1.0' };
});
afterAll(() => server.close());

const unknown = '0193b7a0-0000-7000-8000-000000000000';
const codeOf = async (method: string, params: object, to = target): Promise<number | undefined> =>
  (await rpc(to, method, params)).body.error?.code;
const all = async (method: string, params: object): Promise<Any[]> => {
  const events: Any[] = [];
  for await (const event of stream(target, method, params)) events.push(event);
  return events;
};

describe('sending', () => {
  test('CORE-SEND-001, CORE-MULTI-001a, CORE-MULTI-003: gives a task with ids of its own', async () => {
    const [first, second] = [await send(target, 'say one'), await send(target, 'say two')];
    for (const task of [first, second]) {
      expect(task).toMatchObject({ id: expect.any(String), contextId: expect.any(String) });
      expect(task.status.state).toBe('TASK_STATE_COMPLETED');
    }
    expect(first.id).not.toBe(second.id);
    expect(first.contextId).not.toBe(second.contextId);
  });

  test('CORE-SEND-002: a task that has ended takes no message', async () => {
    const { id: taskId } = await send(target, 'say one');
    const message = userMessage('say two', { taskId });
    expect(await codeOf('SendMessage', { message })).toBe(codes.unsupported);
  });

  test('CORE-MULTI-002, CORE-MULTI-005, CORE-MULTI-006: contexts of the client, of the task, and of another', async () => {
    const contextId = crypto.randomUUID();
    const asked = await send(target, 'transfer 5', { contextId });
    expect(asked).toMatchObject({ contextId, status: { state: 'TASK_STATE_INPUT_REQUIRED' } });
    const other = userMessage('yes', { taskId: asked.id, contextId: crypto.randomUUID() });
    expect(await codeOf('SendMessage', { message: other })).toBeLessThan(0);
    const answered = await send(target, 'yes', { taskId: asked.id });
    expect(answered).toMatchObject({ id: asked.id, contextId });
  });

  test('CORE-MULTI-004, CORE-GET-002, CORE-CANCEL-003, STREAM-SUB-004: unknown tasks', async () => {
    const message = userMessage('x', { taskId: unknown });
    expect(await codeOf('SendMessage', { message })).toBe(codes.taskNotFound);
    for (const method of ['GetTask', 'CancelTask', 'SubscribeToTask']) {
      expect(await codeOf(method, { id: unknown }), method).toBe(codes.taskNotFound);
    }
  });

  test('CORE-EXECUTION-MODE-001, CORE-EXECUTION-MODE-002: waits for the end, or not at all', async () => {
    const done = await send(target, 'count 3 5', {}, { returnImmediately: false });
    expect(done.status.state).toBe('TASK_STATE_COMPLETED');
    const begun = await send(target, 'hang', {}, { returnImmediately: true });
    expect(begun.status.state).toMatch(/^TASK_STATE_(SUBMITTED|WORKING)$/);
    await call(target, 'CancelTask', { id: begun.id });
  });

  test('CORE-ERR-001, CORE-ERR-002: what is not a request is refused with a code and a message', async () => {
    for (const [method, params] of [
      ['NoSuchMethod', {}],
      ['SendMessage', {}],
      ['SendMessage', { message: { role: 'ROLE_USER', parts: [] } }],
      ['GetTask', {}],
    ] as const) {
      const { body } = await rpc(target, method, params);
      expect(body.error).toMatchObject({
        code: expect.any(Number),
        message: expect.stringMatching(/./),
      });
    }
  });
});

describe('tasks', () => {
  test('CORE-GET-001, CORE-HIST-001, CORE-HIST-002, CORE-HIST-003, CORE-HIST-005: have their history', async () => {
    const { id } = await send(target, 'say one');
    const task = await call(target, 'GetTask', { id });
    expect(task).toMatchObject({ id, status: { state: 'TASK_STATE_COMPLETED' } });
    const history: Any[] = task.history ?? [];
    expect(history[0]).toMatchObject({ role: 'ROLE_USER', parts: [{ text: 'say one' }] });
    const some = await call(target, 'GetTask', { id, historyLength: 1 });
    expect((some.history ?? []).length).toBeLessThanOrEqual(1);
    expect((await call(target, 'GetTask', { id, historyLength: 0 })).history ?? []).toEqual([]);
    const sent = await send(target, 'say two', {}, { historyLength: 0 });
    expect(sent.history ?? []).toEqual([]);
  });

  test('CORE-LIST-002, CORE-LIST-003, CORE-LIST-004, CORE-LIST-005: are listed in pages, the last changed first', async () => {
    const contextId = crypto.randomUUID();
    const sent: string[] = [];
    for (const text of ['one', 'two', 'three']) {
      sent.push((await send(target, `say ${text}`, { contextId })).id);
    }
    const first = await call(target, 'ListTasks', { contextId, pageSize: 2 });
    const pageToken = first.nextPageToken;
    expect(pageToken).toMatch(/./);
    const second = await call(target, 'ListTasks', { contextId, pageSize: 2, pageToken });
    expect(second.nextPageToken).toBe('');
    const tasks: Any[] = [...first.tasks, ...second.tasks];
    expect(tasks.map(({ id }) => id)).toEqual(sent.toReversed());
    expect(tasks.every((task) => !('artifacts' in task))).toBe(true);
  });

  test('CORE-CANCEL-001, CORE-CANCEL-002: are cancelled once', async () => {
    const { id } = await send(target, 'hang', {}, { returnImmediately: true });
    const cancelled = await call(target, 'CancelTask', { id });
    expect(cancelled.status.state).toBe('TASK_STATE_CANCELED');
    expect(await codeOf('CancelTask', { id })).toBe(codes.taskNotCancelable);
  });
});

describe('streams', () => {
  test('CORE-STREAM-001, CORE-STREAM-003: begin with the task, and end with it', async () => {
    const events = await all('SendStreamingMessage', { message: userMessage('say one two') });
    expect(events[0]).toMatchObject({ task: { id: expect.any(String) } });
    expect(events.at(-1)).toMatchObject({
      statusUpdate: { status: { state: 'TASK_STATE_COMPLETED' } },
    });
  });

  test('STREAM-SUB-001, STREAM-SUB-002, STREAM-SUB-003, STREAM-ORDER-001 to 004: are the same for all subscribers', async () => {
    const { id } = await send(target, 'count 40 20', {}, { returnImmediately: true });
    const left = stream(target, 'SubscribeToTask', { id });
    await left.next();
    await left.return(undefined);
    const [one, two] = await Promise.all([
      all('SubscribeToTask', { id }),
      all('SubscribeToTask', { id }),
    ]);
    const textOf = (events: Any[]): string =>
      events
        .flatMap(({ artifactUpdate, task }) => artifactUpdate?.artifact ?? task?.artifacts ?? [])
        .flatMap(({ parts }: Any) => parts)
        .map(({ text }: Any) => text ?? '')
        .join('');
    for (const events of [one, two]) {
      expect(events[0]).toMatchObject({ task: { id } });
      expect(events.at(-1)).toMatchObject({
        statusUpdate: { status: { state: 'TASK_STATE_COMPLETED' } },
      });
      const numbers = textOf(events).trim().split(' ').map(Number);
      expect(numbers).toEqual(numbers.toSorted((a, b) => a - b));
    }
    expect(await codeOf('SubscribeToTask', { id })).toBe(codes.unsupported);
  });
});

describe('capabilities and versions', () => {
  test('CARD-DISC-001, CARD-PROTO-001, CARD-PROTO-002, CARD-STRUCT-001: the card has what it must', async () => {
    const response = await fetch(`${server.url}/a2a/chat/.well-known/agent-card.json`);
    const card = (await response.json()) as Any;
    expect(card).toMatchObject({
      name: expect.any(String),
      description: expect.any(String),
      version: expect.any(String),
      capabilities: expect.any(Object),
      skills: expect.any(Array),
      defaultInputModes: expect.any(Array),
      defaultOutputModes: expect.any(Array),
    });
    for (const each of card.supportedInterfaces) {
      expect(each).toMatchObject({
        url: expect.stringMatching(/^http/),
        protocolBinding: expect.any(String),
        protocolVersion: expect.any(String),
      });
    }
  });

  test('CORE-CAP-001, CORE-CAP-003: what the card does not have is refused', async () => {
    const { id: taskId } = await send(target, 'say one');
    const config = { taskId, url: 'https://example.com/' };
    expect(await codeOf('CreateTaskPushNotificationConfig', config)).toBe(codes.pushNotSupported);
    expect(await codeOf('GetExtendedAgentCard', {})).toBe(codes.unsupported);
  });

  test('VER-SERVER-001, VER-SERVER-002, VER-SERVER-003: the version decides the form', async () => {
    const { id } = await send(target, 'say one');
    expect(await codeOf('GetTask', { id }, { ...target, version: '99.0' })).toBe(
      codes.versionNotSupported,
    );
    const { version: _, ...unversioned } = target;
    const former = await call(unversioned, 'tasks/get', { id });
    expect(former).toMatchObject({ kind: 'task', status: { state: 'completed' } });
  });

  test('HTTP_JSON-STATUS-001, HTTP_JSON-ERR-001, HTTP_JSON-ERR-002: errors over HTTP', async () => {
    const response = await fetch(`${server.url}/a2a/chat/tasks/${unknown}`, {
      headers: { 'a2a-version': '1.0' },
    });
    expect(response.status).toBe(404);
    const { error } = (await response.json()) as Any;
    expect(error).toMatchObject({
      code: 404,
      status: expect.any(String),
      message: expect.any(String),
      details: [{ reason: 'TASK_NOT_FOUND', domain: 'a2a-protocol.org' }],
    });
  });
});
