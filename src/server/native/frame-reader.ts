import { WaymarkError } from '../../core/error.ts';
import { letOthersRun } from '../../core/platform.ts';
import { type ClientFrame, clientFrame } from '../../protocol/frames.ts';
import { isLongText, parseInSteps, parseText, type TextOptions } from '../http/body.ts';
import type { ServerLimits } from '../http/limits.ts';
import { checkFrameFields } from './known-fields.ts';
import type { FrameSocket } from './socket.ts';

/** Frames that are handled at once before no more are read, such as while `auth` takes its time. */
const maxHandled = 256;

/** What is done with the frames of a connection. */
export interface FrameHandler {
  /** Learns from the first frame, which is not parsed yet, who is calling. */
  identify(first: string): Promise<void>;
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
  // Frames that came before the caller is known, or behind a long one: read one after the other by `#read`.
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
    if (this.#isIdentified && !this.#isReading && !isLongText(text)) this.#take(text);
    else if (this.#unread.push(text) === 1 && !this.#isReading) void this.#read();
  }

  #take(text: string | undefined): void {
    try {
      const json = textOf(text);
      this.#carryOut(parseText(clientFrame, json, this.#parsing), json.length);
    } catch (error) {
      this.#handler.fail(error);
    }
  }

  // A client that is not known gets no more than one scan of its first frame.
  async #read(): Promise<void> {
    this.#isReading = true;
    const release = this.#socket.hold();
    try {
      let isChecked = false;
      if (!this.#isIdentified) {
        // Reading a long one took its time.
        if (isLongText(this.#unread[0])) await letOthersRun();
        await this.#handler.identify(this.#unread[0] ?? '');
        this.#isIdentified = !this.#handler.isOver;
        isChecked = true;
      }
      while (this.#unread.length > 0 && !this.#handler.isOver) {
        const text = textOf(this.#unread.shift());
        const options = { ...this.#parsing, isChecked };
        const frame = isLongText(text)
          ? await parseInSteps(clientFrame, text, options)
          : parseText(clientFrame, text, options);
        if (!this.#handler.isOver) this.#carryOut(frame, text.length);
        if (isLongText(text)) await letOthersRun();
        isChecked = false;
      }
    } catch (error) {
      this.#handler.fail(error);
    } finally {
      this.#unread = [];
      this.#isReading = false;
      release();
    }
  }

  get #parsing(): TextOptions {
    return { what: 'frame', limits: this.#limits, check: checkFrameFields };
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
  throw new WaymarkError('INVALID_ARGUMENT', 'Frames must be JSON texts.');
}
