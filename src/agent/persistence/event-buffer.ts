import { jsonLength } from '../../core/json/hash.ts';
import { afterThisTurn } from '../../core/platform.ts';
import type { Chunk } from '../../protocol/turn.ts';
import type { RunEvent } from '../../store/contract/store.ts';

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
