import type { Agent } from '../../agent/contract/agent.ts';
import type { State } from '../../protocol/state.ts';
import type { Init } from '../../protocol/turn.ts';
import { short } from '../http/answer.ts';
import { hasStore } from '../http/served-app.ts';
import { type OpenCall, openAgentCall } from '../http/server-context.ts';
import { findConversation, prepareSession, seedSession } from './conversation.ts';
import { badRequest, unknownId } from './errors.ts';
import type { ReadInput } from './input.ts';
import { snapshotOfResponse, toResponseId } from './items.ts';
import { type OpenAiRequest, stateWith, toState } from './openai-server.ts';
import type { StoredRequest } from './response.ts';
import type { CreateRequest } from './shapes.ts';

export interface Start {
  readonly open: OpenCall;
  readonly init: Init;
  /** The same, as the response says it. */
  readonly place: Pick<StoredRequest, 'conversation' | 'previous_response_id'>;
}

export interface StartRequest {
  readonly agent: Agent;
  readonly body: CreateRequest;
  readonly read: ReadInput;
  readonly isHeld: boolean;
}

/** Finds where a turn starts, and asks whether its caller may start it there. */
export async function findStart(openai: OpenAiRequest, request: StartRequest): Promise<Start> {
  if (request.isHeld) return await heldStart(openai, request);
  const { body, read } = request;
  if (read.heldState !== undefined) {
    throw badRequest(
      'The input has the state of a conversation that is not stored. Send store: false with it.',
      { param: 'store' },
    );
  }
  const { conversation, previous } = placeIn(body);
  if (conversation === undefined) return await responseStart(openai, request, previous);
  return await conversationStart(openai, request, conversation);
}

/** The conversation or the response that a request continues. */
export function placeIn({ conversation: given, previous_response_id: before }: CreateRequest): {
  readonly conversation: string | undefined;
  readonly previous: string | undefined;
} {
  const conversation = typeof given === 'string' ? given : given?.id;
  const previous = before ?? undefined;
  if (conversation === undefined || previous === undefined) return { conversation, previous };
  throw badRequest('Send either conversation or previous_response_id, not both.', {
    param: 'previous_response_id',
  });
}

async function heldStart(
  openai: OpenAiRequest,
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
  const { heldState, history } = read;
  let state: State | undefined;
  if (heldState !== undefined) state = await toState(heldState, openai.c);
  else if (history.length > 0) state = stateWith(held, history, openai.caller.principal);
  const subject = { agent: held, operation: 'runTurn', sessionId: state?.sessionId } as const;
  const open = await openAgentCall(openai.c, subject);
  return { open, init: state ? { state } : {}, place: {} };
}

async function conversationStart(
  openai: OpenAiRequest,
  { agent }: StartRequest,
  conversation: string,
): Promise<Start> {
  const subject = { agent, operation: 'runTurn', sessionId: conversation } as const;
  const open = await openAgentCall(openai.c, subject);
  const found = await findConversation(openai, open.caller, conversation);
  await prepareSession(found, open, openai);
  const place = { conversation: { id: conversation } };
  return { open, init: { sessionId: conversation }, place };
}

async function responseStart(
  openai: OpenAiRequest,
  { agent, read }: StartRequest,
  previous: string | undefined,
): Promise<Start> {
  const { c } = openai;
  const snapshotId = await knownSnapshot(openai, agent, { previous, read });
  if (snapshotId === undefined) {
    const open = await openAgentCall(c, { agent, operation: 'runTurn' });
    if (read.history.length === 0) return { open, init: {}, place: {} };
    const seeded = await seedSession(open, { messages: read.history });
    return { open, init: { snapshotId: seeded }, place: {} };
  }
  const open = await openAgentCall(c, { agent, operation: 'runTurn', snapshotId });
  const place = { previous_response_id: toResponseId(snapshotId) };
  return { open, init: { snapshotId }, place };
}

/** The snapshot that a request names, by its response or by an item of it; one of another owner is unknown. */
export async function knownSnapshot(
  { c, caller }: OpenAiRequest,
  agent: Agent,
  { previous, read }: { readonly previous: string | undefined; readonly read: ReadInput },
): Promise<string | undefined> {
  const snapshotId = previous === undefined ? read.snapshotId : snapshotOfResponse(previous);
  if (previous === undefined && snapshotId === undefined) return undefined;
  const { sessionOf } = c.get('server');
  if (snapshotId !== undefined && (await sessionOf(agent, snapshotId, caller)) !== undefined) {
    return snapshotId;
  }
  throw unknownId(
    `There is no response ${short(previous ?? toResponseId(snapshotId ?? ''))} of the model ${short(agent.name)} here.`,
    'previous_response_not_found',
    previous === undefined ? 'input' : 'previous_response_id',
  );
}
