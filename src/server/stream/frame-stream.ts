import { afterThisTurn } from '../../core/platform.ts';
import type { Clock } from '../../core/time/clock.ts';
import type { FrameSink, FrameSource } from '../http/frame-sink.ts';

/** How a body of frames is written, and how it behaves towards its reader. */
export interface FrameStreamOptions<Event> {
  readonly clock: Clock;
  readonly encode: (event: Event) => string;
  /** Sent when nothing else was for `keepAliveMs`, so that nobody in between takes the line for dead. */
  readonly keepAlive: string;
  readonly keepAliveMs: number;
  /** How long a reader may leave a full body unread before it is dropped. */
  readonly stallMs: number;
  /** Cuts the line of a reader that was dropped; without it the body fails. */
  readonly cut?: (() => void) | undefined;
  /** Called once, however the body ended: read to its end, left by its reader, or dropped. */
  readonly onEnd?: (how: FrameStreamEnd) => void;
}

export type FrameStreamEnd = 'complete' | 'disconnected' | 'stalled' | 'stopped' | 'failed';

/** Bytes that wait for the reader at most, and one frame. */
const bufferBytes = 64 * 1024;

const encoder = new TextEncoder();

/**
 * A response body of one text frame per event, with a bounded buffer: more are asked for only while there is room.
 * Frames that come within one turn of the event loop go out as one piece.
 */
export function frameStream<Event>(
  pump: FramePump<Event>,
  { cut }: Pick<FrameStreamOptions<Event>, 'cut'>,
): ReadableStream<Uint8Array> {
  return new ReadableStream<Uint8Array>(
    {
      start: (controller) => pump.start(streamSink(controller, cut)),
      pull: () => pump.pulled(),
      cancel: () => pump.left(),
    },
    { highWaterMark: bufferBytes, size: (piece) => piece?.byteLength ?? 0 },
  );
}

function streamSink(
  controller: ReadableStreamDefaultController<Uint8Array>,
  cut: (() => void) | undefined,
): FrameSink {
  return {
    isFull: () => (controller.desiredSize ?? 0) <= 0,
    write: (text) => controller.enqueue(encoder.encode(text)),
    close() {
      try {
        controller.close();
      } catch {
        // The reader has left in the same moment.
      }
    },
    fail() {
      if (cut) cut();
      else controller.error(new Error('The stream was cut.'));
    },
  };
}

/** Moves frames from where they are made to where they go, at the pace of the reader. */
export class FramePump<Event> implements FrameSource {
  readonly #options: FrameStreamOptions<Event>;
  readonly #iterator: AsyncIterator<readonly Event[]>;
  #sink: FrameSink | undefined;
  #pending = '';
  #flushing = false;
  #room = Promise.withResolvers<void>();
  #stopTimer: () => void = () => {};
  // Counted in ticks: a clock that jumps, or a process that stood still, makes no reader look gone and no line dead.
  readonly #tickMs: number;
  #quietTicks = 0;
  #fullTicks: number | undefined;
  #ended = false;

  constructor(batches: AsyncIterable<readonly Event[]>, options: FrameStreamOptions<Event>) {
    this.#options = options;
    this.#iterator = batches[Symbol.asyncIterator]();
    this.#tickMs = Math.min(options.keepAliveMs, options.stallMs / 4);
  }

  start(sink: FrameSink): void {
    this.#sink = sink;
    this.#stopTimer = this.#options.clock.every(this.#tickMs, () => this.#tick());
    void this.#run();
  }

  left(): void {
    this.end('disconnected');
  }

  pulled(): void {
    this.#fullTicks = undefined;
    this.#room.resolve();
  }

  /** Ends the body now, behind what has been written. */
  stop(): void {
    if (this.#ended) return;
    this.#flush();
    this.#sink?.close();
    this.end('stopped');
  }

  /** Ends the body; the source of frames is told to stop. */
  end(how: FrameStreamEnd): void {
    if (this.#ended) return;
    this.#ended = true;
    this.#stopTimer();
    this.#room.resolve();
    // The source may be waiting for its next value, and hears of this through its own signal.
    if (how !== 'complete') this.#iterator.return?.().catch(() => {});
    this.#options.onEnd?.(how);
  }

  async #run(): Promise<void> {
    try {
      while (!this.#ended) {
        const { value, done } = await this.#iterator.next();
        if (this.#ended) return;
        if (done) break;
        for (const event of value) {
          this.#pending += this.#options.encode(event);
          // A batch may be far more than there is room for: no more of it is encoded than the reader takes.
          if (this.#pending.length >= bufferBytes) await this.#waitForRoom();
          if (this.#ended) return;
        }
        this.#schedule();
        if (this.#sink?.isFull()) await this.#waitForRoom();
      }
      this.#flush();
      this.#sink?.close();
      this.end('complete');
    } catch {
      this.#sink?.fail();
      this.end('failed');
    }
  }

  async #waitForRoom(): Promise<void> {
    this.#flush();
    if (!this.#sink?.isFull()) return;
    this.#fullTicks = 0;
    this.#room = Promise.withResolvers();
    await this.#room.promise;
  }

  #schedule(): void {
    if (this.#flushing) return;
    this.#flushing = true;
    afterThisTurn(() => {
      this.#flushing = false;
      this.#flush();
    });
  }

  #flush(): void {
    if (this.#pending === '' || this.#ended) return;
    const text = this.#pending;
    this.#pending = '';
    this.#quietTicks = 0;
    this.#sink?.write(text);
  }

  #tick(): void {
    const { keepAlive, keepAliveMs, stallMs } = this.#options;
    this.#quietTicks++;
    if (this.#fullTicks !== undefined) {
      if (++this.#fullTicks * this.#tickMs <= stallMs) return;
      this.#sink?.fail();
      this.end('stalled');
    } else if ((this.#quietTicks + 1) * this.#tickMs > keepAliveMs) {
      this.#pending += keepAlive;
      this.#flush();
    }
  }
}
