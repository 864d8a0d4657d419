import { settled } from '../../core/async/promises.ts';
import { letOthersRun } from '../../core/platform.ts';
import type { Chunk } from '../../protocol/turn.ts';
import type { EventCursor } from '../../store/contract/store.ts';
import type { CallerCursor } from '../persistence/caller-cursor.ts';
import type { EventLog } from '../persistence/event-log.ts';

/** Sends without waiting after which other work gets the event loop: a stop must arrive, and the claim be prolonged. */
const maxUnbroken = 1_000;

/** Takes the chunks of an invocation to the log of its run, where the caller's cursor and watchers read them. */
export class ChunkSink {
  /** A chunk as the caller may see it. */
  readonly shown: (chunk: Chunk) => Chunk | undefined;
  readonly #signal: AbortSignal;
  #caller: CallerCursor | undefined;
  #log: EventLog | undefined;
  #sent = 0;

  constructor(options: {
    readonly caller: CallerCursor | undefined;
    readonly leave: (chunk: Chunk) => Chunk | undefined;
    readonly signal: AbortSignal;
  }) {
    this.#caller = options.caller;
    this.shown = options.leave;
    this.#signal = options.signal;
  }

  /** The log that chunks go to from now on. */
  set log(log: EventLog) {
    this.#log = log;
    this.#caller?.follow(log.buffer);
  }

  /** Sends a chunk and waits for a slow caller. After a stop the chunk is dropped, and this returns at once. */
  send(chunk: Chunk): Promise<void> {
    if (this.#signal.aborted) return settled;
    try {
      this.push(chunk);
    } catch (error) {
      return Promise.reject(error);
    }
    if (this.#caller?.isFull) return this.#caller.room(this.#signal);
    return ++this.#sent % maxUnbroken === 0 ? letOthersRun() : settled;
  }

  /** Sends a chunk that must arrive, also after a stop, without waiting for the caller. */
  push(chunk: Chunk): void {
    let shown: Chunk | undefined;
    try {
      shown = this.shown(chunk);
    } finally {
      // An event is logged even when its transform throws: only the caller does not see it.
      if (this.#log !== undefined) {
        this.#caller?.follow(this.#log.buffer);
        this.#log.push(chunk, shown);
      } else if (shown !== undefined) this.#show(shown);
    }
  }

  /** Sends a chunk to the caller alone. */
  deliver(chunk: Chunk): void {
    const shown = this.shown(chunk);
    if (shown !== undefined) this.#show(shown);
  }

  /** Sends a transformed chunk of a run in another process, and waits for a slow caller. */
  async relay(chunk: Chunk, { attempt, seq }: EventCursor): Promise<void> {
    this.#caller?.push({ attempt, seq, chunk, shown: chunk, kept: true });
    await this.#caller?.room();
  }

  /** The caller sees nothing more; the log continues. */
  disconnect(): void {
    this.#caller?.close();
    this.#caller = undefined;
  }

  #show(chunk: Chunk): void {
    this.#caller?.push({ attempt: 0, seq: 0, chunk, shown: chunk, kept: false });
  }
}
