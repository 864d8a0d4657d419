import type { Agent } from '../../agent/contract/agent.ts';
import { parseShape } from '../../protocol/parse.ts';
import { short } from '../http/answer.ts';
import { headerOf } from '../http/connection.ts';
import { type Fields, logRpcFault, type RpcError, toRpcError } from '../http/json-rpc.ts';
import { findAgent, paramOf, type RequestContext } from '../http/server-context.ts';
import { type StreamFormat, withStreamSlot } from '../stream/stream-response.ts';
import { type A2aRequest, type A2aServer, offeredAgents } from './a2a-server.ts';
import { a2aError, codes, fromErrorBody } from './errors.ts';
import { listTasks } from './list-tasks.ts';
import { checkPush, giveSecret, pushOf, sendMessage } from './send.ts';
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
  throw a2aError(codes.versionNotSupported, `A2A ${short(version)} ${hint}`);
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
      throw a2aError(codes.unsupported, 'The task has ended. Read it with GetTask.');
    }
    return { task, view: {} };
  }
  const handle = Object.hasOwn(methods, method) ? methods[method] : undefined;
  if (!handle) throw a2aError(codes.methodNotFound, `There is no method ${short(method)}.`);
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
    const { format } = binding;
    return slot.respond(shaped(c, events, binding), {
      ...format,
      headers: { ...format.headers, ...headers },
    });
  });
}

async function* shaped(
  c: RequestContext,
  events: AsyncGenerator<readonly Fields[]>,
  binding: Binding,
): AsyncGenerator<readonly Fields[]> {
  try {
    for await (const batch of events) yield batch.map(binding.event);
  } catch (error) {
    logRpcFault(c, error);
    yield [binding.error(toRpcError(error, fromErrorBody))];
  }
}

type Method = (request: A2aRequest) => Promise<Fields>;

const methods: Readonly<Record<string, Method>> = {
  async GetExtendedAgentCard() {
    throw a2aError(codes.unsupported, 'There is no extended card: the public one has everything.');
  },
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
      giveSecret(request, String(config.url));
      return config;
    }
    throw a2aError(
      codes.taskNotFound,
      `The task ${short(taskId)} has no such push notification configuration.`,
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
