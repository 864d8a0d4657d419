import type { Channel } from '../../core/async/channel.ts';
import { settled } from '../../core/async/handled.ts';
import { letOthersRun } from '../../core/platform.ts';
import type { Chunk } from '../../protocol/turn.ts';
import type { EventCursor, RunEvent } from '../../store/contract/store.ts';
import { noteEventId } from '../persistence/event-id.ts';
import type { EventLog } from '../persistence/event-log.ts';

/** Chunks after which whoever sends without ever waiting lets others run: a stop must reach it, and its claim be kept. */
const unbroken = 1_000;

/** Where the chunks of an invocation go: to the run's log as they are, to the caller as they may leave. */
export class ChunkSink {
  readonly #leave: (chunk: Chunk) => Chunk | undefined;
  readonly #signal: AbortSignal;
  #caller: Channel<Chunk> | undefined;
  #log: EventLog | undefined;
  #sent = 0;

  constructor(options: {
    readonly caller: Channel<Chunk> | undefined;
    readonly leave: (chunk: Chunk) => Chunk | undefined;
    readonly signal: AbortSignal;
  }) {
    this.#caller = options.caller;
    this.#leave = options.leave;
    this.#signal = options.signal;
  }

  /** The run whose events the chunks are from now on. */
  set log(log: EventLog | undefined) {
    this.#log = log;
  }

  /** Sends a chunk and waits for a slow reader. After a stop it is dropped, and this returns at once. */
  send(chunk: Chunk): Promise<void> {
    if (this.#signal.aborted) return settled;
    let leaving: Chunk | undefined;
    try {
      leaving = this.#record(chunk);
    } catch (error) {
      return Promise.reject(error);
    }
    const caller = this.#caller;
    if (leaving !== undefined && caller !== undefined && !caller.trySend(leaving)) {
      return caller.send(leaving, this.#signal).catch(() => {});
    }
    return ++this.#sent % unbroken === 0 ? letOthersRun() : settled;
  }

  /** Sends what must arrive, also after a stop, without waiting for anybody. */
  push(chunk: Chunk): void {
    const leaving = this.#record(chunk);
    if (leaving !== undefined) this.#hand(leaving);
  }

  /** Sends a chunk that the log already has. */
  pushLogged(chunk: Chunk, event: RunEvent): void {
    const leaving = this.#leave(chunk);
    if (leaving === undefined) return;
    this.#hand(noteEventId(leaving, event));
  }

  /** Sends a chunk to the caller alone. */
  deliver(chunk: Chunk): void {
    const leaving = this.#leave(chunk);
    if (leaving !== undefined) this.#hand(leaving);
  }

  /** Sends a chunk of a run that is worked on elsewhere, which has gone through the transforms, and waits for a slow reader. */
  async relay(chunk: Chunk, event: EventCursor): Promise<void> {
    const noted = noteEventId(chunk, event);
    const caller = this.#caller;
    if (caller === undefined || caller.trySend(noted)) return;
    await caller.send(noted).catch(() => {});
  }

  /** Nobody listens any more; the log goes on. */
  disconnect(): void {
    this.#caller = undefined;
  }

  #hand(chunk: Chunk): void {
    this.#caller?.push(chunk);
  }

  #record(chunk: Chunk): Chunk | undefined {
    const event = this.#log?.push(chunk);
    const leaving = this.#leave(chunk);
    // Only an event that is kept can be come back to.
    const isKept = event !== undefined && this.#log?.durable === true;
    return isKept && leaving !== undefined ? noteEventId(leaving, event) : leaving;
  }
}
