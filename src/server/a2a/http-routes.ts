import type { Fields } from '../http/json-rpc.ts';
import { paramOf, type RequestContext } from '../http/server-context.ts';

/** A route of the HTTP+JSON binding, below `/a2a/:agent`. */
export interface HttpRoute {
  readonly http: readonly ('GET' | 'POST' | 'DELETE')[];
  /** `:task:cancel` is the parameter `task`, followed by `:cancel`. */
  readonly path: string;
  readonly query?: Readonly<Record<string, 'string' | 'integer' | 'boolean'>>;
  readonly hasBody?: boolean;
  /** The params of the method, besides the body and the query. */
  params?(c: RequestContext): Fields;
}

const configs = '/tasks/:task/pushNotificationConfigs';
const task = (c: RequestContext): string => paramOf(c, 'task');
const ofVerb = (c: RequestContext): Fields => ({ id: task(c).replace(/:\w+$/, '') });
const ofConfig = (c: RequestContext): Fields => ({ taskId: task(c), id: c.req.param('config') });

/** The methods of A2A 1.0 as routes. A longer path stands before a shorter one that it fits as well. */
export const httpRoutes: Readonly<Record<string, HttpRoute>> = {
  SendMessage: { http: ['POST'], path: '/message:send', hasBody: true },
  SendStreamingMessage: { http: ['POST'], path: '/message:stream', hasBody: true },
  CancelTask: { http: ['POST'], path: '/tasks/:task:cancel', params: ofVerb },
  // The definition of the protocol has GET, its SDK sends POST.
  SubscribeToTask: { http: ['POST', 'GET'], path: '/tasks/:task:subscribe', params: ofVerb },
  ListTasks: {
    http: ['GET'],
    path: '/tasks',
    query: {
      contextId: 'string',
      status: 'string',
      pageSize: 'integer',
      pageToken: 'string',
      historyLength: 'integer',
      statusTimestampAfter: 'string',
      includeArtifacts: 'boolean',
    },
  },
  GetTask: {
    http: ['GET'],
    path: '/tasks/:task',
    query: { historyLength: 'integer' },
    params: (c) => ({ id: task(c) }),
  },
  CreateTaskPushNotificationConfig: {
    http: ['POST'],
    path: configs,
    hasBody: true,
    params: (c) => ({ taskId: task(c) }),
  },
  ListTaskPushNotificationConfigs: { http: ['GET'], path: configs, params: ofConfig },
  GetTaskPushNotificationConfig: { http: ['GET'], path: `${configs}/:config`, params: ofConfig },
  DeleteTaskPushNotificationConfig: {
    http: ['DELETE'],
    path: `${configs}/:config`,
    params: ofConfig,
  },
};

export function routerPath({ path }: HttpRoute): string {
  return `/a2a/:agent${path.replace(/:task:(\w+)$/, ':task{[^/]+:$1}')}`;
}
