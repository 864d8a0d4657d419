import type { BegunTurn } from '../../api/calls.ts';
import type { RequestOptions } from '../../api/types.ts';
import { handled, withCaller } from '../../core/async/promises.ts';
import type { SteerResult } from '../../protocol/requests.ts';
import type { Chunk, Input, Output } from '../../protocol/turn.ts';
import type { CallerCursor } from '../persistence/caller-cursor.ts';
import type { Connection } from './connection.ts';

export interface TurnStreamOptions {
  readonly signal?: AbortSignal | undefined;
  /** Called with the output before the stream ends; leaving the stream early then waits for the turn. */
  readonly follow?: ((output: Output) => void) | undefined;
}

/**
 * One input on a separate connection, with its chunks as they arrive. The turn waits for a slow caller until the caller
 * leaves the stream or asks for the output.
 */
export class TurnStream implements BegunTurn {
  readonly stream: TurnChunks;
  readonly #connection: Connection;
  readonly #sent: Promise<void>;
  readonly #follow: TurnStreamOptions['follow'];
  #asked: ReturnType<Connection['output']> | undefined;

  constructor(connection: Connection, input: Input, { signal, follow }: TurnStreamOptions = {}) {
    this.#connection = connection;
    this.#follow = follow;
    this.#sent = handled(this.#send(input, signal));
    this.stream = new TurnChunks(connection.cursor, this.#sent, () => this.#leave());
  }

  get output(): ReturnType<Connection['output']> {
    // A caller that also reads the stream may learn of a failure there and never look at this promise.
    this.#asked ??= handled(this.#ask());
    return this.#asked;
  }

  async steer(input: Input, options?: RequestOptions): Promise<SteerResult> {
    await this.#sent;
    return await this.#connection.steer(input, options);
  }

  /** Reads the events of the turn in batches, with their numbers. */
  get cursor(): CallerCursor {
    return this.#connection.cursor;
  }

  /** Resolves when the input was taken; rejects when it was refused. */
  get sent(): Promise<void> {
    return this.#sent;
  }

  /** The output, once the turn has ended. Unlike `output`, the turn still waits for a slow caller. */
  async settled(): Promise<Output> {
    await this.#sent;
    return await this.#connection.settled;
  }

  async #send(input: Input, signal: AbortSignal | undefined): Promise<void> {
    try {
      await this.#connection.send(input);
      this.#connection.close();
    } catch (error) {
      // A turn stopped before it began ends like one stopped later: with an output that says so.
      if (signal?.aborted) return;
      this.#connection.abort();
      throw error;
    }
  }

  async #ask(): ReturnType<Connection['output']> {
    await this.#sent;
    const output = await this.#connection.result();
    this.#follow?.(output);
    return output;
  }

  async #leave(): Promise<void> {
    const { output } = this;
    this.#connection.cursor.leave();
    if (this.#follow !== undefined) await output.catch(() => {});
  }
}

const done = { value: undefined, done: true } as const;

/** The chunks of a connection, once its input has been taken. */
class TurnChunks implements AsyncIterableIterator<Chunk, undefined> {
  readonly #cursor: CallerCursor;
  readonly #sent: Promise<void>;
  readonly #leave: () => Promise<void>;
  #hasBegun = false;
  #hasLeft = false;

  constructor(cursor: CallerCursor, sent: Promise<void>, leave: () => Promise<void>) {
    this.#cursor = cursor;
    this.#sent = sent;
    this.#leave = leave;
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  next(): Promise<IteratorResult<Chunk, undefined>> {
    if (this.#hasLeft) return Promise.resolve(done);
    if (!this.#hasBegun) return this.#begin();
    // Unread chunks are handed out directly: an async function around each would cost more than the chunk.
    const isThere = this.#cursor.hasNext;
    const next = this.#cursor.next();
    return isThere ? next : next.then(this.#onNext, this.#onError);
  }

  async return(): Promise<IteratorResult<Chunk, undefined>> {
    return await this.#end();
  }

  async #begin(): Promise<IteratorResult<Chunk, undefined>> {
    await this.#sent.catch(this.#onError);
    this.#hasBegun = true;
    return await this.next();
  }

  readonly #onNext = (
    result: IteratorResult<Chunk, undefined>,
  ): IteratorResult<Chunk, undefined> | Promise<IteratorResult<Chunk, undefined>> =>
    result.done ? this.#end() : result;

  readonly #onError = async (error: unknown): Promise<never> => {
    await this.#end();
    throw withCaller(error);
  };

  async #end(): Promise<IteratorResult<Chunk, undefined>> {
    this.#hasLeft = true;
    await this.#leave();
    return done;
  }
}
