import type { LoadedSnapshot, WireTypes } from '../../api/types.ts';
import type { State } from '../../protocol/state.ts';
import type { Init } from '../../protocol/turn.ts';
import { jsonResponse, short } from '../http/answer.ts';
import { readBody } from '../http/body.ts';
import { openAgentCall, type RequestContext } from '../http/server-context.ts';
import { runFeed, startingWith } from '../stream/feed.ts';
import { runningIn } from '../stream/run-after-stop.ts';
import { acceptedFeed, type StreamSlot, withStreamSlot } from '../stream/stream-response.ts';
import { beginTurn, startRun } from '../stream/turn.ts';
import { badRequest } from './errors.ts';
import { inputItems, outputItems, type TurnMessages, toResponseId, turnsIn } from './items.ts';
import {
  type Handler,
  type OpenAiRequest,
  openResponse,
  type ResponseCall,
  unknownResponse,
} from './openai-server.ts';
import { openRequest, type TurnRequest } from './request.ts';
import {
  finalStatus,
  type ResponseObject,
  type ResponseStatus,
  requestOf,
  toResponse,
} from './response.ts';
import type { OpenAiRoute } from './routes.ts';
import { createRequest, pageOf } from './shapes.ts';
import { ResponseStream, responseFormat } from './stream.ts';

export const responseHandlers = {
  /** The response as it is, or as the events that led to it. */
  async getResponse(request) {
    if (request.c.req.query('stream') === 'true') return await streamResponse(request);
    const call = await openResponse(request, 'getSnapshot');
    return jsonResponse(toStored(call, await readSnapshot(call)));
  },

  /** Stops a turn, which keeps its partial answer. */
  async cancelResponse(request) {
    const call = await openResponse(request, 'abort');
    const { agent, snapshotId, options } = call;
    const status = await agent.abort(snapshotId, options);
    if (status === undefined) throw unknownResponse(toResponseId(snapshotId));
    // An attached turn has stopped when its process has saved the partial answer.
    if (status === 'pending') await agent.wait(snapshotId, options);
    return jsonResponse(toStored(call, await readSnapshot(call)));
  },

  /** Deletes the session of a response that stands alone. */
  async deleteResponse(request) {
    const call = await openResponse(request, 'deleteSession');
    const { agent, snapshotId, options } = call;
    const { sessionId } = await readSnapshot(call);
    const all = { ...options, includeOrphaned: true, limit: 50 };
    const page = await agent.listSnapshots(sessionId, all);
    const others = page.items.filter((other) => other.snapshotId !== snapshotId);
    if (others.length > 0 || page.next !== undefined) {
      throw badRequest(
        `Other responses continue this one or come before it, and share its messages. Delete the whole conversation: DELETE /openai/v1/conversations/${sessionId}`,
        { code: 'response_in_use' },
      );
    }
    await agent.deleteSession(sessionId, options);
    return jsonResponse({ id: toResponseId(snapshotId), object: 'response', deleted: true });
  },

  async listInputItems(request) {
    const { turn, before } = turnOf(await readSnapshot(await openResponse(request, 'getSnapshot')));
    return jsonResponse(pageOf(request.c, inputItems(turn, before)));
  },
} satisfies Partial<Record<OpenAiRoute, Handler>>;

async function streamResponse(request: OpenAiRequest): Promise<Response> {
  const { c } = request;
  const after = startingAfter(c);
  const call = await openResponse(request, 'watch');
  const { agent, options, snapshotId } = call;
  const { turn } = turnOf(await readSnapshot(call));
  const echo = requestOf(turn.messages);
  const stream = new ResponseStream(() => snapshotId, { agent, options, echo, isHeld: false });
  const respond = async (slot: StreamSlot): Promise<Response> => {
    // From the beginning: the numbers of the events are counted, and each one is the same every time.
    const run = { runId: snapshotId, reader: slot.signal };
    const feed = await acceptedFeed(c, runFeed(c, call, run), 250);
    const events = async function* (): ReturnType<typeof stream.events> {
      const first = await feed.next();
      // The store keeps the events of a run for a while after its end.
      const isForgotten = first.value?.[0]?.type === 'output';
      if (isForgotten) yield* stream.told(toStored(call, await readSnapshot(call)), after);
      else yield* stream.events(startingWith(Promise.resolve(first), feed), after);
    };
    return slot.respond(events(), responseFormat);
  };
  return await withStreamSlot(c, respond, { own: false });
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
  const turns = turnsIn((state as State | undefined)?.messages ?? [], snapshotId);
  const last = turns.at(-1);
  // A turn that has added nothing yet.
  if (last?.snapshotId !== snapshotId) return { turn: { snapshotId, messages: [] }, before: last };
  return { turn: last, before: turns.at(-2) };
}

/** A response as its snapshot tells it. */
function toStored({ agent }: ResponseCall, snapshot: Stored): ResponseObject {
  const { snapshotId, usage, error, finishReason, parentId } = snapshot;
  const { turn } = turnOf(snapshot);
  const asked = requestOf(turn.messages);
  const isNamed = asked.conversation === undefined && parentId !== undefined;
  const previous = isNamed ? { previous_response_id: toResponseId(parentId) } : {};
  const subject = { snapshotId, model: agent.name, echo: { ...previous, ...asked } };
  const progress = { status: statusOf(snapshot), output: outputItems(turn) };
  return toResponse(subject, { ...progress, usage, error, finishReason });
}

function statusOf({ status, finishReason }: Stored): ResponseStatus {
  if (status === 'succeeded') return finalStatus(finishReason);
  if (status === 'aborted') return 'cancelled';
  // The worker of one that has expired has died; another one takes over.
  return status === 'failed' ? 'failed' : 'in_progress';
}

/** `POST /responses`: a turn of an agent. */
export async function createResponse(openai: OpenAiRequest): Promise<Response> {
  const body = await readBody(openai.c, createRequest, 'request');
  const request = await openRequest(openai, body);
  const isStream = body.stream === true;
  const run = body.background === true ? runInBackground : runTurn;
  try {
    return await run(openai, request, isStream);
  } catch (error) {
    const init = await branchElsewhere(openai, request, error);
    if (!init) throw error;
    return await run(openai, { ...request, init }, isStream);
  }
}

async function runTurn(
  { c, newId }: OpenAiRequest,
  { agent, caller, options, init, input, echo, isHeld }: TurnRequest,
  isStream: boolean,
): Promise<Response> {
  return await withStreamSlot(c, async (slot) => {
    const turn = beginTurn(c, { agent, caller, init, input, reader: slot.signal });
    const stream = new ResponseStream(newId, { agent, options, echo, isHeld });
    if (!isStream) return jsonResponse(await stream.whole(turn, slot.signal));
    const feed = await acceptedFeed(c, turn);
    return slot.respond(stream.events(feed), responseFormat, { isGathered: true });
  });
}

async function runInBackground(
  { c }: OpenAiRequest,
  request: TurnRequest,
  isStream: boolean,
): Promise<Response> {
  const { agent, options, init, input, echo } = request;
  if (!agent.metadata.detachable) {
    throw badRequest(
      `The model "${agent.name}" cannot work in the background: its store has no runs.`,
      { param: 'background', code: 'unsupported_parameter' },
    );
  }
  const start = async (): Promise<string> => (await startRun(c, request, init, input)).id;
  if (!isStream) {
    const subject = { snapshotId: await start(), model: agent.name, echo };
    return jsonResponse(toResponse(subject, { status: 'queued', output: [] }));
  }
  const respond = async (slot: StreamSlot): Promise<Response> => {
    const runId = await start();
    const stream = new ResponseStream(() => runId, { agent, options, echo, isHeld: false });
    const feed = runFeed(c, request, { runId, reader: slot.signal });
    return slot.respond(stream.events(feed), responseFormat);
  };
  return await withStreamSlot(c, respond, { own: false });
}

/**
 * Where a branch runs while another one of the same session does: in a separate session. A session works on one turn at a time,
 * but clients start several branches of one response at once. Answers to function calls stay, because they count once.
 */
async function branchElsewhere(
  { c }: OpenAiRequest,
  { agent, options, init, input }: TurnRequest,
  error: unknown,
): Promise<Init | undefined> {
  const { snapshotId } = init;
  if (snapshotId === undefined || input.message === undefined) return undefined;
  if (runningIn(error) === undefined) return undefined;
  await openAgentCall(c, { agent, operation: 'fork', snapshotId });
  const forked = await agent.fork(snapshotId, options);
  return { snapshotId: forked.snapshotId };
}
