import type { State } from '../../protocol/state.ts';
import { ownerOf } from '../http/auth.ts';
import { readBody } from '../http/body.ts';
import { notFound } from '../http/errors.ts';
import { jsonResponse } from '../http/json-response.ts';
import { logFault } from '../http/log.ts';
import {
  openCall,
  type RequestContext,
  type Router,
  type ServerContext,
} from '../http/server-context.ts';
import { type FeedEvent, runFeed } from '../stream/feed.ts';
import { createViewers, runAfterStop } from '../stream/run-after-stop.ts';
import {
  acquireStreamSlot,
  isFinal,
  type StreamFormat,
  sseEvent,
  sseHeaders,
  sseKeepAlive,
} from '../stream/stream-response.ts';
import { answerTurn, requestIdOf, underRequestId } from '../stream/turn.ts';
import { createUiEncoder } from './encode.ts';
import { toTurn } from './input.ts';
import { toUiMessages } from './messages.ts';
import { uiRequest } from './shapes.ts';

/** The dialect of AI SDK UI's `useChat`, for each agent at `/ui/:agent`; the chat id is the session id. */
export function mountUiStream(router: Router, serverContext: ServerContext): void {
  const viewers = createViewers();

  router.post('/ui/:agent', async (c) => {
    const request = await readBody(c, uiRequest, { what: 'chat request', ...serverContext });
    const call = await openCall(serverContext, c, 'runTurn', { sessionId: request.id });
    const { init, input } = await toTurn(call.agent, request, call.options);
    const run = (): Promise<Response> =>
      answerTurn(serverContext, c, call, {
        init,
        input: underRequestId(input, requestIdOf(c)),
        stream: uiFormat({ continues: input.resume !== undefined }),
        resumable: false,
        decorate: viewers.watching,
        respond: (output) => jsonResponse(output),
      });
    return runAfterStop(serverContext, call, viewers, run);
  });

  router.get('/ui/:agent/:chat/stream', async (c) => {
    const sessionId = chatParam(c);
    const { agent, caller, options } = await openCall(serverContext, c, 'watch', { sessionId });
    const running = (await agent.getSession(sessionId, options))?.running;
    if (running === undefined) return new Response(null, { status: 204 });
    const slot = acquireStreamSlot(serverContext, c, { own: false });
    const feed = runFeed(agent, running, {
      ...ownerOf(caller),
      reader: slot.signal,
      onFault: (error) => logFault(serverContext, error, c.get('logged')),
    });
    return slot.respond(viewers.watching(feed), uiFormat());
  });

  router.post('/ui/:agent/:chat/stop', async (c) => {
    const sessionId = chatParam(c);
    const { agent, options } = await openCall(serverContext, c, 'abort', { sessionId });
    const session = await agent.getSession(sessionId, options);
    if (!session) throw notFound('session', sessionId);
    if (session.running !== undefined) await agent.abort(session.running, options);
    return new Response(null, { status: 204 });
  });

  router.get('/ui/:agent/:chat/messages', async (c) => {
    const sessionId = chatParam(c);
    const { agent, options } = await openCall(serverContext, c, 'getSession', { sessionId });
    const session = await agent.getSession(sessionId, options);
    if (!session) throw notFound('session', sessionId);
    const state = session.state as State | undefined;
    return jsonResponse(toUiMessages(state?.messages ?? []));
  });
}

function uiFormat(options: { readonly continues?: boolean } = {}): StreamFormat<FeedEvent> {
  const toChunks = createUiEncoder(options);
  return {
    encode(event) {
      const frames = toChunks(event).map((chunk) => sseEvent({ data: JSON.stringify(chunk) }));
      if (isFinal(event)) frames.push(sseEvent({ data: '[DONE]' }));
      return frames.join('');
    },
    keepAlive: sseKeepAlive,
    headers: { ...sseHeaders, 'x-vercel-ai-ui-message-stream': 'v1' },
  };
}

function chatParam(c: RequestContext): string {
  return c.req.param('chat') ?? '';
}
