import { parseShape } from '../../protocol/parse.ts';
import { acquireStreamSlot } from '../stream/stream-response.ts';
import type { A2aRequest, A2aServer } from './a2a-server.ts';
import { A2aError, codes, type Fields } from './errors.ts';
import { listTasks } from './list-tasks.ts';
import type { PushFeed } from './push-feed.ts';
import { checkPush, pushNotSupported, sendMessage } from './send.ts';
import { configParams, pushConfig, taskParams } from './shapes.ts';
import {
  cancelledLabel,
  describeTask,
  isTerminal,
  openTask,
  readTask,
  stateOf,
  waitForTask,
} from './task.ts';

/** A method that is answered by one result, in the shape of 1.0. */
export type Method = (server: A2aServer, request: A2aRequest) => Promise<Fields>;

export const methods: Readonly<Record<string, Method>> = {
  async SendMessage(server, request) {
    const { task, configuration } = await sendMessage(server, request);
    const view = { historyLength: configuration.historyLength };
    if (configuration.returnImmediately === true) {
      return { task: await describeTask(task, task.options, view) };
    }
    const slot = acquireStreamSlot(server.serverContext, request.c);
    try {
      const options = { ...task.options, signal: slot.signal };
      return { task: await describeTask(await waitForTask(task, options), options, view) };
    } finally {
      slot.leave();
    }
  },
  async GetTask(server, request) {
    const { id, historyLength } = parseShape(taskParams, request.params, 'request');
    const task = await openTask(server, request, id, 'getSnapshot');
    return await describeTask(task, task.options, { historyLength });
  },
  ListTasks: listTasks,
  async CancelTask(server, request) {
    const { id } = parseShape(taskParams, request.params, 'request');
    const task = await openTask(server, request, id, 'abort');
    const { agent, tip, options } = task;
    const state = stateOf(task);
    if (isTerminal(state)) {
      throw new A2aError(codes.taskNotCancelable, 'The task has ended already.');
    }
    if (state === 'TASK_STATE_WORKING') await agent.abort(tip.snapshotId, options);
    else await agent.label(tip, cancelledLabel, { ...options, ifHead: tip });
    return await describeTask((await readTask(agent, id, options)) ?? task, options);
  },
  async CreateTaskPushNotificationConfig(server, request) {
    const push = pushOf(server);
    const config = parseShape(pushConfig, request.params, 'configuration');
    const task = await openTask(server, request, config.taskId ?? '', 'watch');
    await checkPush(server, request, config.url);
    return await push.set(task, config, request.version);
  },
  async GetTaskPushNotificationConfig(server, request) {
    const configs = await configsOf(server, request);
    const { id, taskId } = parseShape(configParams, request.params, 'request');
    // In 0.3 the only one needs no id.
    const config = configs.find((each) => id === undefined || each.id === id);
    if (config) {
      const secret = pushOf(server).secretFor(String(config.url), request.c.get('caller'));
      request.headers['webhook-secret'] = secret;
      return config;
    }
    throw new A2aError(
      codes.taskNotFound,
      `The task ${JSON.stringify(taskId.slice(0, 64))} has no such push notification configuration.`,
    );
  },
  async ListTaskPushNotificationConfigs(server, request) {
    return { configs: await configsOf(server, request), nextPageToken: '' };
  },
  async DeleteTaskPushNotificationConfig(server, request) {
    const push = pushOf(server);
    const { taskId, id = '' } = parseShape(configParams, request.params, 'request');
    await push.delete(await openTask(server, request, taskId, 'watch'), id);
    return {};
  },
};

async function configsOf(server: A2aServer, request: A2aRequest): Promise<readonly Fields[]> {
  const push = pushOf(server);
  const { taskId } = parseShape(configParams, request.params, 'request');
  return await push.list(await openTask(server, request, taskId, 'watch'));
}

function pushOf({ push }: A2aServer): PushFeed {
  if (!push) throw pushNotSupported();
  return push;
}
