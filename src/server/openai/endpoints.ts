import type { Agent } from '../../agent/spec/agent.ts';
import type { OpenAiServerOptions } from '../http/handler-options.ts';
import { jsonResponse } from '../http/json-response.ts';
import {
  checkCall,
  openAgentCall,
  type RequestContext,
  type ServerContext,
} from '../http/server-context.ts';
import {
  createConversation,
  createItems,
  deleteConversation,
  deleteItem,
  getConversation,
  getItem,
  listItems,
  updateConversation,
} from './conversations.ts';
import { createResponse } from './create.ts';
import { createOpenAiServer, type OpenAiServer } from './openai-server.ts';
import { cancelResponse, deleteResponse, getResponse, listInputItems } from './responses.ts';
import type { OpenAiRoute } from './routes.ts';

const handlers: Readonly<
  Record<OpenAiRoute, (openai: OpenAiServer, c: RequestContext) => Promise<Response>>
> = {
  listModels,
  getModel,
  createResponse,
  getResponse,
  deleteResponse,
  cancelResponse,
  listInputItems,
  createConversation,
  getConversation,
  updateConversation,
  deleteConversation,
  listItems,
  createItems,
  getItem,
  deleteItem,
};

/** Answers a request to one of the routes. */
export type Endpoints = (route: OpenAiRoute, c: RequestContext) => Promise<Response>;

export function createEndpoints(
  serverContext: ServerContext,
  options: OpenAiServerOptions,
): Endpoints {
  const openai = createOpenAiServer(serverContext, options);
  return (route, c) => handlers[route](openai, c);
}

/** `GET /models`: the agents. */
export async function listModels(openai: OpenAiServer, c: RequestContext): Promise<Response> {
  const { serverContext } = openai;
  const caller = c.get('caller');
  await checkCall(serverContext, { request: c.req.raw, caller, operation: 'listAgents' });
  const data = openai.agents().map((agent) => toModel(openai, agent));
  return jsonResponse({ object: 'list', data });
}

/** `GET /models/:model`. */
export async function getModel(openai: OpenAiServer, c: RequestContext): Promise<Response> {
  const agent = openai.agent(c.req.param('model') ?? '');
  await openAgentCall(openai.serverContext, c, { agent, operation: 'getAgent' });
  return jsonResponse(toModel(openai, agent));
}

function toModel({ startedAt }: OpenAiServer, { name }: Agent): object {
  return { id: name, object: 'model', created: startedAt, owned_by: 'waymark' };
}
