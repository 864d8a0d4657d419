import type { Agent } from '../../agent/contract/agent.ts';
import { jsonResponse } from '../http/answer.ts';
import type { OpenAiServerOptions } from '../http/handler-options.ts';
import {
  authorize,
  openAgentCall,
  paramOf,
  type RequestContext,
  type ServerContext,
} from '../http/server-context.ts';
import { createChatHandler } from './chat.ts';
import { contextHandlers } from './context.ts';
import { conversationHandlers } from './conversations.ts';
import { createOpenAiServer, type Handler, type OpenAiServer } from './openai-server.ts';
import { createResponse, responseHandlers } from './responses.ts';
import type { OpenAiRoute } from './routes.ts';

const modelHandlers = {
  async listModels(request) {
    await authorize(request.c, { operation: 'listAgents' });
    const data = request.agents().map((agent) => toModel(request, agent));
    return jsonResponse({ object: 'list', data });
  },

  async getModel(request) {
    const { c } = request;
    const agent = request.agent(paramOf(c, 'model'));
    await openAgentCall(c, { agent, operation: 'getAgent' });
    return jsonResponse(toModel(request, agent));
  },
} satisfies Partial<Record<OpenAiRoute, Handler>>;

export type Endpoints = (route: OpenAiRoute, c: RequestContext) => Promise<Response>;

export function createEndpoints(
  serverContext: ServerContext,
  options: OpenAiServerOptions,
): Endpoints {
  const openai = createOpenAiServer(serverContext, options);
  const handlers: Readonly<Record<OpenAiRoute, Handler>> = {
    ...modelHandlers,
    ...responseHandlers,
    ...conversationHandlers,
    ...contextHandlers,
    createResponse,
    createChatCompletion: createChatHandler(),
  };
  return (route, c) => handlers[route]({ ...openai, c, caller: c.get('caller') });
}

function toModel({ startedAt }: OpenAiServer, { name }: Agent): object {
  return { id: name, object: 'model', created: startedAt, owned_by: 'waymark' };
}
