import { uuidv7 } from '../../core/id.ts';
import type { JsonObject } from '../../core/json/json.ts';
import type { Message } from '../../protocol/message.ts';
import { pendingInterrupts } from '../../protocol/messages.ts';
import type { Operation } from '../../protocol/routes.ts';
import type { Snapshot } from '../../protocol/snapshot.ts';
import type { State } from '../../protocol/state.ts';
import { type Caller, ownerOf } from '../http/auth.ts';
import { readBody } from '../http/body.ts';
import { short } from '../http/errors.ts';
import { jsonResponse } from '../http/json-response.ts';
import { checkCall, openAgentCall, type RequestContext } from '../http/server-context.ts';
import {
  type Conversation,
  findConversation,
  recordsOf,
  saveMessages,
  unknownConversation,
} from './conversation.ts';
import { badRequest, unknownId } from './errors.ts';
import { toMessages } from './input.ts';
import { conversationItems, type Item, turnsOf } from './items.ts';
import { fullStoreOf, type OpenAiServer } from './openai-server.ts';
import { checkAllowed } from './settings.ts';
import {
  conversationChange,
  conversationRequest,
  type InputItem,
  itemsRequest,
  pageOf,
} from './shapes.ts';

/** `POST /conversations`. */
export async function createConversation(
  openai: OpenAiServer,
  c: RequestContext,
): Promise<Response> {
  const { serverContext } = openai;
  const { items, metadata } = await readBody(c, conversationRequest, {
    what: 'conversation',
    ...serverContext,
  });
  const caller = c.get('caller');
  const id = `conv_${uuidv7(serverContext.clock.now())}`;
  await checkCall(serverContext, {
    request: c.req.raw,
    caller,
    operation: 'updateSession',
    sessionId: id,
  });
  const { store, scope } = recordsOf(openai, caller);
  const messages = readMessages(openai, items ?? []);
  const newId = (): string => uuidv7(serverContext.clock.now());
  await saveMessages(store, scope, { messages, sessionId: id }, { newId });
  if (metadata) await store.timeline.updateSession(scope, id, { metadata });
  return jsonResponse(toConversation(await findConversation(openai, caller, id)));
}

/** `GET /conversations/:conversation`. */
export async function getConversation(openai: OpenAiServer, c: RequestContext): Promise<Response> {
  return jsonResponse(toConversation(await openConversation(openai, c, 'getSession')));
}

/** `POST /conversations/:conversation`: sets the metadata. */
export async function updateConversation(
  openai: OpenAiServer,
  c: RequestContext,
): Promise<Response> {
  const { metadata } = await readBody(c, conversationChange, {
    what: 'change of a conversation',
    ...openai.serverContext,
  });
  const found = await openConversation(openai, c, 'updateSession');
  const { store, scope } = homeOf(openai, c.get('caller'), found);
  await store.timeline.updateSession(scope, found.id, { metadata });
  return jsonResponse(toConversation(await findConversation(openai, c.get('caller'), found.id)));
}

/** `DELETE /conversations/:conversation`: deletes it with all its responses. */
export async function deleteConversation(
  openai: OpenAiServer,
  c: RequestContext,
): Promise<Response> {
  const { id, agent, record } = await openConversation(openai, c, 'deleteSession');
  const caller = c.get('caller');
  if (agent) await agent.deleteSession(id, ownerOf(caller));
  const { store, scope } = recordsOf(openai, caller);
  if (record) await store.timeline.deleteSession(scope, id);
  return jsonResponse({ id, object: 'conversation.deleted', deleted: true });
}

/** `GET /conversations/:conversation/items`. */
export async function listItems(openai: OpenAiServer, c: RequestContext): Promise<Response> {
  const found = await openConversation(openai, c, 'getSession');
  return jsonResponse(pageOf(c, await itemsOf(openai, c.get('caller'), found)));
}

/** `GET /conversations/:conversation/items/:item`. */
export async function getItem(openai: OpenAiServer, c: RequestContext): Promise<Response> {
  const found = await openConversation(openai, c, 'getSession');
  const id = c.req.param('item') ?? '';
  const item = (await itemsOf(openai, c.get('caller'), found)).find((each) => each.id === id);
  if (!item) throw unknownId(`There is no item ${short(id)} here.`, 'item_not_found');
  return jsonResponse(item);
}

/** `DELETE /conversations/:conversation/items/:item`. */
export async function deleteItem(openai: OpenAiServer, c: RequestContext): Promise<Response> {
  await openConversation(openai, c, 'deleteSession');
  throw badRequest(
    'Items cannot be deleted: responses share the messages before them. Continue from an earlier response with previous_response_id, or delete the conversation.',
    { code: 'unsupported_operation' },
  );
}

/** `POST /conversations/:conversation/items`: adds messages, as a snapshot. */
export async function createItems(openai: OpenAiServer, c: RequestContext): Promise<Response> {
  const { items } = await readBody(c, itemsRequest, { what: 'request', ...openai.serverContext });
  const messages = readMessages(openai, items);
  const caller = c.get('caller');
  const found = await openConversation(openai, c, 'runTurn');
  const { store, scope } = homeOf(openai, caller, found);
  const head = await store.getSnapshot(scope, { sessionId: found.id });
  if (pendingInterrupts(head?.state?.messages ?? []).length > 0) {
    throw badRequest(
      'The conversation waits for the output of a function call. Answer it with POST /responses first.',
      { param: 'items', code: 'function_call_output_expected' },
    );
  }
  const newId = (): string => uuidv7(openai.serverContext.clock.now());
  const added = await saveMessages(
    store,
    scope,
    { messages, parent: head, sessionId: found.id },
    { newId },
  );
  const all = await itemsOf(openai, caller, found);
  const data = all.filter(({ id }) => id.includes(`_${added}_`));
  return jsonResponse({
    object: 'list',
    data,
    first_id: data[0]?.id ?? null,
    last_id: data.at(-1)?.id ?? null,
    has_more: false,
  });
}

function readMessages({ options }: OpenAiServer, items: readonly InputItem[]): readonly Message[] {
  const messages = toMessages(items);
  if (messages.some(({ role }) => role === 'model')) checkAllowed(options, 'history', 'items');
  if (messages.some(({ role }) => role === 'system')) {
    checkAllowed(options, 'instructions', 'items');
  }
  return messages;
}

async function openConversation(
  openai: OpenAiServer,
  c: RequestContext,
  operation: Operation,
): Promise<Conversation> {
  const id = c.req.param('conversation') ?? '';
  const caller = c.get('caller');
  const found = await findConversation(openai, caller, id);
  const { agent } = found;
  const subject = { operation, sessionId: id };
  if (agent) await openAgentCall(openai.serverContext, c, { agent, ...subject });
  else await checkCall(openai.serverContext, { request: c.req.raw, caller, ...subject });
  return found;
}

/** Where the messages of a conversation are. */
function homeOf(
  openai: OpenAiServer,
  caller: Caller,
  { id, agent }: Conversation,
): ReturnType<typeof recordsOf> {
  if (!agent) return recordsOf(openai, caller);
  const store = fullStoreOf(agent);
  if (!store) throw unknownConversation(id);
  return { store, scope: { agent: agent.name, ...ownerOf(caller) } };
}

async function itemsOf(
  openai: OpenAiServer,
  caller: Caller,
  found: Conversation,
): Promise<readonly Item[]> {
  const { id, agent } = found;
  let head: Pick<Snapshot, 'snapshotId' | 'state'> | undefined;
  // The agent decides what of its state may leave.
  if (agent)
    head = (await agent.getSnapshot({ sessionId: id }, ownerOf(caller))) as Snapshot | undefined;
  else {
    const { store, scope } = recordsOf(openai, caller);
    head = await store.getSnapshot(scope, { sessionId: id });
  }
  const { messages = [] } = (head?.state as State | undefined) ?? {};
  return conversationItems(turnsOf(messages, head?.snapshotId ?? ''));
}

function toConversation({ id, record, session }: Conversation): object {
  const { createdAt = '', metadata } = session ?? record ?? {};
  return {
    id,
    object: 'conversation',
    created_at: Math.floor(Date.parse(record?.createdAt ?? createdAt) / 1000),
    metadata: (session?.metadata ?? record?.metadata ?? metadata ?? {}) as JsonObject,
  };
}
