import * as v from 'valibot';
import type { ErrorBody } from '../core/error.ts';
import type { Chunk, Output, Reset } from './turn.ts';
import { init, input } from './turn.ts';

/**
 * The events of a native SSE stream, by their `event:` name, and what their `data:` holds.
 *
 * - `chunk` and `reset` carry an `id:` (`attempt.sequence`) wherever the run can be watched; a line that is lost is
 *   taken up by `GET …/snapshots/:id/events` with that id as `Last-Event-ID`, where `:id` is the `snapshotId` of the
 *   `turnStart` chunk.
 * - `reset`: another process took over the run. Messages of turn `turnIndex` with this `index` or a higher one, and
 *   those of later turns, no longer stand. The next message of the turn has this index.
 * - `output` and `error` are final. A stream that ends without one of them was cut, and is to be taken up again.
 */
export interface SseEvents {
  readonly chunk: Chunk;
  readonly reset: Readonly<Reset>;
  readonly output: Output;
  readonly error: ErrorBody;
}

/** Chosen by the client to tell the answer to a frame from others. */
const ref = v.optional(v.union([v.string(), v.number()]));

/**
 * The frames that a client sends over a WebSocket, each one JSON text. `init` comes first, once; its `authorization` stands
 * in for the header that browsers cannot set. A frame with a `ref` is answered by `accepted`, or `error` with that ref.
 */
export const clientFrame = v.variant('type', [
  v.object({
    type: v.literal('init'),
    ref,
    init: v.optional(init),
    authorization: v.optional(v.string()),
  }),
  v.object({ type: v.literal('input'), ref, input }),
  /** Continues without the client: queued inputs and this one run in the background. */
  v.object({ type: v.literal('detach'), ref, input: v.optional(input) }),
  /** Adds the message of an input to the running turn, or waits for the turn to start. */
  v.object({ type: v.literal('steer'), ref, input }),
  /** Stops the running turn, keeps its partial answer, and ends the connection with its output. */
  v.object({ type: v.literal('abort'), ref }),
  /** No more inputs; when the queued ones are done, the output comes. */
  v.object({ type: v.literal('close'), ref }),
]);

export type ClientFrame = v.InferOutput<typeof clientFrame>;

/**
 * The frames that the server sends over a WebSocket; `seq` counts the frames of this connection from 0. `id` as for SSE.
 * `output`, and `error` without a `ref`, are final: the server closes the socket after them. An `error` with a `ref`
 * refuses that frame only. A socket that closes without a final frame was cut.
 */
export type ServerFrame =
  | { readonly type: 'chunk'; readonly seq: number; readonly id?: string; readonly chunk: Chunk }
  | ({ readonly type: 'reset'; readonly seq: number; readonly id: string } & Readonly<Reset>)
  /** Nothing, but that the line is open: a page does not see the pings of its browser's WebSocket. */
  | { readonly type: 'alive'; readonly seq: number }
  | { readonly type: 'accepted'; readonly seq: number; readonly ref: string | number }
  | {
      readonly type: 'error';
      readonly seq: number;
      readonly ref?: string | number;
      readonly error: ErrorBody;
    }
  | { readonly type: 'output'; readonly seq: number; readonly output: Output };
