import { isWaymarkError, type WaymarkError } from '../../core/error.ts';
import { isJsonObject } from '../../core/json/json.ts';
import type { Init } from '../../protocol/turn.ts';
import { readBody } from '../http/body.ts';
import { jsonResponse } from '../http/json-response.ts';
import { openAgentCall } from '../http/server-context.ts';
import { runFeed } from '../stream/feed.ts';
import { type ReaderSeat, waitForAcceptance, withStreamSlot } from '../stream/stream-response.ts';
import { beginTurn, startRun } from '../stream/turn.ts';
import { badRequest } from './errors.ts';
import type { OpenAiRequest } from './openai-server.ts';
import { openRequest, type TurnRequest } from './request.ts';
import { toResponse } from './response.ts';
import { createRequest } from './shapes.ts';
import { ResponseStream, responseFormat } from './stream.ts';

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
    if (!isStream) return jsonResponse(await stream.whole(turn.events, slot.signal));
    await waitForAcceptance(c, turn.accepted);
    return slot.respond(stream.events(turn.events), responseFormat, { isGathered: true });
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
  const respond = async (slot: ReaderSeat): Promise<Response> => {
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
  if (snapshotId === undefined || input.message === undefined || !isBusy(error)) return undefined;
  await openAgentCall(c, { agent, operation: 'fork', snapshotId });
  const forked = await agent.fork(snapshotId, options);
  return { snapshotId: forked.snapshotId };
}

function isBusy(error: unknown): error is WaymarkError {
  if (!isWaymarkError(error) || error.status !== 'ABORTED') return false;
  return isJsonObject(error.details) && typeof error.details.running === 'string';
}
