import { assertNever } from '../../core/error.ts';
import { jsonResponse, toWireError } from '../http/answer.ts';
import { readBody } from '../http/body.ts';
import { openCall, type RequestContext, type Router } from '../http/server-context.ts';
import type { FeedEvent } from '../stream/feed.ts';
import { type StreamFormat, sseHeaders, wantsEvents } from '../stream/stream-response.ts';
import { answerTurn, requestIdOf, underRequestId } from '../stream/turn.ts';
import {
  abortGenkitRun,
  genkitAbort,
  genkitLookup,
  genkitTurn,
  readGenkitSnapshot,
  toGenkitChunk,
  toGenkitOutput,
} from './shapes.ts';

/** On a stream Genkit's client reads a status from a frame only, so that every refusal is one. */
export function prepareGenkit(router: Router): void {
  router.use('/genkit/*', async (c, next) => {
    if (isStream(c)) c.set('renderError', streamError);
    await next();
  });
}

/** The protocol of Genkit's own clients, for each agent at `/genkit/:agent`. */
export function mountGenkit(router: Router): void {
  router.post('/genkit/:agent', async (c) => {
    const body = await readBody(c, genkitTurn, 'turn');
    const init = body.init ?? {};
    const input = underRequestId(body.data, requestIdOf(c));
    const call = await openCall(c, 'runTurn', init);
    return answerTurn(c, call, {
      init,
      input,
      stream: isStream(c) && genkitFormat,
      resumable: false,
      respond: (output) => jsonResponse({ result: toGenkitOutput(output) }),
    });
  });

  router.post('/genkit/:agent/getSnapshot', async (c) => {
    const { data } = await readBody(c, genkitLookup, 'lookup');
    const { agent, options } = await openCall(c, 'getSnapshot', data);
    return jsonResponse({ result: await readGenkitSnapshot(agent, data, options) });
  });

  router.post('/genkit/:agent/abort', async (c) => {
    const { data } = await readBody(c, genkitAbort, 'abort');
    const { agent, options } = await openCall(c, 'abort', data);
    return jsonResponse({ result: await abortGenkitRun(agent, data.snapshotId, options) });
  });
}

function isStream(c: RequestContext): boolean {
  return wantsEvents(c) || c.req.query('stream') === 'true';
}

function streamError(error: unknown): Response {
  return new Response(frame({ error: toWireError(error) }), { headers: { ...sseHeaders } });
}

/** Genkit's stream: `data:` lines only, as its JavaScript client breaks on any other, comments included. */
export const genkitFormat: StreamFormat<FeedEvent> = {
  encode,
  keepAlive: frame({ message: {} }),
  headers: sseHeaders,
};

function encode(event: FeedEvent): string {
  switch (event.type) {
    case 'chunk': {
      const message = toGenkitChunk(event.chunk);
      return message ? frame({ message }) : '';
    }
    case 'reset':
      return '';
    case 'output':
      return frame({ result: toGenkitOutput(event.output) });
    case 'error':
      return frame({ error: event.error });
    default:
      return assertNever(event);
  }
}

function frame(value: object): string {
  return `data: ${toAscii(JSON.stringify(value))}\n\n`;
}

/**
 * JSON in ASCII: Genkit's client decodes each piece it gets from the network by itself, so that a character of several
 * bytes that lies across two pieces would be lost.
 */
export function toAscii(json: string): string {
  return json.replace(
    /[\u0080-\uffff]/g,
    (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );
}
