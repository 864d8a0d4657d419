import type { Agent } from '../../agent/contract/agent.ts';
import { jsonResponse } from '../http/answer.ts';
import { ownerOf } from '../http/auth.ts';
import { readBody } from '../http/body.ts';
import type { AguiServerOptions } from '../http/handler-options.ts';
import { contentOf } from '../http/served-app.ts';
import { openCall, paramOf, type RequestContext } from '../http/server-context.ts';
import { runFeed } from '../stream/feed.ts';
import { createViewers, runAfterStop, stopRunning } from '../stream/run-after-stop.ts';
import { type StreamSlot, withStreamSlot } from '../stream/stream-response.ts';
import { answerTurn } from '../stream/turn.ts';
import type { RunPlace } from './encode.ts';
import { type AguiEvent, runRequest } from './shapes.ts';
import { aguiFormat, opening, readThread, runEvents, type Thread } from './thread.ts';
import { toTurn } from './to-turn.ts';

type Answer = (c: RequestContext) => Promise<Response>;

export interface Endpoint {
  readonly run: Answer;
  readonly connect: Answer;
  readonly cancel: Answer;
  readonly capabilities: Answer;
}

export function createEndpoint(options: AguiServerOptions): Endpoint {
  const viewers = createViewers();
  const stopWithReader = (options.onDisconnect ?? 'abort') === 'abort';

  return {
    async run(c) {
      const request = await readBody(c, runRequest, 'run');
      const { threadId, runId } = request;
      const call = await openCall(c, 'runTurn', { sessionId: threadId });
      return runAfterStop(c, call, viewers, async () => {
        // Read for each attempt: what was in the way is part of the thread afterwards.
        const turn = await toTurn(call.agent, request, call.options);
        const place = { threadId, runId, ...generation(request.protocolVersion), ...turn };
        return answerTurn<AguiEvent>(c, call, {
          init: turn.init,
          input: turn.input,
          stream: aguiFormat,
          stopWithReader,
          resumable: false,
          decorate: (events) =>
            runEvents(call.agent, viewers.watching(events), place, {
              prelude: turn,
              options: ownerOf(call.caller),
            }),
          respond: (output) => jsonResponse(output),
        });
      });
    },

    async connect(c) {
      const threadId = paramOf(c, 'thread');
      const call = await openCall(c, 'watch', { sessionId: threadId });
      const options = ownerOf(call.caller);
      const respond = async (slot: StreamSlot): Promise<Response> => {
        const thread = await readThread(call.agent, threadId, options);
        const { running, runId = running ?? thread.headId ?? 'none' } = thread;
        const version = c.req.query('protocolVersion');
        const place = { threadId, runId, ...generation(version), answered: new Set<string>() };
        if (running === undefined) return slot.respond(resting(place, thread), aguiFormat);
        const feed = runFeed(c, call, { runId: running, reader: slot.signal });
        const about = { prelude: thread, options };
        const events = runEvents(call.agent, viewers.watching(feed), place, about);
        return slot.respond(events, aguiFormat);
      };
      return await withStreamSlot(c, respond, { own: false });
    },

    async cancel(c) {
      const sessionId = paramOf(c, 'thread');
      return await stopRunning(await openCall(c, 'abort', { sessionId }), sessionId);
    },

    async capabilities(c) {
      const { agent } = await openCall(c, 'getAgent');
      return jsonResponse(await capabilitiesOf(agent));
    },
  };
}

/** A thread in which nothing runs, as a run that ends at once. */
async function* resting(place: RunPlace, thread: Thread): AsyncGenerator<readonly AguiEvent[]> {
  const { threadId, runId, isCurrent } = place;
  const { interrupts } = thread;
  const success = isCurrent ? { type: 'success' } : undefined;
  const outcome = interrupts.length > 0 ? { type: 'interrupt', interrupts } : success;
  yield [...opening(place, thread), { type: 'RUN_FINISHED', threadId, runId, outcome }];
}

function generation(version: string | null | undefined): Pick<RunPlace, 'isCurrent'> {
  return { isCurrent: version !== undefined && version !== null };
}

export async function capabilitiesOf(agent: Agent): Promise<object> {
  const { name, description, metadata } = agent;
  const { tools = [], outputSchema } = await contentOf(agent);
  const items = tools.map((tool) => ({
    name: tool.name,
    description: tool.description ?? '',
    parameters: tool.inputSchema,
  }));
  return {
    identity: { name, type: 'waymark', description },
    transport: { streaming: true },
    tools: { supported: true, items, parallelCalls: true, clientProvided: true },
    output: { structuredOutput: outputSchema !== undefined },
    state: { snapshots: true, deltas: true, persistentState: true },
    humanInTheLoop: { supported: true, approvals: true, interrupts: true, approveWithEdits: true },
    custom: { connect: metadata.watchable, cancel: metadata.abortable, branches: true },
  };
}
