import type { Agent } from '../../agent/spec/agent.ts';
import { parseShape } from '../../protocol/parse.ts';
import { headerOf } from '../http/connection.ts';
import { type Fields, RpcError, toRpcError } from '../http/json-rpc.ts';
import {
  findAgent,
  logRequestFault,
  paramOf,
  type RequestContext,
} from '../http/server-context.ts';
import { type StreamFormat, withStreamSlot } from '../stream/stream-response.ts';
import { type A2aRequest, type A2aServer, offeredAgents } from './a2a-server.ts';
import { a2aError, codes, fromErrorBody } from './errors.ts';
import { listTasks } from './list-tasks.ts';
import type { PushFeed } from './push-feed.ts';
import { checkPush, pushNotSupported, sendMessage } from './send.ts';
import { configParams, pushConfig, taskParams } from './shapes.ts';
import { taskEvents } from './stream.ts';
import {
  cancelledLabel,
  describeTask,
  isTerminal,
  type OpenTask,
  openTask,
  readTask,
  stateOf,
  type TaskView,
  waitForTask,
} from './task.ts';

interface Followed {
  readonly task: OpenTask;
  readonly view: TaskView;
}

export function agentOf({ options }: A2aServer, c: RequestContext, method: string): Agent {
  const agent = findAgent(offeredAgents(c, options), paramOf(c, 'agent'));
  Object.assign(c.get('logged'), { agent: agent.name, rpc: method.slice(0, 64) });
  return agent;
}

export function checkVersion(c: RequestContext, supported: RegExp, hint: string): void {
  const version = headerOf(c, 'a2a-version');
  if (version === undefined || supported.test(version.trim())) return;
  const message = `A2A ${JSON.stringify(version.slice(0, 16))} ${hint}`;
  throw a2aError(codes.versionNotSupported, message);
}

/** The other content type of JSON that clients send. */
export const a2aTypes = ['application/a2a+json'];

/** The outcome of a request of any binding: a result in the shape of 1.0, or a task to be followed. */
export async function perform(
  request: A2aRequest,
): Promise<{ readonly result: Fields } | Followed> {
  const { method, version } = request;
  if (method === 'SendStreamingMessage') {
    const { task, configuration } = await sendMessage(request);
    return { task, view: { historyLength: configuration.historyLength } };
  }
  if (method === 'SubscribeToTask') {
    const params = parseShape(taskParams, request.params, 'request');
    const task = await openTask(request, params.id, 'watch');
    if (version === '1.0' && isTerminal(stateOf(task))) {
      const message = 'The task has ended. Read it with GetTask.';
      throw a2aError(codes.unsupported, message);
    }
    return { task, view: {} };
  }
  const handle = Object.hasOwn(methods, method) ? methods[method] : undefined;
  if (!handle) {
    const name = JSON.stringify(method.slice(0, 64));
    throw a2aError(codes.methodNotFound, `There is no method ${name}.`);
  }
  return { result: await handle(request) };
}

export interface Binding {
  /** How it writes a stream of events. */
  readonly format: StreamFormat<Fields>;
  result(result: Fields): Fields;
  event(event: Fields): Fields;
  error(error: RpcError): Fields;
}

export function streamTask(
  { c, headers }: A2aRequest,
  { task, view }: Followed,
  binding: Binding,
): Promise<Response> {
  return withStreamSlot(c, (slot) => {
    const events = taskEvents(task, { ...task.options, signal: slot.signal }, view);
    const onFault = (error: unknown): void => logRequestFault(c, error);
    const { format } = binding;
    return slot.respond(shaped(events, binding, onFault), {
      ...format,
      headers: { ...format.headers, ...headers },
    });
  });
}

async function* shaped(
  events: AsyncGenerator<readonly Fields[]>,
  binding: Binding,
  onFault: (error: unknown) => void,
): AsyncGenerator<readonly Fields[]> {
  try {
    for await (const batch of events) yield batch.map(binding.event);
  } catch (error) {
    if (!(error instanceof RpcError)) onFault(error);
    yield [binding.error(toRpcError(error, fromErrorBody))];
  }
}

type Method = (request: A2aRequest) => Promise<Fields>;

const methods: Readonly<Record<string, Method>> = {
  async SendMessage(request) {
    const { task, configuration } = await sendMessage(request);
    const view = { historyLength: configuration.historyLength };
    if (configuration.returnImmediately === true) {
      return { task: await describeTask(task, task.options, view) };
    }
    return await withStreamSlot(request.c, async (slot) => {
      const options = { ...task.options, signal: slot.signal };
      const ended = await waitForTask(task, options);
      return { task: await describeTask(ended, options, view) };
    });
  },
  async GetTask(request) {
    const { id, historyLength } = parseShape(taskParams, request.params, 'request');
    const task = await openTask(request, id, 'getSnapshot');
    return await describeTask(task, task.options, { historyLength });
  },
  ListTasks: listTasks,
  async CancelTask(request) {
    const { id } = parseShape(taskParams, request.params, 'request');
    const task = await openTask(request, id, 'abort');
    const { agent, tip, options } = task;
    const state = stateOf(task);
    if (isTerminal(state)) {
      throw a2aError(codes.taskNotCancelable, 'The task has ended already.');
    }
    if (state === 'TASK_STATE_WORKING') await agent.abort(tip.snapshotId, options);
    else await agent.label(tip, cancelledLabel, { ...options, ifHead: tip });
    return await describeTask((await readTask(agent, id, options)) ?? task, options);
  },
  async CreateTaskPushNotificationConfig(request) {
    const push = pushOf(request);
    const config = parseShape(pushConfig, request.params, 'configuration');
    const task = await openTask(request, config.taskId ?? '', 'watch');
    await checkPush(request, config.url);
    return await push.set(task, config, request.version);
  },
  async GetTaskPushNotificationConfig(request) {
    const configs = await configsOf(request);
    const { id, taskId } = parseShape(configParams, request.params, 'request');
    // In 0.3 the only one needs no id.
    const config = configs.find((each) => id === undefined || each.id === id);
    if (config) {
      const secret = pushOf(request).secretFor(String(config.url), request.c.get('caller'));
      request.headers['webhook-secret'] = secret;
      return config;
    }
    throw a2aError(
      codes.taskNotFound,
      `The task ${JSON.stringify(taskId.slice(0, 64))} has no such push notification configuration.`,
    );
  },
  async ListTaskPushNotificationConfigs(request) {
    return { configs: await configsOf(request), nextPageToken: '' };
  },
  async DeleteTaskPushNotificationConfig(request) {
    const push = pushOf(request);
    const { taskId, id = '' } = parseShape(configParams, request.params, 'request');
    await push.delete(await openTask(request, taskId, 'watch'), id);
    return {};
  },
};

async function configsOf(request: A2aRequest): Promise<readonly Fields[]> {
  const push = pushOf(request);
  const { taskId } = parseShape(configParams, request.params, 'request');
  return await push.list(await openTask(request, taskId, 'watch'));
}

function pushOf({ push }: A2aServer): PushFeed {
  if (!push) throw pushNotSupported();
  return push;
}
