import type { State } from '../../protocol/state.ts';
import { found, jsonResponse } from '../http/answer.ts';
import { readBody } from '../http/body.ts';
import { openCall, paramOf, type Router } from '../http/server-context.ts';
import { type FeedEvent, runFeed } from '../stream/feed.ts';
import { createViewers, runAfterStop, stopRunning } from '../stream/run-after-stop.ts';
import {
  type StreamFormat,
  type StreamSlot,
  sseFormat,
  sseJson,
  withStreamSlot,
} from '../stream/stream-response.ts';
import { answerTurn, requestIdOf, underRequestId } from '../stream/turn.ts';
import { UiEncoder } from './encode.ts';
import { toTurn } from './input.ts';
import { toUiMessages } from './messages.ts';
import { uiRequest } from './shapes.ts';

/** The protocol of AI SDK UI's `useChat`, for each agent at `/ui/:agent`; the chat id is the session id. */
export function mountUiStream(router: Router): void {
  const viewers = createViewers();

  router.post('/ui/:agent', async (c) => {
    const request = await readBody(c, uiRequest, 'chat request');
    const call = await openCall(c, 'runTurn', { sessionId: request.id });
    const { init, input } = await toTurn(call.agent, request, call.options);
    const run = (): Promise<Response> =>
      answerTurn(c, call, {
        init,
        input: underRequestId(input, requestIdOf(c)),
        stream: uiFormat(input.resume !== undefined),
        resumable: false,
        decorate: viewers.watching,
        respond: (output) => jsonResponse(output),
      });
    return runAfterStop(c, call, viewers, run);
  });

  router.get('/ui/:agent/:chat/stream', async (c) => {
    const sessionId = paramOf(c, 'chat');
    const call = await openCall(c, 'watch', { sessionId });
    const runId = (await call.agent.getSession(sessionId, call.options))?.running;
    if (runId === undefined) return new Response(null, { status: 204 });
    const respond = (slot: StreamSlot): Response => {
      const feed = runFeed(c, call, { runId, reader: slot.signal });
      return slot.respond(viewers.watching(feed), uiFormat(false));
    };
    return await withStreamSlot(c, respond, { own: false });
  });

  router.post('/ui/:agent/:chat/stop', async (c) => {
    const sessionId = paramOf(c, 'chat');
    return await stopRunning(await openCall(c, 'abort', { sessionId }), sessionId);
  });

  router.get('/ui/:agent/:chat/messages', async (c) => {
    const sessionId = paramOf(c, 'chat');
    const { agent, options } = await openCall(c, 'getSession', { sessionId });
    const session = found(await agent.getSession(sessionId, options), 'session', sessionId);
    const state = session.state as State | undefined;
    return jsonResponse(toUiMessages(state?.messages ?? []));
  });
}

function uiFormat(continues: boolean): StreamFormat<FeedEvent> {
  const encoder = new UiEncoder(continues);
  const encode = (event: FeedEvent): string => {
    const frames = encoder.encode(event).map((chunk) => sseJson(chunk));
    const isFinal = event.type === 'output' || event.type === 'error';
    return [...frames, ...(isFinal ? ['data: [DONE]\n\n'] : [])].join('');
  };
  return sseFormat(encode, { 'x-vercel-ai-ui-message-stream': 'v1' });
}
