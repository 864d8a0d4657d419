import { checkLookup } from '../../protocol/ids.ts';
import { readBody } from '../http/body.ts';
import { notFound, toWireError } from '../http/errors.ts';
import { jsonResponse } from '../http/json-response.ts';
import {
  openCall,
  openTurn,
  type RequestContext,
  type Router,
  type ServerContext,
} from '../http/server-context.ts';
import { sseHeaders, wantsEvents } from '../stream/stream-response.ts';
import { answerTurn, requestIdOf, underRequestId } from '../stream/turn.ts';
import { errorFrame, genkitFormat } from './format.ts';
import {
  genkitAbort,
  genkitLookup,
  genkitTurn,
  toGenkitOutput,
  toGenkitSnapshot,
  toGenkitStatus,
} from './shapes.ts';

/** On a stream Genkit's client reads a status from a frame only, so that every refusal is one. */
export function prepareGenkit(router: Router): void {
  router.use('/genkit/*', async (c, next) => {
    if (isStream(c)) c.set('renderError', streamError);
    await next();
  });
}

/** The dialect of Genkit's own clients, for each agent at `/genkit/:agent`. */
export function mountGenkit(router: Router, serverContext: ServerContext): void {
  router.post('/genkit/:agent', async (c) => {
    const body = await readBody(c, genkitTurn, { what: 'turn', ...serverContext });
    const init = body.init ?? {};
    const input = underRequestId(body.data, requestIdOf(c));
    const call = await openTurn(serverContext, c, init);
    return answerTurn(serverContext, c, call, {
      init,
      input,
      stream: isStream(c) && genkitFormat,
      resumable: false,
      respond: (output) => jsonResponse({ result: toGenkitOutput(output) }),
    });
  });

  router.post('/genkit/:agent/getSnapshot', async (c) => {
    const { data } = await readBody(c, genkitLookup, { what: 'lookup', ...serverContext });
    const { snapshotId, sessionId } = data;
    const { agent, options } = await openCall(serverContext, c, 'getSnapshot', data);
    const snapshot = await agent.getSnapshot(checkLookup(data), options);
    if (snapshot) return jsonResponse({ result: toGenkitSnapshot(snapshot) });
    throw snapshotId === undefined
      ? notFound('session', sessionId ?? '')
      : notFound('snapshot', snapshotId);
  });

  router.post('/genkit/:agent/abort', async (c) => {
    const { data } = await readBody(c, genkitAbort, { what: 'abort', ...serverContext });
    const { snapshotId } = data;
    const { agent, options } = await openCall(serverContext, c, 'abort', data);
    const status = await agent.abort(snapshotId, options);
    const result = { snapshotId, ...(status && { status: toGenkitStatus(status) }) };
    return jsonResponse({ result });
  });
}

function isStream(c: RequestContext): boolean {
  return wantsEvents(c) || c.req.query('stream') === 'true';
}

function streamError(error: unknown): Response {
  return new Response(errorFrame(toWireError(error)), { headers: { ...sseHeaders } });
}
