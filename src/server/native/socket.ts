import type { WebSocket } from 'ws';
import { invalid, WaymarkError } from '../../core/error.ts';
import type { Json } from '../../core/json/json.ts';
import { after } from '../../core/time.ts';
import { type ClientFrame, clientFrame, type ServerFrame } from '../../protocol/frames.ts';
import { parseText, readJson } from '../http/body.ts';
import type { ServerLimits } from '../http/limits.ts';
import type { ServerContext } from '../http/server-context.ts';
import { checkFrameFields } from './known-fields.ts';

type Unnumbered = ServerFrame extends infer Frame
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
  { clock, limits, options }: ServerContext,
): FrameSocket {
  const { keepAlive: keepAliveMs = 15_000 } = options;
  const { stallTimeout: stallMs } = limits;
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

/** Frames that are handled at once before no more are read, such as while `auth` takes its time. */
const maxHandled = 256;

export interface FrameHandler {
  /** Learns who is calling from the first frame, whose shape is not checked yet; `undefined` if it is no JSON. */
  identify(first: Json | undefined): Promise<void>;
  /** Does what a frame asks for. Must not reject. */
  handle(frame: ClientFrame, length: number): Promise<void>;
  /** A frame cannot be read, or the caller is refused. */
  fail(error: unknown): void;
  /** True when the connection needs no more frames. */
  readonly isOver: boolean;
}

/** Reads the frames of a WebSocket in their order, and stops reading while too much of it is being handled. */
export class FrameReader {
  readonly #socket: FrameSocket;
  readonly #limits: ServerLimits;
  readonly #handler: FrameHandler;
  // Read one after the other by `#read`.
  #unread: (string | undefined)[] = [];
  #isReading = false;
  #isIdentified = false;
  #handling = 0;
  // Characters of the frames that are being handled.
  #handlingLength = 0;

  constructor(socket: FrameSocket, limits: ServerLimits, handler: FrameHandler) {
    this.#socket = socket;
    this.#limits = limits;
    this.#handler = handler;
  }

  /** Takes a frame; `undefined` for one that is not text. */
  receive(text: string | undefined): void {
    if (this.#handler.isOver) return;
    this.#unread.push(text);
    if (!this.#isReading) void this.#read();
  }

  async #read(): Promise<void> {
    this.#isReading = true;
    const release = this.#socket.hold();
    try {
      if (!this.#isIdentified) {
        const [first = ''] = this.#unread;
        await this.#handler.identify(await readJson(first, this.#limits));
        this.#isIdentified = !this.#handler.isOver;
      }
      while (this.#unread.length > 0 && !this.#handler.isOver) {
        const text = textOf(this.#unread.shift());
        const options = { what: 'frame', limits: this.#limits, check: checkFrameFields };
        const frame = await parseText(clientFrame, text, options);
        if (!this.#handler.isOver) this.#carryOut(frame, text.length);
      }
    } catch (error) {
      this.#handler.fail(error);
    } finally {
      this.#unread = [];
      this.#isReading = false;
      release();
    }
  }

  #carryOut(frame: ClientFrame, length: number): void {
    this.#handlingLength += length;
    const isFull = ++this.#handling >= maxHandled || this.#handlingLength >= this.#limits.bodyBytes;
    const release = isFull ? this.#socket.hold() : () => {};
    void this.#handler.handle(frame, length).finally(() => {
      this.#handling--;
      this.#handlingLength -= length;
      release();
    });
  }
}

function textOf(frame: string | undefined): string {
  if (frame !== undefined) return frame;
  throw invalid('Frames must be JSON texts.');
}

/** Inputs that wait to be taken at most. */
const maxWaiting = 64;

/** The inputs of a connection whose turns have not ended. While there are any, they count as one running turn of their principal. */
export class WaitingInputs {
  readonly #serverContext: ServerContext;
  readonly #lengths: number[] = [];
  /** The work for all of them is over. */
  release: () => void = () => {};

  constructor(serverContext: ServerContext) {
    this.#serverContext = serverContext;
  }

  get isEmpty(): boolean {
    return this.#lengths.length === 0;
  }

  /** Notes an input of that many characters, or refuses it. */
  add(length: number, principal: string | undefined): void {
    const characters = this.#lengths.reduce((sum, each) => sum + each, 0);
    const { limits } = this.#serverContext;
    if (this.#lengths.length >= maxWaiting || characters >= limits.bodyBytes) {
      throw new WaymarkError(
        'RESOURCE_EXHAUSTED',
        `${this.#lengths.length} inputs are waiting already. Send the next one when a turn has ended.`,
      );
    }
    if (this.isEmpty) this.#begin(principal);
    this.#lengths.push(length);
  }

  /** The turn of the first input has ended. */
  remove(): void {
    this.#lengths.shift();
    if (this.isEmpty) this.release();
  }

  #begin(principal: string | undefined): void {
    const giveBack = this.#serverContext.turns.take(principal);
    const working = Promise.withResolvers<void>();
    void this.#serverContext.lifetime.track(working.promise);
    this.release = () => {
      giveBack();
      working.resolve();
    };
  }
}
