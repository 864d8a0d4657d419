import { uuidv7 } from '../../core/id.ts';
import type { Message } from '../../protocol/message.ts';
import { pendingInterrupts } from '../../protocol/messages.ts';
import type { Operation } from '../../protocol/routes.ts';
import type { State } from '../../protocol/state.ts';
import { ownerOf } from '../http/auth.ts';
import { readBody } from '../http/body.ts';
import { short } from '../http/errors.ts';
import { jsonResponse } from '../http/json-response.ts';
import { checkCall, openAgentCall } from '../http/server-context.ts';
import {
  type Conversation,
  findConversation,
  type Records,
  recordsOf,
  saveMessages,
  unknownConversation,
} from './conversation.ts';
import { badRequest, unknownId } from './errors.ts';
import { toMessages } from './input.ts';
import { conversationItems, type Item, turnsIn } from './items.ts';
import { fullStoreOf, type Handler, type OpenAiRequest } from './openai-server.ts';
import type { OpenAiRoute } from './routes.ts';
import { checkAllowed } from './settings.ts';
import {
  conversationChange,
  conversationRequest,
  type InputItem,
  itemsRequest,
  listOf,
  pageOf,
} from './shapes.ts';

/** The routes of conversations and their items. */
export const conversationHandlers = {
  async createConversation(request) {
    const { serverContext, c, caller } = request;
    const how = { what: 'conversation', ...serverContext };
    const { items, metadata } = await readBody(c, conversationRequest, how);
    const id = `conv_${uuidv7(serverContext.clock.now())}`;
    await checkSession(request, 'updateSession', id);
    const records = recordsOf(request, caller);
    const messages = readMessages(request, items ?? []);
    await save(request, records, { messages, sessionId: id });
    if (metadata) await records.store.timeline.updateSession(records.scope, id, { metadata });
    return toConversation(await findConversation(request, caller, id));
  },

  getConversation: async (request) => toConversation(await openConversation(request, 'getSession')),

  /** Sets the metadata. */
  async updateConversation(request) {
    const how = { what: 'change of a conversation', ...request.serverContext };
    const { metadata } = await readBody(request.c, conversationChange, how);
    const found = await openConversation(request, 'updateSession');
    const { store, scope } = homeOf(request, found);
    await store.timeline.updateSession(scope, found.id, { metadata });
    return toConversation(await findConversation(request, request.caller, found.id));
  },

  /** Deletes a conversation with all its responses. */
  async deleteConversation(request) {
    const { id, agent, record } = await openConversation(request, 'deleteSession');
    if (agent) await agent.deleteSession(id, ownerOf(request.caller));
    const { store, scope } = recordsOf(request, request.caller);
    if (record) await store.timeline.deleteSession(scope, id);
    return jsonResponse({ id, object: 'conversation.deleted', deleted: true });
  },

  async listItems(request) {
    const found = await openConversation(request, 'getSession');
    return jsonResponse(pageOf(request.c, await itemsOf(request, found)));
  },

  async getItem(request) {
    const found = await openConversation(request, 'getSession');
    const id = request.c.req.param('item') ?? '';
    const item = (await itemsOf(request, found)).find((each) => each.id === id);
    if (!item) throw unknownId(`There is no item ${short(id)} here.`, 'item_not_found');
    return jsonResponse(item);
  },

  async deleteItem(request) {
    await openConversation(request, 'deleteSession');
    throw badRequest(
      'Items cannot be deleted: responses share the messages before them. Continue from an earlier response with previous_response_id, or delete the conversation.',
      { code: 'unsupported_operation' },
    );
  },

  /** Adds messages, as a snapshot. */
  async createItems(request) {
    const { serverContext, c } = request;
    const { items } = await readBody(c, itemsRequest, { what: 'request', ...serverContext });
    const messages = readMessages(request, items);
    const found = await openConversation(request, 'runTurn');
    const home = homeOf(request, found);
    const head = await home.store.getSnapshot(home.scope, { sessionId: found.id });
    if (pendingInterrupts(head?.state?.messages ?? []).length > 0) {
      throw badRequest(
        'The conversation waits for the output of a function call. Answer it with POST /responses first.',
        { param: 'items', code: 'function_call_output_expected' },
      );
    }
    const added = await save(request, home, { messages, parent: head, sessionId: found.id });
    const all = await itemsOf(request, found);
    const data = all.filter(({ id }) => id.includes(`_${added}_`));
    return jsonResponse(listOf(data, false));
  },
} satisfies Partial<Record<OpenAiRoute, Handler>>;

function save(
  { serverContext }: OpenAiRequest,
  { store, scope }: Records,
  seed: Parameters<typeof saveMessages>[2],
): Promise<string> {
  const newId = (): string => uuidv7(serverContext.clock.now());
  return saveMessages(store, scope, seed, { newId });
}

function readMessages({ options }: OpenAiRequest, items: readonly InputItem[]): readonly Message[] {
  const messages = toMessages(items);
  const roles = new Set(messages.map(({ role }) => role));
  if (roles.has('model')) checkAllowed(options, 'history', 'items');
  if (roles.has('system')) checkAllowed(options, 'instructions', 'items');
  return messages;
}

async function openConversation(
  request: OpenAiRequest,
  operation: Operation,
): Promise<Conversation> {
  const { serverContext, c, caller } = request;
  const sessionId = c.req.param('conversation') ?? '';
  const found = await findConversation(request, caller, sessionId);
  const { agent } = found;
  if (agent) await openAgentCall(serverContext, c, { agent, operation, sessionId });
  else await checkSession(request, operation, sessionId);
  return found;
}

/** Asks whether the caller may do this with a conversation that no agent has answered. */
async function checkSession(
  { serverContext, c, caller }: OpenAiRequest,
  operation: Operation,
  sessionId: string,
): Promise<void> {
  await checkCall(serverContext, { request: c.req.raw, caller, operation, sessionId });
}

/** Where the messages of a conversation are. */
function homeOf(request: OpenAiRequest, { id, agent }: Conversation): Records {
  if (!agent) return recordsOf(request, request.caller);
  const store = fullStoreOf(agent);
  if (!store) throw unknownConversation(id);
  return { store, scope: { agent: agent.name, ...ownerOf(request.caller) } };
}

async function itemsOf(
  request: OpenAiRequest,
  { id, agent }: Conversation,
): Promise<readonly Item[]> {
  const { store, scope } = recordsOf(request, request.caller);
  // The agent decides what of its state may leave.
  const head = agent
    ? await agent.getSnapshot({ sessionId: id }, ownerOf(request.caller))
    : await store.getSnapshot(scope, { sessionId: id });
  const { messages = [] } = (head?.state as State | undefined) ?? {};
  return conversationItems(turnsIn(messages, head?.snapshotId ?? ''));
}

function toConversation({ id, record, session }: Conversation): Response {
  const { createdAt = '' } = record ?? session ?? {};
  return jsonResponse({
    id,
    object: 'conversation',
    created_at: Math.floor(Date.parse(createdAt) / 1000),
    metadata: session?.metadata ?? record?.metadata ?? {},
  });
}
