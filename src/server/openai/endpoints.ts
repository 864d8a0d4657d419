import type { OpenAiServerOptions } from '../http/handler-options.ts';
import type { RequestContext, ServerContext } from '../http/server-context.ts';
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
import { getModel, listModels } from './models.ts';
import { createOpenAiServer, type OpenAiServer } from './openai-server.ts';
import { getOpenApi } from './openapi.ts';
import { cancelResponse, deleteResponse, getResponse, listInputItems } from './responses.ts';
import type { OpenAiRoute } from './routes.ts';

const handlers: Readonly<
  Record<OpenAiRoute, (openai: OpenAiServer, c: RequestContext) => Promise<Response>>
> = {
  getOpenApi,
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
