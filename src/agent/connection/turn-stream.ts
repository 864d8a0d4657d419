import { type Channel, type Waiting, waiting } from '../../core/async/channel.ts';
import { handled } from '../../core/async/handled.ts';
import type { Chunk, Input, Output } from '../../protocol/turn.ts';
import type { AgentStream } from '../spec/agent.ts';
import type { Connection } from './connection.ts';

/** How the one turn of a connection is followed. */
export interface TurnStreamOptions {
  readonly signal?: AbortSignal | undefined;
  /** Hears of the output before the stream is at its end; leaving the stream early then waits for the turn. */
  readonly follow?: ((output: Output) => void) | undefined;
}

/**
 * One input on a connection of its own, its chunks as they come. The turn waits for a slow reader; once the reader leaves,
 * or somebody asks for the output, it no longer does.
 */
export class TurnStream implements AgentStream {
  readonly stream: TurnChunks;
  readonly #connection: Connection;
  readonly #sent: Promise<void>;
  readonly #follow: TurnStreamOptions['follow'];
  #asked: Promise<Output> | undefined;

  constructor(connection: Connection, input: Input, { signal, follow }: TurnStreamOptions = {}) {
    this.#connection = connection;
    this.#follow = follow;
    this.#sent = handled(this.#send(input, signal));
    this.stream = new TurnChunks(connection.chunks, this.#sent, () => this.#leave());
  }

  get output(): Promise<Output> {
    // Whoever takes it out together with the stream may learn of a failure from that one alone.
    this.#asked ??= handled(this.#ask());
    return this.#asked;
  }

  async #send(input: Input, signal: AbortSignal | undefined): Promise<void> {
    try {
      await this.#connection.send(input);
      this.#connection.close();
    } catch (error) {
      // What was stopped before it began ends like what was stopped after: with an output that says so.
      if (signal?.aborted) return;
      this.#connection.abort();
      throw error;
    }
  }

  async #ask(): Promise<Output> {
    await this.#sent;
    const output = await this.#connection.output();
    this.#follow?.(output);
    return output;
  }

  async #leave(): Promise<void> {
    const { output } = this;
    if (this.#follow !== undefined) await output.catch(() => {});
  }
}

const done = { value: undefined, done: true } as const;

/** The chunks of a connection, once its input has been taken. */
class TurnChunks implements AsyncIterableIterator<Chunk, undefined>, Waiting<Chunk> {
  readonly #chunks: Channel<Chunk>;
  readonly #sent: Promise<void>;
  readonly #leave: () => Promise<void>;
  #hasBegun = false;
  #hasLeft = false;

  constructor(chunks: Channel<Chunk>, sent: Promise<void>, leave: () => Promise<void>) {
    this.#chunks = chunks;
    this.#sent = sent;
    this.#leave = leave;
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  [waiting](): readonly Chunk[] {
    return this.#hasLeft ? [] : this.#chunks[waiting]();
  }

  next(): Promise<IteratorResult<Chunk, undefined>> {
    if (this.#hasLeft) return Promise.resolve(done);
    // What waits is handed out as it is: an async function around each chunk would cost more than the chunk.
    return this.#hasBegun && this.#chunks.size > 0 ? this.#chunks.receive() : this.#wait();
  }

  async return(): Promise<IteratorResult<Chunk, undefined>> {
    return await this.#end();
  }

  async #wait(): Promise<IteratorResult<Chunk, undefined>> {
    try {
      await this.#sent;
      this.#hasBegun = true;
      const result = await this.#chunks.receive();
      return result.done ? await this.#end() : result;
    } catch (error) {
      await this.#end();
      throw error;
    }
  }

  async #end(): Promise<IteratorResult<Chunk, undefined>> {
    this.#hasLeft = true;
    await this.#leave();
    return done;
  }
}
