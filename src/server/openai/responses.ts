import type { LoadedSnapshot, WireTypes } from '../../api/types.ts';
import type { State } from '../../protocol/state.ts';
import { ownerOf } from '../http/auth.ts';
import { short } from '../http/errors.ts';
import { jsonResponse } from '../http/json-response.ts';
import { logFault } from '../http/log.ts';
import type { RequestContext } from '../http/server-context.ts';
import { runFeed, startingWith, throwFirstError } from '../stream/feed.ts';
import { acquireStreamSlot, waitForAcceptance } from '../stream/stream-response.ts';
import { badRequest } from './errors.ts';
import { toResponseId } from './ids.ts';
import { inputItems, outputItems, type TurnMessages, turnsOf } from './items.ts';
import {
  type OpenAiServer,
  openResponse,
  type ResponseCall,
  unknownResponse,
} from './openai-server.ts';
import {
  finalStatus,
  type ResponseObject,
  type ResponseStatus,
  requestOf,
  toResponse,
} from './response.ts';
import { pageOf } from './shapes.ts';
import { ResponseStream, responseFormat } from './stream.ts';

/** `GET /responses/:response`, as it is or as the events that led to it. */
export async function getResponse(openai: OpenAiServer, c: RequestContext): Promise<Response> {
  if (c.req.query('stream') === 'true') return await streamResponse(openai, c);
  const call = await openResponse(openai, c, 'getSnapshot');
  return jsonResponse(toStored(call, await readSnapshot(call)));
}

/** `POST /responses/:response/cancel`: stops a turn, which keeps its partial answer. */
export async function cancelResponse(openai: OpenAiServer, c: RequestContext): Promise<Response> {
  const call = await openResponse(openai, c, 'abort');
  const { agent, snapshotId, options } = call;
  const status = await agent.abort(snapshotId, options);
  if (status === undefined) throw unknownResponse(toResponseId(snapshotId));
  // An attached turn has stopped when its process has saved the partial answer.
  if (status === 'pending') await agent.wait(snapshotId, options);
  return jsonResponse(toStored(call, await readSnapshot(call)));
}

/** `DELETE /responses/:response`: deletes the session of a response that stands alone. */
export async function deleteResponse(openai: OpenAiServer, c: RequestContext): Promise<Response> {
  const call = await openResponse(openai, c, 'deleteSession');
  const { agent, snapshotId, options } = call;
  const { sessionId } = await readSnapshot(call);
  const page = await agent.listSnapshots(sessionId, {
    ...options,
    includeOrphaned: true,
    limit: 50,
  });
  const others = page.items.filter((other) => other.snapshotId !== snapshotId);
  if (others.length > 0 || page.next !== undefined) {
    throw badRequest(
      `Other responses continue this one or come before it, and share its messages. Delete the whole conversation: DELETE /openai/v1/conversations/${sessionId}`,
      { code: 'response_in_use' },
    );
  }
  await agent.deleteSession(sessionId, options);
  return jsonResponse({ id: toResponseId(snapshotId), object: 'response', deleted: true });
}

/** `GET /responses/:response/input_items`. */
export async function listInputItems(openai: OpenAiServer, c: RequestContext): Promise<Response> {
  const call = await openResponse(openai, c, 'getSnapshot');
  const { turn, before } = turnOf(await readSnapshot(call));
  return jsonResponse(pageOf(c, inputItems(turn, before)));
}

/** The events of a response, past and live. */
async function streamResponse(openai: OpenAiServer, c: RequestContext): Promise<Response> {
  const { serverContext } = openai;
  const after = startingAfter(c);
  const call = await openResponse(openai, c, 'watch');
  const { agent, caller, options, snapshotId } = call;
  const { turn } = turnOf(await readSnapshot(call));
  const echo = requestOf(turn.messages);
  const slot = acquireStreamSlot(serverContext, c, { own: false });
  const stream = new ResponseStream(() => snapshotId, {
    agent,
    options,
    echo,
    isHeld: false,
  });
  // From the beginning: the numbers of the events are counted, and each one is the same every time.
  const feed = runFeed(agent, snapshotId, {
    ...ownerOf(caller),
    reader: slot.signal,
    onFault: (error) => logFault(serverContext, error, c.get('logged')),
  });
  const first = feed.next();
  try {
    await waitForAcceptance(serverContext, first.then(throwFirstError), 250);
  } catch (error) {
    slot.leave();
    throw error;
  }
  const events = async function* (): ReturnType<typeof stream.events> {
    const { value: batch } = await first;
    // The store keeps the events of a run for a while after its end.
    const isForgotten = batch?.[0]?.type === 'output';
    if (isForgotten) yield* stream.told(toStored(call, await readSnapshot(call)), after);
    else yield* stream.events(startingWith(first, feed), after);
  };
  return slot.respond(events(), responseFormat);
}

function startingAfter(c: RequestContext): number {
  const text = c.req.query('starting_after');
  if (text === undefined || text === '') return -1;
  if (/^\d{1,9}$/.test(text)) return Number(text);
  throw badRequest(`starting_after must be the sequence_number of an event, not ${short(text)}.`, {
    param: 'starting_after',
  });
}

/** The snapshot that a response is. */
type Stored = LoadedSnapshot<WireTypes>;

/** Reads the snapshot of a response. */
async function readSnapshot({ agent, snapshotId, options }: ResponseCall): Promise<Stored> {
  const snapshot = await agent.getSnapshot({ snapshotId }, options);
  if (!snapshot) throw unknownResponse(toResponseId(snapshotId));
  return snapshot;
}

/** The messages of a response, and those of the turn before it. */
function turnOf({ snapshotId, state }: Stored): {
  readonly turn: TurnMessages;
  readonly before: TurnMessages | undefined;
} {
  const turns = turnsOf((state as State | undefined)?.messages ?? [], snapshotId);
  const last = turns.at(-1);
  // A turn that has added nothing yet.
  if (last?.snapshotId !== snapshotId) return { turn: { snapshotId, messages: [] }, before: last };
  return { turn: last, before: turns.at(-2) };
}

/** A response as its snapshot tells it. */
function toStored({ agent }: ResponseCall, snapshot: Stored): ResponseObject {
  const { snapshotId, usage, error, finishReason, parentId } = snapshot;
  const { turn } = turnOf(snapshot);
  const request = requestOf(turn.messages);
  const previous =
    request.conversation === undefined && parentId !== undefined
      ? { previous_response_id: toResponseId(parentId) }
      : {};
  return toResponse(
    { snapshotId, model: agent.name, echo: { ...previous, ...request } },
    {
      status: statusOf(snapshot),
      output: outputItems(turn),
      usage,
      error,
      finishReason,
    },
  );
}

function statusOf({ status, finishReason }: Stored): ResponseStatus {
  switch (status) {
    case 'pending':
    // Its worker has died; another one takes over.
    case 'expired':
      return 'in_progress';
    case 'succeeded':
      return finalStatus(finishReason);
    case 'failed':
      return 'failed';
    case 'aborted':
      return 'cancelled';
  }
}
