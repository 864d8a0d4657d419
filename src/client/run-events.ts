import type { ErrorBody, WaymarkError } from '../core/error.ts';
import type { SseEvents } from '../protocol/frames.ts';
import type { Chunk, Output, Reset } from '../protocol/turn.ts';
import { fromErrorBody } from './remote-error.ts';
import { createSseParser, type SseMessage } from './sse-parser.ts';

/** What a run tells, whichever line it came over. `output` and `error` are the last. */
export type RunEvent =
  | { readonly type: 'chunk'; readonly id?: string; readonly chunk: Chunk }
  | ({ readonly type: 'reset'; readonly id: string } & Readonly<Reset>)
  | { readonly type: 'output'; readonly output: Output }
  | { readonly type: 'error'; readonly error: WaymarkError };

/** The events of an SSE response until it ends or breaks. The caller checks whether the final event arrived. */
export async function* readRunEvents(
  body: ReadableStream<Uint8Array>,
  onBytes: () => void,
): AsyncGenerator<RunEvent, void, undefined> {
  const parser = createSseParser();
  const reader = body.getReader();
  try {
    for (;;) {
      const { value, done } = await reader.read();
      if (done) return;
      onBytes();
      for (const message of parser.push(value)) {
        const event = toRunEvent(message);
        if (event) yield event;
      }
    }
  } finally {
    // Left early: the server should know. A broken body cannot be cancelled, and need not be.
    reader.cancel().catch(() => {});
  }
}

/** Converts an SSE message to an event. Kinds that a later server may add are ignored. */
function toRunEvent({ event, data, id }: SseMessage): RunEvent | undefined {
  const name = event as keyof SseEvents;
  switch (name) {
    case 'chunk': {
      const chunk: Chunk = JSON.parse(data);
      return id === undefined ? { type: 'chunk', chunk } : { type: 'chunk', id, chunk };
    }
    case 'reset': {
      const reset: SseEvents['reset'] = JSON.parse(data);
      return { ...reset, type: 'reset', id: id ?? '' };
    }
    case 'output':
      return { type: 'output', output: JSON.parse(data) };
    case 'error': {
      const body: ErrorBody = JSON.parse(data);
      const error = fromErrorBody(body);
      return error && { type: 'error', error };
    }
    default:
      name satisfies never;
      return undefined;
  }
}
