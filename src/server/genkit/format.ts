import { assertNever, type ErrorBody } from '../../core/error.ts';
import type { FeedEvent } from '../stream/feed.ts';
import { type StreamFormat, sseHeaders } from '../stream/stream-response.ts';
import { toGenkitChunk, toGenkitOutput } from './shapes.ts';

/** Genkit's stream: `data:` lines only, as its JavaScript client breaks on any other, comments included. */
export const genkitFormat: StreamFormat<FeedEvent> = {
  encode,
  keepAlive: frame({ message: {} }),
  headers: sseHeaders,
};

/** The frame that ends a stream with an error. */
export function errorFrame(error: ErrorBody): string {
  return frame({ error });
}

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
      return errorFrame(event.error);
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
