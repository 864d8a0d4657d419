import { assertNever, failedPrecondition } from '../../core/error.ts';
import { withArtifactOnly, withPatchOnly } from '../../protocol/artifacts.ts';
import { eventIdPattern, parseEventId } from '../../protocol/ids.ts';
import { turnRequest } from '../../protocol/requests.ts';
import type { Chunk } from '../../protocol/turn.ts';
import { jsonResponse } from '../http/answer.ts';
import { readBody } from '../http/body.ts';
import { openCall, paramOf, type RequestContext } from '../http/server-context.ts';
import { type FeedEvent, runFeed } from '../stream/feed.ts';
import {
  acceptedFeed,
  type StreamFormat,
  type StreamSlot,
  sseFormat,
  sseJson,
  wantsEvents,
  withStreamSlot,
} from '../stream/stream-response.ts';
import { answerTurn, requestIdOf, underRequestId } from '../stream/turn.ts';
import { checkTurnFields } from './known-fields.ts';
import type { NativeOperation } from './operation.ts';

const eventId = { type: 'string', pattern: eventIdPattern };

/** Turns: one as a stream of events or as its output, the events of a run, and the WebSocket for many. */
export const turnOperations = {
  runTurn: {
    summary: 'Runs one turn.',
    header: {
      'Idempotency-Key': {
        description:
          'Request id, as `requestId` in the body: the same id with the same input joins its first run or returns its output, for 24 hours.',
        schema: { type: 'string', minLength: 1, maxLength: 256 },
      },
    },
    body: { schema: 'TurnRequest' },
    answer: {
      description:
        'The output. With `accept: text/event-stream`: the events `chunk` and `reset` with an id, then `output` or `error`.',
      schema: 'Output',
      events: true,
    },
    async respond(c) {
      const body = await readBody(c, turnRequest, 'turn', checkTurnFields);
      const { init } = body;
      const input = underRequestId(body.input, requestIdOf(c), body.requestId);
      const call = await openCall(c, 'runTurn', init);
      return answerTurn(c, call, {
        init,
        input,
        stream: wantsEvents(c) && nativeFormat(c.req.url),
        respond: (output) => jsonResponse(output),
      });
    },
  },

  watch: {
    summary: 'The events of a run, past and live, and its output.',
    header: {
      'Last-Event-ID': {
        description: 'The id of the last event that was seen.',
        schema: eventId,
      },
    },
    query: {
      after: {
        description: 'As Last-Event-ID, for clients that cannot set headers.',
        schema: eventId,
      },
    },
    answer: {
      description: 'The events `chunk` and `reset`, then `output` or `error`.',
      events: true,
    },
    async respond(c) {
      const snapshotId = paramOf(c, 'snapshot');
      const after = lastEventId(c);
      const call = await openCall(c, 'watch', { snapshotId });
      const respond = async (slot: StreamSlot): Promise<Response> => {
        const run = { runId: snapshotId, reader: slot.signal, requestId: requestIdOf(c), after };
        const feed = await acceptedFeed(c, runFeed(c, call, run), 250);
        return slot.respond(feed, nativeFormat(c.req.url));
      };
      return await withStreamSlot(c, respond, { own: false });
    },
  },

  connect: {
    summary: 'A WebSocket for many turns: ClientFrame in, ServerFrame out.',
    answer: { status: 101, description: 'The connection is a WebSocket.' },
    // An upgrade never comes here: `serve` takes it before.
    respond() {
      throw failedPrecondition(
        'This is a WebSocket: connect to it with ws:// or wss://, at a server started by serve().',
      );
    },
  },
} satisfies Record<string, NativeOperation>;

/** The event to continue after, from the header that browsers set or from `?after=`. */
function lastEventId(c: RequestContext): string | undefined {
  const id = c.req.header('last-event-id') ?? c.req.query('after');
  // A browser that has seen no event may send an empty header.
  if (id === undefined || id === '') return undefined;
  parseEventId(id);
  return id;
}

/** The stream of the native protocol: named events, each with its place in the run. */
function nativeFormat(url: string): StreamFormat<FeedEvent> {
  const shown = artifactForm(url);
  return sseFormat((event) => encode(event, shown));
}

/** How a client takes edited artifacts: `?artifacts=patches` asks for the edit, otherwise it gets the whole artifact. */
export function artifactForm(url: string): (chunk: Chunk) => Chunk {
  return new URL(url).searchParams.get('artifacts') === 'patches'
    ? withPatchOnly
    : withArtifactOnly;
}

function encode(event: FeedEvent, shown: (chunk: Chunk) => Chunk): string {
  switch (event.type) {
    case 'chunk':
      return sseJson(shown(event.chunk), 'chunk', event.id);
    case 'reset': {
      const { type: _, id, ...reset } = event;
      return sseJson(reset, 'reset', id);
    }
    case 'output':
      return sseJson(event.output, 'output');
    case 'error':
      return sseJson(event.error, 'error');
    default:
      return assertNever(event);
  }
}
