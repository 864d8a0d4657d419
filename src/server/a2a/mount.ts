import type { Agent } from '../../agent/contract/agent.ts';
import { once } from '../../core/async/promises.ts';
import { WaymarkError } from '../../core/error.ts';
import { jsonResponse } from '../http/answer.ts';
import type { A2aServerOptions, ServerProtocol } from '../http/handler-options.ts';
import { type Fields, rpcRefusal } from '../http/json-rpc.ts';
import { checkPublicUrl, publicUrl } from '../http/origin.ts';
import { checkOffered } from '../http/served-app.ts';
import {
  findAgent,
  type MountedProtocol,
  paramOf,
  type RequestContext,
} from '../http/server-context.ts';
import { canHaveTasks, offeredAgents } from './a2a-server.ts';
import { fromErrorBody, httpRefusal } from './errors.ts';
import { httpRoutes, routerPath } from './http-routes.ts';
import { createPushFeed } from './push-feed.ts';

const wellKnown = '/.well-known/agent-card.json';

/**
 * Offers the agents to A2A clients, at `/a2a/:agent`, with public cards.
 * @example handler(app, { protocols: [a2aProtocol()] })
 */
export function a2aProtocol(options: A2aServerOptions = {}): ServerProtocol {
  const protocol: MountedProtocol = {
    name: 'a2a',
    // Refusals before the request is read, such as a wrong host, have the shape of the binding as well.
    prepare(router) {
      router.use('/a2a/:agent', async (c, next) => {
        c.set('renderError', (error) => rpcRefusal(error, fromErrorBody));
        await next();
      });
      for (const route of Object.values(httpRoutes)) {
        router.on([...route.http], [routerPath(route)], async (c, next) => {
          c.set('renderError', httpRefusal);
          await next();
        });
      }
    },
    // The cards, which clients read before they know how to authenticate.
    mountPublic(router) {
      const answer = (c: RequestContext, agent: Agent): Response => {
        const { app } = c.get('server');
        const base = publicUrl(c, options.url);
        const url = `${base}/a2a/${encodeURIComponent(agent.name)}`;
        return jsonResponse(cardOf(agent, options, { url, hasPush: app.webhooks !== undefined }));
      };
      router.get(wellKnown, (c) => {
        const [first] = offeredAgents(c, options);
        if (!first) throw new WaymarkError('NOT_FOUND', 'This server offers no agent by A2A.');
        return answer(c, first);
      });
      router.get(`/a2a/:agent${wellKnown}`, (c) =>
        answer(c, findAgent(offeredAgents(c, options), paramOf(c, 'agent'))),
      );
    },
    // JSON-RPC of 1.0 and 0.3, and HTTP+JSON of 1.0.
    mount(router, serverContext) {
      checkPublicUrl(options.url, 'a2a.url');
      checkOffered(serverContext.app, 'a2a', options.agents, (agent) =>
        canHaveTasks(agent)
          ? undefined
          : 'which cannot run in the background. Give it a store that can, such as sqliteStore, or leave it out.',
      );
      // Defined when the server starts: notifications that another process has left behind are continued here.
      const push = createPushFeed(serverContext);
      const server = { options, push };
      // Loaded when a client comes.
      const endpoint = once(() => import('./endpoint.ts'));
      router.post('/a2a/:agent', async (c) => (await endpoint()).answer(server, c));
      for (const [method, route] of Object.entries(httpRoutes)) {
        router.on([...route.http], [routerPath(route)], async (c) =>
          (await endpoint()).answerHttp(server, c, method),
        );
      }
    },
  };
  return protocol;
}

const modes = ['text/plain', 'application/json'];

/** The card of an agent, which clients of both generations can read. */
function cardOf(
  agent: Agent,
  { version = '1', card = {} }: A2aServerOptions,
  { url, hasPush }: { readonly url: string; readonly hasPush: boolean },
): Fields {
  const { name } = agent;
  const description = agent.description ?? `The agent ${name}.`;
  return {
    name,
    description,
    version,
    supportedInterfaces: [
      { url, protocolBinding: 'JSONRPC', protocolVersion: '1.0', tenant: '' },
      { url, protocolBinding: 'HTTP+JSON', protocolVersion: '1.0', tenant: '' },
      { url, protocolBinding: 'JSONRPC', protocolVersion: '0.3', tenant: '' },
    ],
    capabilities: {
      streaming: true,
      pushNotifications: hasPush,
      extensions: [],
      extendedAgentCard: false,
    },
    securitySchemes: {},
    securityRequirements: [],
    defaultInputModes: modes,
    defaultOutputModes: modes,
    skills: [
      {
        id: name,
        name,
        description,
        tags: [],
        examples: [],
        inputModes: modes,
        outputModes: modes,
        securityRequirements: [],
      },
    ],
    signatures: [],
    // Fields for clients of 0.3.
    url,
    preferredTransport: 'JSONRPC',
    protocolVersion: '0.3.0',
    ...card,
  };
}
