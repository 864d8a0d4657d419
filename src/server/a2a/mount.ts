import type { Agent } from '../../agent/spec/agent.ts';
import { WaymarkError } from '../../core/error.ts';
import { errorHeaders, httpStatusOf, toWireError } from '../http/errors.ts';
import type { A2aServerOptions, ServerProtocol } from '../http/handler-options.ts';
import { jsonResponse } from '../http/json-response.ts';
import { publicUrl } from '../http/origin.ts';
import {
  findAgent,
  type MountedProtocol,
  type RequestContext,
  type Router,
  type ServerContext,
} from '../http/server-context.ts';
import { cardOf } from './card.ts';
import { errorMessage, fromErrorBody } from './errors.ts';
import { httpRefusal } from './http-error.ts';
import { httpRoutes, routerPath } from './http-routes.ts';
import { checkA2aOptions, offeredAgents } from './offered-agents.ts';
import { createPushFeed } from './push-feed.ts';

const wellKnown = '/.well-known/agent-card.json';

/**
 * Offers the agents to A2A clients, at `/a2a/:agent`, with public cards.
 * @example handler(app, { protocols: [a2aProtocol()] })
 */
export function a2aProtocol(options: A2aServerOptions = {}): ServerProtocol {
  const protocol: MountedProtocol = {
    name: 'a2a',
    prepare: prepareA2a,
    mountPublic: (router, serverContext) => mountA2aCards(router, serverContext, options),
    mount: (router, serverContext) => mountA2a(router, serverContext, options),
  };
  return protocol;
}

/** Refusals before the request is read, such as a wrong host, are JSON-RPC errors as well. */
function prepareA2a(router: Router): void {
  router.use('/a2a/:agent', async (c, next) => {
    c.set('renderError', refusal);
    await next();
  });
  for (const route of Object.values(httpRoutes)) {
    router.on([...route.http], [routerPath(route)], async (c, next) => {
      c.set('renderError', httpRefusal);
      await next();
    });
  }
}

/** The cards, which clients read before they know how to authenticate. */
function mountA2aCards(
  router: Router,
  serverContext: ServerContext,
  options: A2aServerOptions,
): void {
  const { app } = serverContext;
  const answer = (c: RequestContext, agent: Agent): Response => {
    const base = publicUrl(serverContext, c, options.url);
    const url = `${base}/a2a/${encodeURIComponent(agent.name)}`;
    return jsonResponse(cardOf(agent, { url, options, hasPush: app.webhooks !== undefined }));
  };
  router.get(wellKnown, (c) => {
    const [first] = offeredAgents(app, options);
    if (!first) throw new WaymarkError('NOT_FOUND', 'This server offers no agent by A2A.');
    return answer(c, first);
  });
  router.get(`/a2a/:agent${wellKnown}`, (c) => {
    const agents = offeredAgents(app, options);
    return answer(c, findAgent({ agents: () => agents }, c.req.param('agent') ?? ''));
  });
}

/** The agents as A2A agents, at `/a2a/:agent`: JSON-RPC of 1.0 and 0.3, and HTTP+JSON of 1.0. */
function mountA2a(router: Router, serverContext: ServerContext, options: A2aServerOptions): void {
  checkA2aOptions(serverContext.app, options);
  // Defined when the server starts: notifications that another process has left behind are continued here.
  const push = createPushFeed(serverContext);
  const server = { serverContext, options, push };
  // Loaded when a client comes.
  let endpoint: Promise<typeof import('./endpoint.ts')> | undefined;
  let http: Promise<typeof import('./http-json.ts')> | undefined;
  router.get('/a2a/openapi.json', async () =>
    jsonResponse((await import('./openapi.ts')).a2aDocument()),
  );
  router.post('/a2a/:agent', async (c) => {
    endpoint ??= import('./endpoint.ts');
    return await (await endpoint).answer(server, c);
  });
  for (const [method, route] of Object.entries(httpRoutes)) {
    router.on([...route.http], [routerPath(route)], async (c) => {
      http ??= import('./http-json.ts');
      return await (await http).answerHttp(server, c, method);
    });
  }
}

function refusal(error: unknown): Response {
  const body = toWireError(error);
  return jsonResponse(errorMessage(null, fromErrorBody(body)), {
    status: httpStatusOf(body),
    headers: errorHeaders(body),
  });
}
