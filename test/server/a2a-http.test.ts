import { afterAll, beforeAll, expect, test } from 'vitest';
import { userMessage } from './a2a-calls.ts';
import { allEvents, get, post, startServer } from './kit.ts';

let server: Awaited<ReturnType<typeof startServer>>;
let url: string;

beforeAll(async () => {
  server = await startServer({ a2a: true });
  url = `${server.url}/a2a/chat`;
});
afterAll(() => server.close());

const send = async (text: string, more: object = {}): Promise<Response> =>
  post(`${url}/message:send`, { message: userMessage(text, more) });

test('S519 the card names both bindings, JSON-RPC first', async () => {
  const { supportedInterfaces } = await get(`${url}/.well-known/agent-card.json`);
  expect(supportedInterfaces).toMatchObject([
    { url, protocolBinding: 'JSONRPC', protocolVersion: '1.0' },
    { url, protocolBinding: 'HTTP+JSON', protocolVersion: '1.0' },
    { url, protocolBinding: 'JSONRPC', protocolVersion: '0.3' },
  ]);
});

test('S519 a task is sent, answered, read, listed and cancelled by HTTP', async () => {
  const { task } = await (await send('transfer 5')).json();
  expect(task.status.state).toBe('TASK_STATE_INPUT_REQUIRED');
  const answered = await (await send('yes', { taskId: task.id })).json();
  expect(answered.task).toMatchObject({ id: task.id, status: { state: 'TASK_STATE_COMPLETED' } });
  expect(await get(`${url}/tasks/${task.id}?historyLength=1`)).toMatchObject({
    id: task.id,
    history: [{}],
  });
  const query = `contextId=${task.contextId}&pageSize=5&includeArtifacts=true`;
  expect((await get(`${url}/tasks?${query}`)).tasks).toMatchObject([{ id: task.id }]);
  const paused = (await (await send('transfer 6')).json()).task;
  const cancelled = await post(`${url}/tasks/${paused.id}:cancel`, {});
  expect(await cancelled.json()).toMatchObject({ status: { state: 'TASK_STATE_CANCELED' } });
});

test.each(['POST', 'GET'])('S519 streams a message, and a running task by %s', async (method) => {
  const streamed = await post(`${url}/message:stream`, { message: userMessage('count 3') });
  const events = (await allEvents(streamed)).map(({ data }) => data);
  expect(events[0]).toMatchObject({ task: { id: expect.any(String) } });
  expect(events.at(-1)).toMatchObject({ statusUpdate: {} });
  const body = {
    message: userMessage('hang'),
    configuration: { returnImmediately: true },
  };
  const { task } = await (await post(`${url}/message:send`, body)).json();
  const followed = await fetch(`${url}/tasks/${task.id}:subscribe`, { method });
  expect(followed.headers.get('content-type')).toMatch(/^text\/event-stream/);
  await post(`${url}/tasks/${task.id}:cancel`, {});
  const last = (await allEvents(followed)).at(-1)?.data;
  expect(last.statusUpdate.status.state).toBe('TASK_STATE_CANCELED');
});

test('S519 errors have an HTTP status and the reason of the protocol', async () => {
  const unknown = await fetch(`${url}/tasks/0193b7a0-0000-7000-8000-000000000000`);
  expect(unknown.status).toBe(404);
  expect((await unknown.json()).error).toMatchObject({
    code: 404,
    status: 'NOT_FOUND',
    details: [{ reason: 'TASK_NOT_FOUND', domain: 'a2a-protocol.org' }],
  });
  const { task } = await (await send('hello')).json();
  const late = await post(`${url}/tasks/${task.id}:cancel`, {});
  expect([late.status, (await late.json()).error.details[0].reason]).toEqual([
    400,
    'TASK_NOT_CANCELABLE',
  ]);
  const wrong = await post(`${url}/message:send`, { message: 1 });
  expect([wrong.status, (await wrong.json()).error.status]).toEqual([400, 'INVALID_ARGUMENT']);
  const form = await fetch(`${url}/message:send`, { method: 'POST', body: '{}' });
  expect(form.status).toBe(415);
  const old = await fetch(`${url}/tasks`, { headers: { 'a2a-version': '0.3' } });
  expect((await old.json()).error.details[0].reason).toBe('VERSION_NOT_SUPPORTED');
  const pages = await fetch(`${url}/tasks?pageSize=many`);
  expect(pages.status).toBe(400);
  const nobody = await post(`${server.url}/a2a/none/message:send`, { message: 1 });
  expect([nobody.status, (await nobody.json()).error.code]).toEqual([404, 404]);
});
