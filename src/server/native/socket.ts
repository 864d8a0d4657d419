import type { WebSocket } from 'ws';
import type { Clock } from '../../core/time/clock.ts';
import { after } from '../../core/time/timers.ts';
import type { ServerFrame } from '../../protocol/frames.ts';

/** A frame before it has its number. */
export type Unnumbered = ServerFrame extends infer Frame
  ? Frame extends ServerFrame
    ? Omit<Frame, 'seq'>
    : never
  : never;

/** The server's end of a WebSocket: numbered frames, a bounded buffer, signs of life. */
export interface FrameSocket {
  /** Sends a frame; resolves when there is room for the next one, or the socket is closed. */
  send(frame: Unnumbered): Promise<void>;
  /** Takes no frames until the returned function is called. */
  hold(): () => void;
  close(code: number, reason: string): void;
}

/** Close codes of RFC 6455 that this server uses. */
export const closeCodes = { done: 1000, goingAway: 1001, refused: 1008, tryLater: 1013 } as const;

/** Bytes that wait to be sent at most, and one frame. */
const bufferBytes = 256 * 1024;

/** Wraps a socket; one whose reader does not read, or does not answer pings, is cut. */
export function createFrameSocket(
  socket: WebSocket,
  {
    clock,
    keepAliveMs,
    stallMs,
  }: { readonly clock: Clock; readonly keepAliveMs: number; readonly stallMs: number },
): FrameSocket {
  let seq = 0;
  let alive = true;
  let holds = 0;
  let unsent = 0;
  // Counted in ticks: a clock that jumps, or a process that stood still, makes no reader look gone.
  let fullTicks = 0;
  const tickMs = Math.min(keepAliveMs, stallMs);
  const closed = new Promise<void>((resolve) => socket.once('close', () => resolve()));

  const hold = (): (() => void) => {
    if (holds++ === 0 && socket.readyState === socket.OPEN) socket.pause();
    return () => {
      if (--holds === 0) socket.resume();
    };
  };
  const numbered = ({ type, ...rest }: Unnumbered): string =>
    JSON.stringify({ type, seq: seq++, ...rest });
  const sendNow = (frame: Unnumbered): void => socket.send(numbered(frame));
  const stopTimer = clock.every(tickMs, () => {
    if (unsent > 0) {
      // A ping would have to wait behind all that the reader has not taken: what counts is that it takes something.
      if (++fullTicks * tickMs > stallMs) socket.terminate();
      return;
    }
    if (!alive) return socket.terminate();
    alive = false;
    socket.ping();
    if (socket.readyState === socket.OPEN) sendNow({ type: 'alive' });
  });
  socket.on('pong', () => {
    alive = true;
  });
  socket.once('close', stopTimer);
  // An error is always followed by a close.
  socket.on('error', () => {});

  return {
    async send(frame) {
      if (socket.readyState !== socket.OPEN) return;
      if (socket.bufferedAmount < bufferBytes) return sendNow(frame);
      // Backpressure: stop reading from a client that does not read, because each frame may need an answer.
      const release = hold();
      unsent++;
      const written = new Promise<void>((resolve) => socket.send(numbered(frame), () => resolve()));
      await Promise.race([written, closed]);
      unsent--;
      fullTicks = 0;
      alive = true;
      release();
    },
    hold,
    close(code, reason) {
      // A socket that has closed emits no further `close` that could stop the timer below.
      if (socket.readyState === socket.CLOSED) return;
      socket.close(code, reason);
      // The client's close frame must be read, also while frames were held back.
      socket.resume();
      // A client that does not answer the close frame is cut.
      const stop = after(clock, stallMs, () => socket.terminate());
      socket.once('close', stop);
    },
  };
}
