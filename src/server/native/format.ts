import { assertNever } from '../../core/error.ts';
import type { FeedEvent } from '../stream/feed.ts';
import { sseEvent, sseHeaders, sseKeepAlive } from '../stream/sse.ts';
import type { StreamFormat } from '../stream/stream-response.ts';

/** The native dialect's stream: named events, each with its place in the run. */
export const nativeFormat: StreamFormat<FeedEvent> = {
  encode,
  keepAlive: sseKeepAlive,
  headers: sseHeaders,
};

function encode(event: FeedEvent): string {
  switch (event.type) {
    case 'chunk':
      return sseEvent({ event: 'chunk', id: event.id, data: JSON.stringify(event.chunk) });
    case 'reset': {
      const { id, attempt } = event;
      return sseEvent({ event: 'reset', id, data: JSON.stringify({ attempt }) });
    }
    case 'output':
      return sseEvent({ event: 'output', data: JSON.stringify(event.output) });
    case 'error':
      return sseEvent({ event: 'error', data: JSON.stringify(event.error) });
    default:
      return assertNever(event);
  }
}
