import type { Agent } from '../../agent/spec/agent.ts';
import type { State } from '../../protocol/state.ts';
import type { Init } from '../../protocol/turn.ts';
import { short } from '../http/errors.ts';
import { type OpenCall, openAgentCall, type RequestContext } from '../http/server-context.ts';
import { findConversation, prepareSession, seedSession } from './conversation.ts';
import { badRequest, unknownId } from './errors.ts';
import { snapshotOfResponse, toResponseId } from './ids.ts';
import type { ReadInput } from './input.ts';
import { hasStore, type OpenAiServer, stateWith, toState } from './openai-server.ts';
import type { StoredRequest } from './response.ts';
import type { CreateRequest } from './shapes.ts';

/** Where a turn starts. */
export interface Start {
  readonly open: OpenCall;
  readonly init: Init;
  /** The same, as the response says it. */
  readonly place: Pick<StoredRequest, 'conversation' | 'previous_response_id'>;
}

interface StartRequest {
  readonly agent: Agent;
  readonly body: CreateRequest;
  readonly read: ReadInput;
  readonly isHeld: boolean;
}

/** Finds where a turn starts, and asks whether its caller may start it there. */
export async function findStart(
  openai: OpenAiServer,
  c: RequestContext,
  request: StartRequest,
): Promise<Start> {
  if (request.isHeld) return await heldStart(openai, c, request);
  const { body, read } = request;
  if (read.heldState !== undefined) {
    throw badRequest(
      'The input has the state of a conversation that is not stored. Send store: false with it.',
      { param: 'store' },
    );
  }
  const conversation =
    typeof body.conversation === 'string' ? body.conversation : body.conversation?.id;
  const previous = body.previous_response_id ?? undefined;
  if (conversation === undefined) return await responseStart(openai, c, request, previous);
  if (previous === undefined) return await conversationStart(openai, c, request, conversation);
  throw badRequest('Send either conversation or previous_response_id, not both.', {
    param: 'previous_response_id',
  });
}

async function heldStart(
  openai: OpenAiServer,
  c: RequestContext,
  { agent, body, read }: StartRequest,
): Promise<Start> {
  const why = hasStore(agent)
    ? 'With store: false,'
    : `The model ${short(agent.name)} stores nothing:`;
  for (const name of ['background', 'conversation', 'previous_response_id'] as const) {
    const value = body[name];
    if (value === undefined || value === null || value === false) continue;
    throw badRequest(
      `${why} ${name} cannot be used. To continue a conversation, send back all items of its last response.`,
      { param: name, code: 'unsupported_parameter' },
    );
  }
  if (read.snapshotId !== undefined) {
    throw badRequest(
      `${why} the input needs the reasoning item of the last response, which holds the state. Send back all items of its output.`,
      { param: 'input', code: 'missing_encrypted_content' },
    );
  }
  const held = openai.held(agent);
  const state = await startState(openai, c, held, read);
  const open = await openAgentCall(openai.serverContext, c, {
    agent: held,
    operation: 'runTurn',
    sessionId: state?.sessionId,
  });
  return { open, init: state ? { state } : {}, place: {} };
}

async function startState(
  { serverContext }: OpenAiServer,
  c: RequestContext,
  held: Agent,
  { heldState, history }: ReadInput,
): Promise<State | undefined> {
  if (heldState !== undefined) return await toState(heldState, serverContext);
  if (history.length === 0) return undefined;
  return stateWith(held, history, c.get('caller').principal);
}

async function conversationStart(
  openai: OpenAiServer,
  c: RequestContext,
  { agent }: StartRequest,
  conversation: string,
): Promise<Start> {
  const open = await openAgentCall(openai.serverContext, c, {
    agent,
    operation: 'runTurn',
    sessionId: conversation,
  });
  const found = await findConversation(openai, open.caller, conversation);
  await prepareSession(found, open, openai);
  return {
    open,
    init: { sessionId: conversation },
    place: { conversation: { id: conversation } },
  };
}

async function responseStart(
  openai: OpenAiServer,
  c: RequestContext,
  { agent, read }: StartRequest,
  previous: string | undefined,
): Promise<Start> {
  const { serverContext } = openai;
  const snapshotId = previous === undefined ? read.snapshotId : snapshotOfResponse(previous);
  if (previous === undefined && snapshotId === undefined) {
    const open = await openAgentCall(serverContext, c, { agent, operation: 'runTurn' });
    if (read.history.length === 0) return { open, init: {}, place: {} };
    const seeded = await seedSession(open, { messages: read.history });
    return { open, init: { snapshotId: seeded }, place: {} };
  }
  const sessionId =
    snapshotId === undefined
      ? undefined
      : await serverContext.sessionOf(agent, snapshotId, c.get('caller'));
  if (snapshotId === undefined || sessionId === undefined) {
    throw unknownId(
      `There is no response ${short(previous ?? toResponseId(snapshotId ?? ''))} of the model ${short(agent.name)} here.`,
      'previous_response_not_found',
      previous === undefined ? 'input' : 'previous_response_id',
    );
  }
  const open = await openAgentCall(serverContext, c, { agent, operation: 'runTurn', snapshotId });
  return {
    open,
    init: { snapshotId },
    place: { previous_response_id: toResponseId(snapshotId) },
  };
}
