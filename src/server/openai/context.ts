import type { Agent } from '../../agent/contract/agent.ts';
import { estimateTokens } from '../../generate/answer/history.ts';
import type { Message } from '../../protocol/message.ts';
import type { State } from '../../protocol/state.ts';
import { jsonResponse } from '../http/answer.ts';
import { readBody } from '../http/body.ts';
import { toolsOf } from '../http/served-app.ts';
import { openAgentCall } from '../http/server-context.ts';
import { findConversation, firstMessages } from './conversation.ts';
import { badRequest } from './errors.ts';
import { type ReadInput, readInput } from './input.ts';
import {
  conversationItems,
  createdAt,
  type Item,
  toItemId,
  toResponseId,
  turnsIn,
} from './items.ts';
import { type Handler, type OpenAiRequest, toState } from './openai-server.ts';
import { agentOf } from './request.ts';
import { toUsage } from './response.ts';
import type { OpenAiRoute } from './routes.ts';
import { type CreateRequest, createRequest } from './shapes.ts';
import { knownSnapshot, placeIn } from './start.ts';

export const contextHandlers = {
  /** An estimate: only the provider of the agent's model can count. */
  async countInputTokens(request) {
    const body = await readBody(request.c, createRequest, 'request');
    const { agent, read, messages } = await readContext(request, body);
    const tools = [...(await toolsOf(agent)), ...(body.tools ?? [])];
    const asked: Message = { role: 'user', content: [...read.content] };
    const told = [body.instructions ?? '', ...read.instructions].map((text) => ({ text }));
    const counted = [
      ...messages,
      ...read.history,
      asked,
      { role: 'system' as const, content: told },
    ];
    const tokens = counted.reduce((sum, message) => sum + estimateTokens(message), 0);
    const input_tokens = tokens + Math.ceil(JSON.stringify(tools).length / 4);
    return jsonResponse({ object: 'response.input_tokens', input_tokens });
  },

  /**
   * A conversation as the messages of the user and one item that represents all of it. The state stays as it is: what the model
   * sees of it is decided by the agent's `compact`.
   */
  async compactResponse(request) {
    const body = await readBody(request.c, createRequest, 'request');
    const { read, messages, snapshotId, heldState } = await readContext(request, body);
    const id = snapshotId ?? request.newId();
    if (snapshotId === undefined && heldState === undefined) {
      throw badRequest(
        'There is no conversation to compact. Name it with previous_response_id, or send the items of its last response.',
        { param: 'input', code: 'missing_parameter' },
      );
    }
    const users = conversationItems(turnsIn(messages, id)).filter(({ role }) => role === 'user');
    const compaction: Item = {
      id: snapshotId === undefined ? `cmp_${id}` : toItemId('cmp', id, 0),
      type: 'compaction',
      encrypted_content: heldState ?? toResponseId(id),
    };
    // They have no answer yet, so they stay behind the item that represents all before them.
    const added = read.content.length > 0 ? inputAfter(body) : [];
    return jsonResponse({
      id: toResponseId(request.newId()),
      object: 'response.compaction',
      created_at: createdAt(request.newId()),
      output: [...users, compaction, ...added],
      usage: toUsage({}),
    });
  },
} satisfies Partial<Record<OpenAiRoute, Handler>>;

function inputAfter({ input }: CreateRequest): readonly object[] {
  if (typeof input === 'string') return [{ type: 'message', role: 'user', content: input }];
  const items = input ?? [];
  const from = items.findLastIndex(({ role }) => role !== 'user') + 1;
  return items.slice(from);
}

interface Context {
  readonly agent: Agent;
  readonly read: ReadInput;
  /** The conversation that the request continues. */
  readonly messages: readonly Message[];
  readonly snapshotId?: string | undefined;
  readonly heldState?: string | undefined;
}

/** Reads the conversation that a request names, without a turn. */
async function readContext(request: OpenAiRequest, body: CreateRequest): Promise<Context> {
  const { c } = request;
  const agent = agentOf(request, body.model);
  const read = readInput(body.input ?? '');
  const { heldState } = read;
  const subject = { agent, operation: 'getSnapshot' } as const;
  if (heldState !== undefined) {
    await openAgentCall(c, subject);
    const { messages = [] } = await toState(heldState, c);
    return { agent, read, messages, heldState };
  }
  const { conversation: sessionId, previous } = placeIn(body);
  if (sessionId !== undefined) {
    const open = await openAgentCall(c, { ...subject, sessionId });
    const found = await findConversation(request, open.caller, sessionId);
    const messages = await firstMessages(found, open, request);
    if (!found.session) return { agent, read, messages };
    return { agent, read, ...contextOf(await agent.getSnapshot({ sessionId }, open.options)) };
  }
  const snapshotId = await knownSnapshot(request, agent, { previous, read });
  const { options } = await openAgentCall(c, { ...subject, snapshotId });
  if (snapshotId === undefined) return { agent, read, messages: [] };
  return { agent, read, ...contextOf(await agent.getSnapshot({ snapshotId }, options)) };
}

function contextOf(
  snapshot: { readonly snapshotId: string; readonly state?: unknown } | undefined,
): Pick<Context, 'messages' | 'snapshotId'> {
  const { messages = [] } = (snapshot?.state as State | undefined) ?? {};
  return { messages, snapshotId: snapshot?.snapshotId };
}
