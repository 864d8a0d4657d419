// biome-ignore-all lint/suspicious/noExplicitAny: the two clients have different types for the same things
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Role, TaskState } from '@a2a-js/sdk';
import { ClientFactoryOptions, ClientFactory as Factory1 } from '@a2a-js/sdk/client';
import { ClientFactory as Factory0 } from 'a2a-sdk-0/client';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { startServer } from '../server/kit.ts';
import { receiveWebhooks } from '../server/webhook-receiver.ts';
import { bundleChild } from '../support/bundle-child.ts';
import { endProcesses, startProcess, type TestProcess } from '../support/child-process.ts';
import { sharedClock } from '../support/shared-clock.ts';

/** A task as both clients show it. */
interface Seen {
  readonly id: string;
  readonly contextId: string;
  readonly state: string;
  readonly answer: string;
}

/** What the tests do with a client, of either generation. */
interface AnyClient {
  send(text: string, more?: { taskId?: string; hook?: string; wait?: boolean }): Promise<Seen>;
  stream(text: string): AsyncIterable<any>;
  resubscribe(id: string): AsyncIterable<any>;
  get(id: string): Promise<Seen>;
  cancel(id: string): Promise<Seen>;
}

const words: Record<number, string> = {
  [TaskState.TASK_STATE_WORKING]: 'working',
  [TaskState.TASK_STATE_COMPLETED]: 'completed',
  [TaskState.TASK_STATE_CANCELED]: 'canceled',
  [TaskState.TASK_STATE_INPUT_REQUIRED]: 'input-required',
};
const textOf = (parts: readonly any[] = []): string =>
  parts
    .map((part) => part.text ?? (part.content?.$case === 'text' ? part.content.value : ''))
    .join('');
const seen = (task: any): Seen => ({
  id: task.id,
  contextId: task.contextId,
  state: words[task.status.state] ?? task.status.state,
  answer: textOf(task.artifacts?.find((each: any) => each.artifactId === 'response')?.parts),
});

async function newClient(url: string, binding = 'JSONRPC'): Promise<AnyClient> {
  const options = { ...ClientFactoryOptions.default, preferredTransports: [binding] };
  const client = await new Factory1(options).createFromUrl(`${url}/a2a/chat/`);
  expect((client as any).transport.protocolName).toBe(binding);
  const message = (text: string, taskId = ''): any => ({
    messageId: crypto.randomUUID(),
    contextId: '',
    taskId,
    role: Role.ROLE_USER,
    parts: [
      { content: { $case: 'text', value: text }, metadata: undefined, filename: '', mediaType: '' },
    ],
    metadata: undefined,
    extensions: [],
    referenceTaskIds: [],
  });
  const id = (taskId: string): any => ({ tenant: '', id: taskId });
  return {
    send: async (text, { taskId, hook, wait = true } = {}) =>
      seen(
        await client.sendMessage({
          tenant: '',
          message: message(text, taskId),
          configuration: {
            acceptedOutputModes: [],
            returnImmediately: !wait,
            taskPushNotificationConfig: hook
              ? { tenant: '', id: '', taskId: '', url: hook, token: 't', authentication: undefined }
              : undefined,
          },
          metadata: undefined,
        }),
      ),
    stream: (text) =>
      client.sendMessageStream({
        tenant: '',
        message: message(text),
        configuration: undefined,
        metadata: undefined,
      }),
    resubscribe: (taskId) => client.resubscribeTask(id(taskId)),
    get: async (taskId) => seen(await client.getTask(id(taskId))),
    cancel: async (taskId) => seen(await client.cancelTask({ ...id(taskId), metadata: undefined })),
  };
}

async function oldClient(url: string): Promise<AnyClient> {
  const client = await new Factory0().createFromUrl(`${url}/a2a/chat/`);
  const message = (text: string, taskId?: string): any => ({
    kind: 'message',
    messageId: crypto.randomUUID(),
    role: 'user',
    parts: [{ kind: 'text', text }],
    ...(taskId && { taskId }),
  });
  return {
    send: async (text, { taskId, hook, wait = true } = {}) =>
      seen(
        await client.sendMessage({
          message: message(text, taskId),
          configuration: {
            blocking: wait,
            ...(hook && { pushNotificationConfig: { url: hook, token: 't' } }),
          },
        }),
      ),
    stream: (text) => client.sendMessageStream({ message: message(text) }),
    resubscribe: (id) => client.resubscribeTask({ id }),
    get: async (id) => seen(await client.getTask({ id })),
    cancel: async (id) => seen(await client.cancelTask({ id })),
  };
}

/** The events of both generations in one form. */
function eventOf(event: any): { task?: any; text?: string; append?: boolean; state?: string } {
  const value = event.payload?.value ?? event;
  if (value.artifact) return { text: textOf(value.artifact.parts), append: value.append === true };
  const state = words[value.status.state] ?? value.status.state;
  return value.id === undefined ? { state } : { task: value, state };
}

/** Follows a stream: what a client holds of the answer, and the last state. */
async function follow(
  events: AsyncIterable<any>,
  onText: (held: string, taskId: string) => unknown = () => {},
): Promise<{ readonly taskId: string; readonly held: string; readonly state: string }> {
  let taskId = '';
  let held = '';
  let state = '';
  for await (const each of events) {
    const event = eventOf(each);
    if (event.task) taskId = event.task.id;
    if (event.state) state = event.state;
    if (event.text === undefined) continue;
    held = event.append ? held + event.text : event.text;
    await onText(held, taskId);
  }
  return { taskId, held, state };
}

const generations = [
  ['1.3.0', newClient],
  ['1.3.0 over HTTP+JSON', (url: string) => newClient(url, 'HTTP+JSON')],
  ['0.3.14', oldClient],
] as const;

describe.each(generations)('the SDK %s', (_, open) => {
  let server: Awaited<ReturnType<typeof startServer>>;
  let client: AnyClient;
  beforeAll(async () => {
    server = await startServer({ a2a: true });
    client = await open(server.url);
  });
  afterAll(() => server.close());

  test('sends a message and reads the task', async () => {
    const task = await client.send('hello');
    expect(task).toMatchObject({ state: 'completed', answer: 'You said 1 things.' });
    expect(await client.get(task.id)).toEqual(task);
  });

  test('streams an answer', async () => {
    const { held, state, taskId } = await follow(client.stream('count 20 1'));
    expect(held).toBe(Array.from({ length: 20 }, (__, at) => `${at} `).join(''));
    expect(state).toBe('completed');
    expect((await client.get(taskId)).answer).toBe(held);
  });

  test('subscribes to a running task, and cancels it', async () => {
    const { id } = await client.send('hang', { wait: false });
    const { held, state } = await follow(client.resubscribe(id), async (text) => {
      if (text === 'It hangs') await client.cancel(id);
    });
    expect(held).toBe('It hangs');
    expect(state).toBe('canceled');
    await expect(client.cancel(id)).rejects.toThrow(/ended already|cannot be canceled/);
  });

  test('gives input under the same task id', async () => {
    const task = await client.send('transfer 4');
    expect(task.state).toBe('input-required');
    const done = await client.send('yes', { taskId: task.id });
    expect(done).toMatchObject({
      id: task.id,
      contextId: task.contextId,
      state: 'completed',
      answer: '{"moved":4,"resumed":true}',
    });
    await expect(client.send('yes', { taskId: task.id })).rejects.toThrow(
      /has ended|not supported/,
    );
  });

  test('gets the errors of the protocol', async () => {
    await expect(client.get('0193b7a0-0000-7000-8000-000000000000')).rejects.toThrow(
      /no task|not found/,
    );
  });
});

describe('after kill -9', () => {
  let folder: string;
  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'waymark-a2a-'));
  });
  afterEach(endProcesses);
  afterAll(() => rm(folder, { recursive: true, force: true }));

  const start = async (): Promise<{ readonly url: string; readonly child: TestProcess }> => {
    const script = bundleChild(new URL('../server/child.ts', import.meta.url));
    const child = startProcess([script, 'sqlite', join(folder, 'db'), join(folder, 'clock')]);
    const port = await child.take((line) => /^port (\d+)$/.exec(line)?.[1], 'port');
    return { url: `http://127.0.0.1:${port}`, child };
  };

  test.each(generations)(
    'a paused task and a running one end in another process, and are notified once (%s)',
    async (_, open) => {
      const receiver = await receiveWebhooks();
      const [doomed, survivor] = await Promise.all([start(), start()]);
      const before = await open(doomed.url);
      const file = join(folder, 'held');
      await writeFile(file, '');
      const paused = await before.send('transfer 8', { hook: receiver.url });
      await expect.poll(() => receiver.got.length).toBe(1);
      const running = await before.send(`hold ${file} 30`, { hook: receiver.url, wait: false });
      expect([paused.state, running.state]).toEqual(['input-required', 'working']);
      await follow(before.resubscribe(running.id), async (held) => {
        if (held.includes('9 ')) await doomed.child.end();
      }).catch(() => {});
      await rm(file);
      sharedClock(join(folder, 'clock')).advance(120_000);

      const after = await open(survivor.url);
      const answered = await after.send('yes', { taskId: paused.id });
      expect(answered).toMatchObject({ id: paused.id, state: 'completed' });
      await expect.poll(async () => (await after.get(running.id)).state).toBe('completed');
      const pieces = Array.from({ length: 30 }, (__, piece) => `${piece} `).join('');
      expect((await after.get(running.id)).answer).toBe(pieces);
      // The states in which they stopped: input required, completed, completed.
      await expect.poll(() => receiver.got.length).toBe(3);
      expect(new Set(receiver.got.map(({ id }) => id)).size).toBe(3);
      expect(receiver.got.every(({ headers }) => headers['x-a2a-notification-token'] === 't')).toBe(
        true,
      );
      receiver.close();
    },
  );
});
