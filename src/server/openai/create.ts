import { isWaymarkError, type WaymarkError } from '../../core/error.ts';
import { uuidv7 } from '../../core/id.ts';
import { isJsonObject } from '../../core/json/json.ts';
import type { Init } from '../../protocol/turn.ts';
import { ownerOf } from '../http/auth.ts';
import { readBody } from '../http/body.ts';
import { jsonResponse } from '../http/json-response.ts';
import { logFault } from '../http/log.ts';
import { openAgentCall, type RequestContext } from '../http/server-context.ts';
import { runFeed } from '../stream/feed.ts';
import { acquireStreamSlot, waitForAcceptance } from '../stream/stream-response.ts';
import { beginTurn, startRun } from '../stream/turn.ts';
import { badRequest } from './errors.ts';
import type { OpenAiServer } from './openai-server.ts';
import { openRequest, type TurnRequest } from './request.ts';
import { toResponse } from './response.ts';
import { createRequest } from './shapes.ts';
import { ResponseStream, responseFormat } from './stream.ts';

/** `POST /responses`: a turn of an agent. */
export async function createResponse(openai: OpenAiServer, c: RequestContext): Promise<Response> {
  const { serverContext } = openai;
  const body = await readBody(c, createRequest, { what: 'request', ...serverContext });
  const request = await openRequest(openai, c, body);
  const isStream = body.stream === true;
  const run = body.background === true ? runInBackground : runTurn;
  try {
    return await run(openai, c, request, isStream);
  } catch (error) {
    const init = await branchElsewhere(openai, c, request, error);
    if (!init) throw error;
    return await run(openai, c, { ...request, init }, isStream);
  }
}

async function runTurn(
  { serverContext }: OpenAiServer,
  c: RequestContext,
  { agent, caller, options, init, input, echo, isHeld }: TurnRequest,
  isStream: boolean,
): Promise<Response> {
  const slot = acquireStreamSlot(serverContext, c);
  try {
    const turn = beginTurn(serverContext, c, { agent, caller, init, input, reader: slot.signal });
    const newId = (): string => uuidv7(serverContext.clock.now());
    const stream = new ResponseStream(newId, { agent, options, echo, isHeld });
    if (isStream) {
      await waitForAcceptance(serverContext, turn.accepted);
      return slot.respond(stream.events(turn.events), responseFormat, { isGathered: true });
    }
    const response = await stream.whole(turn.events, slot.signal);
    slot.leave();
    return jsonResponse(response);
  } catch (error) {
    slot.leave();
    throw error;
  }
}

async function runInBackground(
  { serverContext }: OpenAiServer,
  c: RequestContext,
  request: TurnRequest,
  isStream: boolean,
): Promise<Response> {
  const { agent, caller, options, init, input, echo } = request;
  if (!agent.metadata.detachable) {
    throw badRequest(
      `The model "${agent.name}" cannot work in the background: its store has no runs.`,
      {
        param: 'background',
        code: 'unsupported_parameter',
      },
    );
  }
  const slot = isStream ? acquireStreamSlot(serverContext, c, { own: false }) : undefined;
  try {
    const { id } = await startRun(serverContext, request, init, input);
    if (!slot) {
      const subject = { snapshotId: id, model: agent.name, echo };
      return jsonResponse(toResponse(subject, { status: 'queued', output: [] }));
    }
    const stream = new ResponseStream(() => id, {
      agent,
      options,
      echo,
      isHeld: false,
    });
    const feed = runFeed(agent, id, {
      ...ownerOf(caller),
      reader: slot.signal,
      onFault: (error) => logFault(serverContext, error, c.get('logged')),
    });
    return slot.respond(stream.events(feed), responseFormat);
  } catch (error) {
    slot?.leave();
    throw error;
  }
}

/**
 * Where a branch runs while another one of the same session does: in a separate session. A session works on one turn at a time,
 * but clients start several branches of one response at once. Answers to function calls stay, because they count once.
 */
async function branchElsewhere(
  { serverContext }: OpenAiServer,
  c: RequestContext,
  { agent, options, init, input }: TurnRequest,
  error: unknown,
): Promise<Init | undefined> {
  const { snapshotId } = init;
  if (snapshotId === undefined || input.message === undefined || !isBusy(error)) return undefined;
  await openAgentCall(serverContext, c, { agent, operation: 'fork', snapshotId });
  const forked = await agent.fork(snapshotId, options);
  return { snapshotId: forked.snapshotId };
}

function isBusy(error: unknown): error is WaymarkError {
  if (!isWaymarkError(error) || error.status !== 'ABORTED') return false;
  return isJsonObject(error.details) && typeof error.details.running === 'string';
}
