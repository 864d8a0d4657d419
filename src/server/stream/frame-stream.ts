import { gather } from '../../core/async/groups.ts';
import type { Clock } from '../../core/time.ts';
import type { FrameSink, FrameSource } from '../http/connection.ts';

export interface FrameStreamOptions<Event> {
  readonly clock: Clock;
  readonly encode: (event: Event) => string;
  /**
   * Whether a batch holds all events of its turn of the event loop, so that it is sent without waiting for more.
   * @default false
   */
  readonly isGathered?: boolean;
  /** Sent after `keepAliveMs` without a frame, so that no proxy closes the connection as idle. */
  readonly keepAlive: string;
  readonly keepAliveMs: number;
  /** How long a client may leave a full body unread before it is disconnected. */
  readonly stallMs: number;
  /** Closes the connection of a stalled client; without it the body fails. */
  readonly cut?: (() => void) | undefined;
  /** Called once, however the body ended. */
  readonly onEnd?: (how: FrameStreamEnd) => void;
}

export type FrameStreamEnd = 'complete' | 'disconnected' | 'stalled' | 'stopped' | 'failed';

/** The most bytes that wait for the client, plus one frame. */
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
        // The client disconnected at the same moment.
      }
    },
    fail() {
      if (cut) cut();
      else controller.error(new Error('The stream was cut.'));
    },
  };
}

export class FramePump<Event> implements FrameSource {
  readonly #options: FrameStreamOptions<Event>;
  readonly #iterator: AsyncIterator<readonly Event[]>;
  #sink: FrameSink | undefined;
  #pending = '';
  #flushing = false;
  #room = Promise.withResolvers<void>();
  #stopTimer: () => void = () => {};
  // Counted in ticks, so that a clock jump or a paused process does not look like a stalled client.
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

  end(how: FrameStreamEnd): void {
    if (this.#ended) return;
    this.#ended = true;
    this.#stopTimer();
    this.#room.resolve();
    // A source that waits for its next value learns of this through its own signal.
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
          // A batch may exceed the buffer: encode no more of it than the client takes.
          if (this.#pending.length >= bufferBytes) await this.#waitForRoom();
          if (this.#ended) return;
        }
        if (this.#options.isGathered === true) this.#flush();
        else this.#schedule();
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
    gather(() => {
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
