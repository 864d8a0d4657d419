import { assertNever } from '../../core/error.ts';
import { withArtifactOnly, withPatchOnly } from '../../protocol/artifacts.ts';
import type { Chunk } from '../../protocol/turn.ts';
import { pieceOf } from '../../store/rules/event-body.ts';
import type { FeedEvent } from '../stream/feed.ts';
import {
  type StreamFormat,
  sseEvent,
  sseHeaders,
  sseKeepAlive,
} from '../stream/stream-response.ts';

/** The native dialect's stream: named events, each with its place in the run. */
export function nativeFormat(url: string): StreamFormat<FeedEvent> {
  const shown = artifactForm(url);
  return {
    encode: (event) => encode(event, shown),
    keepAlive: sseKeepAlive,
    headers: sseHeaders,
  };
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
      return sseEvent({ event: 'chunk', id: event.id, data: chunkJson(shown(event.chunk)) });
    case 'reset': {
      const { type: _, id, ...reset } = event;
      return sseEvent({ event: 'reset', id, data: JSON.stringify(reset) });
    }
    case 'output':
      return sseEvent({ event: 'output', data: JSON.stringify(event.output) });
    case 'error':
      return sseEvent({ event: 'error', data: JSON.stringify(event.error) });
    default:
      return assertNever(event);
  }
}

// What the JSON of the last piece of text began with. The pieces of an answer differ in their text alone, and a stringified text
// takes a third of the time of the object around it.
let beginning: { readonly role: unknown; readonly index: unknown; readonly json: string } = {
  role: undefined,
  index: undefined,
  json: '{"modelChunk":{"content":[{"text":',
};

function chunkJson(chunk: Chunk): string {
  const piece = pieceOf(chunk);
  if (piece === undefined) return JSON.stringify(chunk);
  const { role, index, text } = piece;
  if (role !== beginning.role || index !== beginning.index) {
    const whole = JSON.stringify({ modelChunk: { role, index, content: [{ text: '' }] } });
    beginning = { role, index, json: whole.slice(0, -'""}]}}'.length) };
  }
  return `${beginning.json}${JSON.stringify(text)}}]}}`;
}
