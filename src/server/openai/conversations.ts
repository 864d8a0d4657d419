import type { Message } from '../../protocol/message.ts';
import { pendingInterrupts } from '../../protocol/messages.ts';
import type { Operation } from '../../protocol/routes.ts';
import type { State } from '../../protocol/state.ts';
import { jsonResponse, short } from '../http/answer.ts';
import { ownerOf } from '../http/auth.ts';
import { readBody } from '../http/body.ts';
import { authorize, openAgentCall, paramOf } from '../http/server-context.ts';
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

export const conversationHandlers = {
  async createConversation(request) {
    const { c, caller } = request;
    const { items, metadata } = await readBody(c, conversationRequest, 'conversation');
    const id = `conv_${request.newId()}`;
    await authorize(c, { operation: 'updateSession', sessionId: id });
    const { store, scope } = recordsOf(request, caller);
    const messages = readMessages(request, items ?? []);
    await saveMessages(store, scope, { messages, sessionId: id }, request);
    if (metadata) await store.timeline.updateSession(scope, id, { metadata });
    return toConversation(await findConversation(request, caller, id));
  },

  getConversation: async (request) => toConversation(await openConversation(request, 'getSession')),

  async updateConversation(request) {
    const what = 'change of a conversation';
    const { metadata } = await readBody(request.c, conversationChange, what);
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
    const id = paramOf(request.c, 'item');
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
    const { items } = await readBody(request.c, itemsRequest, 'request');
    const messages = readMessages(request, items);
    const found = await openConversation(request, 'runTurn');
    const { store, scope } = homeOf(request, found);
    const head = await store.getSnapshot(scope, { sessionId: found.id });
    if (pendingInterrupts(head?.state?.messages ?? []).length > 0) {
      throw badRequest(
        'The conversation waits for the output of a function call. Answer it with POST /responses first.',
        { param: 'items', code: 'function_call_output_expected' },
      );
    }
    const seed = { messages, parent: head, sessionId: found.id };
    const added = await saveMessages(store, scope, seed, request);
    const all = await itemsOf(request, found);
    const data = all.filter(({ id }) => id.includes(`_${added}_`));
    return jsonResponse(listOf(data, false));
  },
} satisfies Partial<Record<OpenAiRoute, Handler>>;

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
  const { c, caller } = request;
  const sessionId = paramOf(c, 'conversation');
  const found = await findConversation(request, caller, sessionId);
  const { agent } = found;
  if (agent) await openAgentCall(c, { agent, operation, sessionId });
  else await authorize(c, { operation, sessionId });
  return found;
}

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
