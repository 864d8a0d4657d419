import type { Agent } from '../../agent/contract/agent.ts';
import { internalsOf } from '../../agent/define/create-agent.ts';
import { isWaymarkError, WaymarkError } from '../../core/error.ts';
import { isJsonObject } from '../../core/json/json.ts';
import { httpStatusOf, jsonResponse, short } from '../http/answer.ts';
import { ownerOf } from '../http/auth.ts';
import { readBody } from '../http/body.ts';
import { hasStore, toolsOf } from '../http/served-app.ts';
import { type OpenCall, openAgentCall } from '../http/server-context.ts';
import { createViewers, runAfterStop } from '../stream/run-after-stop.ts';
import { acceptedFeed, sseFormat, sseJson, withStreamSlot } from '../stream/stream-response.ts';
import { beginTurn } from '../stream/turn.ts';
import { type ChatChunk, ChatEncoder, done, failureOf, toCompletion } from './chat-encode.ts';
import { readMessages, refOf, type Step, toInput } from './chat-messages.ts';
import { findPlace, hasAssistant, type NamedSession, sessionOf } from './chat-session.ts';
import {
  type ChatRequest,
  chatParam,
  chatRequest,
  samplingOf,
  toCreateRequest,
  withoutNeutral,
} from './chat-shapes.ts';
import { seedSession } from './conversation.ts';
import { badRequest, toOpenAiError } from './errors.ts';
import type { ReadInput } from './input.ts';
import { snapshotOfCall, toCallId } from './items.ts';
import type { Handler, OpenAiRequest } from './openai-server.ts';
import { agentOf, checkInput, openTurn, type TurnRequest } from './request.ts';
import { checkParameters } from './settings.ts';
import { findStart, type Start } from './start.ts';
import { ResponseStream } from './stream.ts';

/** `POST /chat/completions`: a turn of an agent. */
export function createChatHandler(): Handler {
  const viewers = createViewers();
  return async (openai) => {
    const body = withoutNeutral(await readBody(openai.c, chatRequest, 'request'));
    try {
      checkParameters(body, openai.options, chatRequest.entries);
      const agent = agentOf(openai, body.model);
      const { instructions, steps } = readMessages(body.messages);
      const chat = { agent, body, steps, instructions, sampling: samplingOf(body) };
      const session = sessionOf(body, steps);
      if (!session || !isKept(agent, body)) {
        return await runTurn(openai, await openAlone(openai, chat), body, viewers);
      }
      const subject = { agent, operation: 'runTurn', sessionId: session.sessionId } as const;
      const open = await openAgentCall(openai.c, subject);
      return await runAfterStop(openai.c, open, viewers, async () => {
        // Read for each attempt: the turn that was in the way is part of the session afterwards.
        const turn = await openInSession(openai, chat, { open, session });
        return await runTurn(openai, turn, body, viewers);
      });
    } catch (error) {
      throw withChatParam(error);
    }
  };
}

interface Chat extends Pick<ReadInput, 'instructions' | 'sampling'> {
  readonly agent: Agent;
  readonly body: ChatRequest;
  readonly steps: readonly Step[];
}

/** Whether a session can keep the conversation; many clients send `user` with each request, so it alone is no mistake. */
function isKept(agent: Agent, { metadata }: ChatRequest): boolean {
  if (hasStore(agent)) return true;
  if (metadata?.session_id === undefined) return false;
  throw badRequest(
    `The model ${short(agent.name)} stores nothing, so it has no sessions. Leave out metadata.session_id, and send the whole conversation.`,
    { param: 'metadata.session_id', code: 'unsupported_parameter' },
  );
}

/** A request that has all of its conversation itself. */
async function openAlone(
  openai: OpenAiRequest,
  { agent, body, steps, ...asked }: Chat,
): Promise<TurnRequest> {
  const isHeld = body.store !== true || !hasStore(agent);
  const outputs = steps.at(-1)?.role === 'tool' ? (steps.at(-1)?.calls ?? []) : [];
  // The ids of calls in a stored conversation name the snapshot that waits for their outputs.
  const snapshotId = isHeld ? undefined : snapshotOfCall(outputs[0]?.id);
  const input = toInput(snapshotId === undefined ? steps : steps.slice(-2));
  const history = snapshotId === undefined ? input.history : [];
  const read = { ...asked, ...input, history, snapshotId };
  checkInput(openai, read, 'messages');
  if (isHeld && outputs.length > 0) await checkCallsOfCaller(agent, steps.at(-2));
  const request = { agent, body: toCreateRequest(body), read, isHeld };
  return await openTurn(openai, request, await findStart(openai, request));
}

/** A caller can change the calls that it sends back, so they approve nothing that the agent's own tools do. */
async function checkCallsOfCaller(agent: Agent, asked: Step | undefined): Promise<void> {
  const own = await toolsOf(agent);
  const call = asked?.calls.find(({ name }) => own.some((tool) => tool.name === name));
  if (call === undefined) return;
  throw badRequest(
    `The tool ${short(call.name ?? '')} runs on the server and waits for your approval, which needs a stored conversation. Send metadata.session_id, user, or store: true from the first message on.`,
    { param: 'messages', code: 'unsupported_value' },
  );
}

/** A request of a conversation that the server has: what is new counts. */
async function openInSession(
  openai: OpenAiRequest,
  { agent, body, steps, ...asked }: Chat,
  { open, session }: { readonly open: OpenCall; readonly session: NamedSession },
): Promise<TurnRequest> {
  const { init, rest } = await findPlace(agent, session, steps, open.options);
  const isTrusted = openai.options.allow?.includes('history') === true;
  const isSeeded = isTrusted && hasAssistant(rest);
  const first = rest.findIndex(({ role }) => role !== 'tool');
  const read = { ...asked, ...toInput(isSeeded ? rest.slice(first) : newIn(rest)) };
  checkInput(openai, read, 'messages');
  if (isSeeded && read.outputs.length > 0) await checkCallsOfCaller(agent, rest.at(-2));
  let request = { agent, body: toCreateRequest(body), read, isHeld: false };
  let start: Start = { open, init, place: {} };
  if (read.history.length > 0) {
    const { store } = internalsOf(agent).spec;
    const scope = { agent: agent.name, ...ownerOf(open.caller) };
    const { sessionId = session.sessionId, snapshotId, from } = init;
    const lookup = snapshotId === undefined ? { sessionId } : { snapshotId };
    const parent = from === null ? undefined : await store?.getSnapshot(scope, lookup);
    const seeded = await seedSession(open, { messages: read.history, sessionId, parent });
    start = { ...start, init: { sessionId, snapshotId: seeded } };
    // The stored calls are named after the snapshot that was added.
    const outputs = read.outputs.map(({ callId, output }) => {
      return { callId: toCallId(seeded, { toolName: refOf(callId) }), output };
    });
    request = { ...request, read: { ...read, outputs } };
  }
  return await openTurn(openai, request, start);
}

/** The messages of the user, or outputs of calls, behind those that the server has. Answers that it does not have are passed over. */
function newIn(rest: readonly Step[]): readonly Step[] {
  const last = rest.at(-1);
  if (last?.role !== 'user') return rest.slice(-1);
  const content = rest.flatMap((step) => (step.role === 'user' ? step.content : []));
  return [{ ...last, content }];
}

async function runTurn(
  { c, newId }: OpenAiRequest,
  { agent, caller, options, init, input, echo, isHeld }: TurnRequest,
  { stream: isStream, stream_options: streamOptions, response_format: format, tools }: ChatRequest,
  viewers: ReturnType<typeof createViewers>,
): Promise<Response> {
  // A model that calls tools may say something before the answer that has the format.
  const isLastOnly =
    (format?.type ?? 'text') !== 'text' && [...(tools ?? []), ...(await toolsOf(agent))].length > 0;
  return await withStreamSlot(c, async (slot) => {
    const turn = beginTurn(c, {
      agent,
      caller,
      init,
      input,
      reader: slot.signal,
      resumable: isStream !== true,
    });
    const response = new ResponseStream(newId, { agent, options, echo, isHeld });
    if (isStream !== true) {
      const whole = await response.whole(viewers.watching(turn), slot.signal);
      const failure = failureOf(whole);
      if (failure === undefined) return jsonResponse(toCompletion(whole, isLastOnly));
      // The SDKs repeat requests that fail with this status, and would run the turn again.
      const headers = { 'x-should-retry': 'false' };
      const error = toOpenAiError(failure);
      return jsonResponse({ error }, { status: httpStatusOf(failure), headers });
    }
    const feed = await acceptedFeed(c, turn);
    const includeUsage = streamOptions?.include_usage === true;
    const encoder = new ChatEncoder({ model: agent.name, includeUsage, isLastOnly });
    const chunks = async function* (): AsyncGenerator<readonly ChatChunk[]> {
      for await (const events of response.events(viewers.watching(feed))) {
        yield events.flatMap((event) => encoder.encode(event));
      }
    };
    return slot.respond(chunks(), chatFormat, { isGathered: true });
  });
}

const chatFormat = sseFormat<ChatChunk>((chunk) =>
  typeof chunk === 'string' ? `data: ${done}\n\n` : sseJson(chunk),
);

/** Names the field of an error as the client sent it. */
function withChatParam(error: unknown): unknown {
  if (!isWaymarkError(error) || !isJsonObject(error.details)) return error;
  const { param, ...rest } = error.details;
  if (typeof param !== 'string') return error;
  const details = { ...rest, param: chatParam(param) };
  const { status, message, publicMessage } = error;
  return new WaymarkError(status, message, { cause: error, details, publicMessage });
}
