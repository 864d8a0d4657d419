import { jsonResponse } from '../http/json-response.ts';
import { protocolDocument, schemaRef as ref } from '../http/protocol-document.ts';
import { type OpenAiRoute, openAiPath, openAiRoutes } from './routes.ts';

interface OperationInfo {
  readonly summary: string;
  readonly query?: Readonly<Record<string, string>>;
  readonly body?: string;
  readonly answer: string;
  /** It can be had as server-sent events. */
  readonly events?: boolean;
}

const paging = { limit: 'integer', order: 'string', after: 'string' };

/** The routes, described. What a response has besides is in OpenAI's own reference. */
const operations: Readonly<Record<OpenAiRoute, OperationInfo>> = {
  getOpenApi: { summary: 'This document.', answer: 'Any' },
  listModels: { summary: 'The agents, as models.', answer: 'ModelList' },
  getModel: { summary: 'One agent.', answer: 'Model' },
  createResponse: {
    summary: 'Runs a turn of an agent.',
    body: 'CreateResponse',
    answer: 'Response',
    events: true,
  },
  getResponse: {
    summary: 'A response, or the events that led to it.',
    query: { stream: 'boolean', starting_after: 'integer' },
    answer: 'Response',
    events: true,
  },
  deleteResponse: { summary: 'Deletes a response that stands alone.', answer: 'Deleted' },
  cancelResponse: { summary: 'Stops a response and keeps its partial answer.', answer: 'Response' },
  listInputItems: { summary: 'What a response was given.', query: paging, answer: 'ItemList' },
  createConversation: {
    summary: 'Creates a conversation.',
    body: 'CreateConversation',
    answer: 'Conversation',
  },
  getConversation: { summary: 'A conversation.', answer: 'Conversation' },
  updateConversation: {
    summary: 'Sets the metadata of a conversation.',
    body: 'UpdateConversation',
    answer: 'Conversation',
  },
  deleteConversation: {
    summary: 'Deletes a conversation with its responses.',
    answer: 'Deleted',
  },
  listItems: { summary: 'The items of a conversation.', query: paging, answer: 'ItemList' },
  createItems: {
    summary: 'Adds messages to a conversation.',
    body: 'CreateItems',
    answer: 'ItemList',
  },
  getItem: { summary: 'An item of a conversation.', answer: 'Item' },
  deleteItem: { summary: 'Always refused: items cannot be deleted.', answer: 'Conversation' },
};

const text = { type: 'string' };
const flag = { type: 'boolean' };
const metadata = { type: 'object', additionalProperties: text, maxProperties: 16 };
const list = (name: string): object => ({ type: 'array', items: ref(name) });
const object = (properties: object, required: readonly string[] = []): object => ({
  type: 'object',
  properties,
  ...(required.length > 0 && { required }),
});

const schemas = {
  Any: { type: 'object' },
  Item: object({ id: text, type: text }, ['type']),
  ItemList: object({ object: { const: 'list' }, data: list('Item'), has_more: flag }, ['data']),
  Model: object({ id: text, object: { const: 'model' } }, ['id']),
  ModelList: object({ object: { const: 'list' }, data: list('Model') }, ['data']),
  Conversation: object({ id: text, created_at: { type: 'integer' }, metadata }, ['id']),
  CreateConversation: object({ items: list('Item'), metadata }),
  UpdateConversation: object({ metadata }, ['metadata']),
  CreateItems: object({ items: list('Item') }, ['items']),
  Deleted: object({ id: text, deleted: flag }, ['id', 'deleted']),
  CreateResponse: object(
    {
      model: text,
      input: { oneOf: [text, list('Item')] },
      previous_response_id: text,
      conversation: { oneOf: [text, object({ id: text }, ['id'])] },
      background: flag,
      stream: flag,
      store: flag,
      tools: { type: 'array', items: ref('Any') },
      text: ref('Any'),
      metadata,
      instructions: text,
      temperature: { type: 'number' },
      top_p: { type: 'number' },
      max_output_tokens: { type: 'integer' },
      reasoning: ref('Any'),
      tool_choice: { oneOf: [text, ref('Any')] },
    },
    ['model', 'input'],
  ),
  Response: object({ id: text, status: text, output: list('Item'), usage: ref('Any') }, [
    'id',
    'status',
    'output',
  ]),
  Error: object({
    error: object({ message: text, type: text, param: {}, code: text }, ['message', 'type']),
  }),
};

/** `GET /openapi.json`. */
export async function getOpenApi(): Promise<Response> {
  const routes = Object.entries(openAiRoutes).map(([name, { method, path }]) => {
    const { events, ...info } = operations[name as OpenAiRoute];
    return { name, method, path, ...info, events: events ? ('optional' as const) : undefined };
  });
  const title = 'Waymark as the OpenAI Responses API';
  return jsonResponse(protocolDocument({ title, server: openAiPath, routes, schemas }));
}
