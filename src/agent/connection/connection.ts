import { type BegunTurn, ConnectionCalls } from '../../api/calls.ts';
import {
  describeOutput,
  type OutputAccessors,
  type TurnInput,
  toInput,
} from '../../api/turn-values.ts';
import type { AgentConnection, RequestOptions, WireTypes } from '../../api/types.ts';
import { forCaller, handled, withCaller } from '../../core/async/promises.ts';
import { WaymarkError } from '../../core/error.ts';
import { toJsonSchema } from '../../core/schema/schema.ts';
import type { Clock } from '../../core/time.ts';
import { callerTools } from '../../generate/tool/caller-tools.ts';
import { scopeOf } from '../../protocol/ids.ts';
import { parseInput } from '../../protocol/parse.ts';
import type { SteerResult } from '../../protocol/requests.ts';
import type { Chunk, Input, Output } from '../../protocol/turn.ts';
import type { AgentSpec } from '../contract/spec.ts';
import { CallerCursor } from '../persistence/caller-cursor.ts';
import type { AgentHost } from '../persistence/host.ts';
import { checkOpen } from '../turn/accept.ts';
import {
  checkRequestId,
  underRequest,
  withoutAutoId,
  withoutExpiry,
  withoutOptions,
} from '../turn/inputs.ts';
import { Invocation } from '../turn/invocation.ts';
import type { InvocationRequest } from '../turn/invocation-state.ts';
import { steerRun } from '../turn/steer.ts';

type CallerOutput = Output & OutputAccessors;

/** A connection to an agent of this process: turns run as inputs come, and the caller reads their chunks at its own pace. */
export class Connection extends ConnectionCalls<WireTypes> implements AgentConnection {
  protected readonly toJsonSchema = toJsonSchema;
  /** The caller's place in the events of its turns. */
  readonly cursor: CallerCursor;
  readonly #spec: AgentSpec;
  readonly #host: AgentHost;
  readonly #invocation: Invocation | undefined;
  readonly #settled = Promise.withResolvers<CallerOutput>();
  #isSettled = false;
  #readerTimeout: ReturnType<typeof createReaderTimeout> | undefined;

  constructor(spec: AgentSpec, host: AgentHost, createRequest: () => InvocationRequest) {
    super();
    this.#spec = spec;
    this.#host = host;
    this.cursor = new CallerCursor({ onWait: (sent) => this.#watch(sent) });
    // The caller may ignore the result; an unhandled rejection would end the process.
    this.#settled.promise.catch(() => {});
    try {
      const request = createRequest();
      checkOpen(host, request);
      this.#invocation = new Invocation(spec, host, { ...request, caller: this.cursor });
      host.background(
        this.#invocation.execute().then(
          (output) => this.#finish(output),
          (error: unknown) => this.#fail(error),
        ),
      );
    } catch (error) {
      // Report an invalid init in the same way as an error found later.
      this.#fail(error);
    }
  }

  get done(): Promise<void> {
    return this.#settled.promise.then(
      () => {},
      () => {},
    );
  }

  async send(value: Input): Promise<void> {
    const input = this.#parse(value);
    const invocation = this.#invocation;
    if (invocation === undefined) await this.#settled.promise;
    else if (input.detach === true) await this.#detach(input);
    // An invocation that could not open is closed: say why it could not, not that it is closed.
    else if (invocation.openError !== undefined) throw invocation.openError;
    else if (input.resume === undefined) invocation.state.inbox.push(input);
    // Whether an answer fits its interrupt is known when its turn begins.
    else await invocation.state.inbox.offer(input);
  }

  async steer(value: TurnInput, options?: RequestOptions): Promise<SteerResult> {
    const input = this.#parse(underRequest(toInput(value), options));
    const state = this.#invocation?.state;
    if (state === undefined) await this.#settled.promise;
    const scope = state?.scope ?? scopeOf(this.#spec, undefined);
    return await steerRun(
      { spec: this.#spec, host: this.#host, scope },
      await state?.started,
      input,
    );
  }

  receive(): AsyncIterable<Chunk> {
    return this.cursor;
  }

  async detach(input?: Input): Promise<CallerOutput> {
    return await this.#detach(input && this.#parse(input));
  }

  abort(reason?: unknown): void {
    this.#invocation?.state.stop(reason);
  }

  close(): void {
    this.#invocation?.state.inbox.close();
  }

  /** The output, once the turns have ended; unlike `output` this changes nothing. */
  get settled(): Promise<CallerOutput> {
    return this.#settled.promise;
  }

  output(): Promise<CallerOutput> {
    return forCaller(this.result());
  }

  /** As `output`, for the code between the connection and its caller. */
  result(): Promise<CallerOutput> {
    this.close();
    this.cursor.unbound();
    return this.#settled.promise;
  }

  #parse(value: Input): Input {
    const input = withoutAutoId(this.#spec, parseInput(value));
    checkRequestId(this.#spec, input);
    this.#spec.checkInput(input);
    // Refused here, an invalid tool leaves no run behind.
    if (input.tools !== undefined) callerTools(input.tools);
    this.#checkSetup();
    if (this.#invocation?.state.request.remote !== true) return input;
    const { message, resume } = input;
    return {
      ...input,
      ...(message && { message: withoutOptions(message) }),
      ...(resume && { resume: withoutExpiry(resume) }),
    };
  }

  /**
   * Refuses the input of an agent that is not set up. The app's owner gets the error too, because a remote caller gets only
   * its redacted form.
   */
  #checkSetup(): void {
    const { model, remote } = this.#invocation?.state.request ?? {};
    try {
      this.#spec.checkSetup?.(model);
    } catch (error) {
      if (remote === true) this.#host.report(error, { phase: 'turn', agent: this.#spec.name });
      throw error;
    }
  }

  async #detach(input?: Input): Promise<CallerOutput> {
    if (this.#invocation === undefined) return await this.#settled.promise;
    const output = await this.#invocation.detach(input);
    return this.#finish(output);
  }

  #finish(given: Output): CallerOutput {
    const output = describeOutput(given);
    this.#end();
    this.#settled.resolve(output);
    this.cursor.close();
    return output;
  }

  #fail(error: unknown): void {
    // The connection has ended with a detach: a later failure of the run is not its own.
    if (this.#isSettled) return;
    this.#end();
    this.#settled.reject(error);
    this.cursor.fail(error);
  }

  #end(): void {
    this.#isSettled = true;
    this.#readerTimeout?.end();
  }

  #watch(sent: Promise<void>): void {
    this.#readerTimeout ??= createReaderTimeout(this.#host.clock, () =>
      this.cursor.fail(readerGone()),
    );
    this.#readerTimeout.watch(sent);
  }
}

// A caller that reads again gets the unread chunks first, and then this error.
function readerGone(): WaymarkError {
  return new WaymarkError(
    'OUT_OF_RANGE',
    'The chunks were not read for five minutes, so the turn continued without waiting. Read the answer from its output.',
  );
}

export function textInput(text: string): Input {
  return { message: { role: 'user', content: [{ text }] } };
}

/** How long a turn waits for a caller that reads nothing. */
const timeoutMs = 5 * 60_000;

/** Watches sends that wait for a slow caller, and calls `giveUp` when sends have waited for the timeout and the caller has read nothing meanwhile. */
function createReaderTimeout(clock: Clock, giveUp: () => void) {
  let waiting = 0;
  let lastTaken = 0;
  let stopLooking: (() => void) | undefined;

  const end = (): void => {
    stopLooking?.();
    stopLooking = undefined;
  };
  const look = (): void => {
    if (waiting === 0) end();
    else if (clock.now() - lastTaken >= timeoutMs) giveUp();
  };
  const taken = (): void => {
    waiting--;
    lastTaken = clock.now();
  };
  return {
    watch(sent: Promise<void>): void {
      if (waiting++ === 0) lastTaken = clock.now();
      // One interval for all sends: a timer for each chunk would cost more than the chunk.
      stopLooking ??= clock.every(timeoutMs / 10, look);
      sent.then(taken, taken);
    },
    end,
  };
}

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
    this.stream = new TurnChunks(connection.cursor, () => this.#leave());
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
      this.#connection.cursor.fail(error);
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

/** The chunks of a connection; the end of a read or of the chunks leaves it. */
class TurnChunks implements AsyncIterableIterator<Chunk, undefined> {
  readonly #cursor: CallerCursor;
  readonly #leave: () => Promise<void>;
  #hasLeft = false;

  constructor(cursor: CallerCursor, leave: () => Promise<void>) {
    this.#cursor = cursor;
    this.#leave = leave;
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  next(): Promise<IteratorResult<Chunk, undefined>> {
    if (this.#hasLeft) return Promise.resolve(done);
    // Unread chunks are handed out directly: an async function around each would cost more than the chunk.
    const isThere = this.#cursor.hasNext;
    const next = this.#cursor.next();
    return isThere ? next : next.then(this.#onNext, this.#onError);
  }

  async return(): Promise<IteratorResult<Chunk, undefined>> {
    return await this.#end();
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
