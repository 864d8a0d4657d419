import { gather } from '../../core/async/groups.ts';
import { failLater, settled, withCaller } from '../../core/async/promises.ts';
import { jsonLength } from '../../core/json/json.ts';
import { afterThisTurn, letOthersRun } from '../../core/platform.ts';
import type { Chunk } from '../../protocol/turn.ts';
import type { RunEvent } from '../../store/contract/store.ts';

/** Unread events at which the turn waits for its caller. */
const maxUnread = 192;

interface Segment extends BufferReader {
  readonly buffer: EventBuffer;
  position: number;
  holds: boolean;
  /** Where the caller's part of the buffer ends; a detached run continues without its caller. */
  end: number;
  readonly unlisten: () => void;
}

type Waiter = (
  result: IteratorResult<Chunk, undefined> | Promise<IteratorResult<Chunk, undefined>>,
) => void;

const done = { value: undefined, done: true } as const;

/**
 * The caller's position in the event logs of its turns, one log after the other. It copies nothing: events stay in the logs
 * until they are read.
 */
export class CallerCursor implements AsyncIterable<Chunk> {
  readonly #onWait: ((sent: Promise<void>) => void) | undefined;
  readonly #segments: Segment[] = [];
  readonly #waiters: Waiter[] = [];
  readonly #rooms = new Set<() => void>();
  /** Chunks that belong to no log of this process. */
  #loose: EventBuffer | undefined;
  #gathered: PromiseWithResolvers<void> | undefined;
  #holds = true;
  #isBounded = true;
  #ended: { readonly error?: unknown } | undefined;

  constructor(options: { readonly onWait?: (sent: Promise<void>) => void } = {}) {
    this.#onWait = options.onWait;
  }

  /** Set once nothing more comes. With an `error`, reading ends with it. */
  get ended(): { readonly error?: unknown } | undefined {
    return this.#ended;
  }

  get isFull(): boolean {
    return this.#holds && this.#isBehind();
  }

  /** Reads this buffer from now on, after the chunks of the earlier ones. */
  follow(buffer: EventBuffer): void {
    if (this.#ended !== undefined) return;
    const last = this.#segments.at(-1);
    if (last?.buffer === buffer) return;
    if (last !== undefined) endSegment(last);
    const segment: Segment = {
      buffer,
      position: buffer.end,
      end: Number.POSITIVE_INFINITY,
      holds: this.#holds,
      unlisten: buffer.onEvent(this.#onEvent),
    };
    buffer.reader = segment;
    this.#segments.push(segment);
  }

  /** Shows the caller an event that is in no log of this process. */
  push(event: LogEvent): void {
    if (this.#ended !== undefined) return;
    if (this.#loose === undefined || this.#segments.at(-1)?.buffer !== this.#loose) {
      this.#loose = new EventBuffer();
      this.follow(this.#loose);
    }
    this.#loose.push(event);
  }

  /** Resolves when the caller has caught up, has left, or the signal aborts. */
  room(signal?: AbortSignal): Promise<void> {
    if (!this.#isBehind() || signal?.aborted) return Promise.resolve();
    const sent = new Promise<void>((resolve) => {
      const accept = (): void => {
        this.#rooms.delete(accept);
        signal?.removeEventListener('abort', accept);
        resolve();
      };
      this.#rooms.add(accept);
      signal?.addEventListener('abort', accept);
    });
    this.#onWait?.(sent);
    return sent;
  }

  get hasNext(): boolean {
    return this.#peek() !== undefined;
  }

  take(): readonly LogEvent[] {
    const events: LogEvent[] = [];
    for (let event = this.#shift(); event !== undefined; event = this.#shift()) events.push(event);
    this.#makeRoom();
    return events;
  }

  /** The run whose next events were dropped before they were read; the store has them. */
  get missedRun(): string | undefined {
    const { buffer, position = 0, end = 0 } = this.#segments[0] ?? {};
    return buffer && position < buffer.first && position < end ? buffer.runId : undefined;
  }

  /** Continues after the missed run, once its events were read from the store. */
  skipMissed(): void {
    const segment = this.#segments[0];
    if (segment !== undefined) segment.position += unreadIn(segment);
    this.#makeRoom();
  }

  /**
   * Resolves when there is something to read, or nothing more comes. Something to read is announced a moment later: the events of a
   * turn of the event loop are then read together.
   */
  gathered(): Promise<void> {
    if (this.#ended !== undefined) return settled;
    if (this.hasNext || this.missedRun !== undefined) return letOthersRun();
    this.#gathered ??= Promise.withResolvers();
    return this.#gathered.promise;
  }

  next(): Promise<IteratorResult<Chunk, undefined>> {
    const event = this.#shift();
    if (event?.shown !== undefined) {
      if (this.#rooms.size > 0) this.#makeRoom();
      return Promise.resolve({ value: event.shown, done: false });
    }
    if (this.#ended === undefined) {
      return new Promise((accept) => this.#waiters.push(accept));
    }
    return 'error' in this.#ended
      ? Promise.reject(withCaller(this.#ended.error))
      : Promise.resolve(done);
  }

  /** Iterates over the chunks. Leaving the loop early keeps the position: the next loop continues there. */
  [Symbol.asyncIterator](): AsyncIterator<Chunk, undefined> {
    return { next: () => this.next(), return: () => Promise.resolve(done) };
  }

  /** No send waits for the caller any more. */
  unbound(): void {
    this.#isBounded = false;
    this.#makeRoom();
  }

  /** No send waits, and the logs may drop what the store has: the caller reads the rest there. */
  readFromStore(): void {
    this.#holds = false;
    for (const segment of this.#segments) segment.holds = false;
    for (const accept of this.#rooms) accept();
  }

  /** Nothing after this is for the caller. What came before can still be read. */
  close(): void {
    this.#end({});
  }

  /** As {@link CallerCursor.close}; reading ends with the error. */
  fail(error: unknown): void {
    this.#end({ error });
  }

  /** The caller reads no more: its logs keep nothing for it. */
  leave(): void {
    this.#end({});
    for (const segment of this.#segments.splice(0)) this.#release(segment);
  }

  #end(ended: { readonly error?: unknown }): void {
    if (this.#ended !== undefined) return;
    this.#ended = ended;
    for (const segment of this.#segments) endSegment(segment);
    for (const accept of this.#waiters.splice(0)) {
      accept('error' in ended ? failLater(ended.error) : done);
    }
    this.#gathered?.resolve();
    this.#makeRoom();
  }

  readonly #onEvent = (): void => {
    while (this.#waiters.length > 0) {
      const event = this.#shift();
      if (event?.shown === undefined) return;
      this.#waiters.shift()?.({ value: event.shown, done: false });
    }
    if (this.#gathered === undefined) return;
    gather(this.#gathered.resolve);
    this.#gathered = undefined;
  };

  #shift(): LogEvent | undefined {
    const event = this.#peek();
    const segment = this.#segments[0];
    if (event !== undefined && segment !== undefined) segment.position++;
    return event;
  }

  /**
   * The next event that the caller may see; `undefined` also if it was dropped. Passes hidden events, and leaves buffers that
   * were read to their end when another one follows.
   */
  #peek(): LogEvent | undefined {
    for (let segment = this.#segments[0]; segment !== undefined; segment = this.#segments[0]) {
      for (let unread = unreadIn(segment); unread > 0; unread--) {
        const event = segment.buffer.at(segment.position);
        if (event === undefined || event.shown !== undefined) return event;
        segment.position++;
      }
      if (this.#segments.length < 2) return undefined;
      this.#segments.shift();
      this.#release(segment);
    }
    return undefined;
  }

  #release(segment: Segment): void {
    segment.unlisten();
    if (segment.buffer.reader === segment) segment.buffer.reader = undefined;
  }

  #unread(): number {
    let unread = 0;
    for (const segment of this.#segments) unread += unreadIn(segment);
    return unread;
  }

  #isBehind(): boolean {
    return this.#isBounded && this.#ended === undefined && this.#unread() > maxUnread;
  }

  #makeRoom(): void {
    if (this.#rooms.size === 0 || this.#isBehind()) return;
    for (const accept of this.#rooms) accept();
  }
}

function endSegment(segment: Segment): void {
  segment.end = Math.min(segment.end, segment.buffer.end);
  segment.unlisten();
}

function unreadIn({ buffer, position, end }: Segment): number {
  return Math.min(buffer.end, end) - position;
}

export interface LogEvent extends RunEvent {
  /** The chunk as the caller may see it; `undefined` when a transform hides it. */
  readonly shown: Chunk | undefined;
  /** Whether the store keeps the event, so that a client can resume after it. */
  readonly kept: boolean;
}

export interface BufferReader {
  readonly position: number;
  /** Whether unread events stay in memory until they are read. */
  readonly holds: boolean;
}

/** Unread events that stay in memory for a reader that can also get them from the store. */
const maxBehind = 1024;

/** The JSON length of those events together. */
const maxBehindLength = 256 * 1024;

/** The events of one run in memory, read by position. Positions count all events, including dropped ones. */
export class EventBuffer {
  readonly runId: string | undefined;
  /** The caller's position, which decides what may be dropped. */
  reader: BufferReader | undefined;
  #events: LogEvent[] = [];
  #first = 0;
  readonly #listeners = new Set<() => void>();

  constructor(runId?: string) {
    this.runId = runId;
  }

  /** The position of the oldest event that is still here. */
  get first(): number {
    return this.#first;
  }

  get end(): number {
    return this.#first + this.#events.length;
  }

  push(event: LogEvent): void {
    this.#events.push(event);
    this.wake();
  }

  at(position: number): LogEvent | undefined {
    return this.#events[position - this.#first];
  }

  from(position: number): readonly LogEvent[] {
    return this.#events.slice(Math.max(0, position - this.#first));
  }

  /** The position of the first event with this sequence number or a later one; failed writes leave gaps in the numbers. */
  positionOf(seq: number): number {
    let low = 0;
    let high = this.#events.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if ((this.#events[middle]?.seq ?? seq) < seq) low = middle + 1;
      else high = middle;
    }
    return this.#first + low;
  }

  /** Drops the events before a position, except those that the caller holds. */
  drop(before: number): void {
    const limit = this.reader?.holds ? Math.min(before, this.reader.position) : before;
    const count = Math.min(limit - this.#first, this.#events.length);
    if (count <= 0) return;
    this.#events.splice(0, count);
    this.#first += count;
  }

  /** The run has ended and the store has its events: keep no more in memory for a slow caller than the limit. */
  release(): void {
    if (!this.#hasUnread()) return;
    // A caller that is not slow reads the rest in this turn of the event loop, so that nothing has to be measured.
    afterThisTurn(() =>
      afterThisTurn(() => {
        if (this.#hasUnread() && this.#isFarBehind(this.reader?.position ?? 0)) this.drop(this.end);
      }),
    );
  }

  /** Whether the caller has yet to read events that it can also get from the store. */
  #hasUnread(): boolean {
    const { reader } = this;
    return reader !== undefined && !reader.holds && reader.position < this.end;
  }

  onEvent(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  wake(): void {
    for (const listener of this.#listeners) listener();
  }

  #isFarBehind(position: number): boolean {
    if (this.end - position > maxBehind) return true;
    let length = 0;
    for (let at = position; at < this.end; at++) {
      length += jsonLength(this.at(at)?.chunk, maxBehindLength);
      if (length > maxBehindLength) return true;
    }
    return false;
  }
}
