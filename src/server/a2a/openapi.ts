import {
  type DescribedRoute,
  protocolDocument,
  schemaRef as ref,
} from '../http/protocol-document.ts';
import { type HttpRoute, httpRoutes } from './http-routes.ts';

const text = { type: 'string' };
const anything = { type: 'object' };
const object = (properties: object, required: readonly string[] = []): object => ({
  type: 'object',
  properties,
  ...(required.length > 0 && { required }),
});
const list = (name: string): object => ({ type: 'array', items: ref(name) });

const schemas = {
  Part: object({ text, data: {}, raw: text, url: text, mediaType: text, filename: text }),
  Message: object(
    {
      messageId: text,
      contextId: text,
      taskId: text,
      role: { enum: ['ROLE_USER', 'ROLE_AGENT'] },
      parts: list('Part'),
      metadata: anything,
    },
    ['messageId', 'role', 'parts'],
  ),
  SendMessageRequest: object(
    {
      message: ref('Message'),
      configuration: object({
        historyLength: { type: 'integer' },
        returnImmediately: { type: 'boolean' },
        taskPushNotificationConfig: ref('PushNotificationConfig'),
      }),
    },
    ['message'],
  ),
  SendMessageResponse: object({ task: ref('Task') }, ['task']),
  Task: object(
    {
      id: text,
      contextId: text,
      status: object({ state: text, message: ref('Message'), timestamp: text }, ['state']),
      artifacts: { type: 'array', items: anything },
      history: list('Message'),
    },
    ['id', 'contextId', 'status'],
  ),
  ListTasksResponse: object(
    {
      tasks: list('Task'),
      nextPageToken: text,
      pageSize: { type: 'integer' },
      totalSize: { type: 'integer' },
    },
    ['tasks', 'nextPageToken'],
  ),
  PushNotificationConfig: object(
    { id: text, taskId: text, url: text, token: text, authentication: anything },
    ['url'],
  ),
  PushNotificationConfigs: object({ configs: list('PushNotificationConfig') }, ['configs']),
  JsonRpcRequest: object({ jsonrpc: { const: '2.0' }, id: {}, method: text, params: anything }, [
    'jsonrpc',
    'method',
  ]),
  JsonRpcResponse: object({ jsonrpc: { const: '2.0' }, id: {}, result: {}, error: anything }, [
    'jsonrpc',
  ]),
  Nothing: anything,
  Error: object({
    error: object({ code: { type: 'integer' }, status: text, message: text, details: {} }, [
      'code',
      'message',
    ]),
  }),
};

const answers: Readonly<Record<string, keyof typeof schemas>> = {
  SendMessage: 'SendMessageResponse',
  CancelTask: 'Task',
  GetTask: 'Task',
  ListTasks: 'ListTasksResponse',
  CreateTaskPushNotificationConfig: 'PushNotificationConfig',
  ListTaskPushNotificationConfigs: 'PushNotificationConfigs',
  GetTaskPushNotificationConfig: 'PushNotificationConfig',
};

const rpc: DescribedRoute = {
  name: 'JsonRpc',
  method: 'POST',
  path: '/:agent',
  summary: 'One JSON-RPC request of A2A 1.0 or 0.3.',
  body: 'JsonRpcRequest',
  answer: 'JsonRpcResponse',
  events: 'optional',
};

/** The routes of A2A as an OpenAPI document. What they carry is defined by the protocol. */
export function a2aDocument(): object {
  const routes = Object.entries(httpRoutes).flatMap(([name, route]) =>
    route.http.map((method, at) =>
      described(at === 0 ? name : `${name}By${method}`, method, route),
    ),
  );
  const title = 'Waymark as A2A agents';
  return protocolDocument({ title, server: '/a2a', routes: [rpc, ...routes], schemas });
}

function described(name: string, method: string, route: HttpRoute): DescribedRoute {
  const { path, summary, query = {}, hasBody, isStream } = route;
  const body = name.includes('Push') ? 'PushNotificationConfig' : 'SendMessageRequest';
  return {
    name,
    method,
    path: `/:agent${path.replace(/:task:(\w+)$/, '{task}:$1')}`,
    summary,
    query,
    body: hasBody ? body : undefined,
    answer: answers[name] ?? 'Nothing',
    events: isStream ? 'always' : undefined,
  };
}
