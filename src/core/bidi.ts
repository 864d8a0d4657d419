import { createChannel } from './async/channel.ts';
import { handled } from './async/handled.ts';
import { abortError, linkSignals, throwIfAborted } from './async/signal.ts';
import { toErrorBody, WaymarkError } from './error.ts';
import { type Clock, systemClock } from './time/clock.ts';

/** The caller's end of a running bidirectional action. */
export interface Connection<In, Out, Chunk> {
  /** Sends an input, waiting while too many are queued; FAILED_PRECONDITION once closed or finished. */
  send(input: In): Promise<void>;
  /** The chunks as they come; may be left and taken up again. It throws what the action failed with. */
  receive(): AsyncIterable<Chunk>;
  /** Says that no more inputs come; those already sent are still worked on. */
  close(): void;
  /** Closes the input and gives the result; the action no longer waits for its chunks to be read. */
  output(): Promise<Out>;
  /** Resolves when the action has ended, well or not. */
  readonly done: Promise<void>;
  /** Tells the action to stop; if it still comes to a result, that stands. */
  abort(reason?: unknown): void;
}

/** The action's end of a connection. */
export interface ConnectionIo<In, Chunk, Init = undefined> {
  readonly init: Init;
  /** The inputs in order; ends after the last one, or when the connection is aborted. */
  readonly inputs: AsyncIterable<In>;
  /** Sends a chunk, waiting for a slow reader; after an abort it is dropped, and this returns at once. */
  send(chunk: Chunk): Promise<void>;
  readonly signal: AbortSignal;
}

/** How a connection is opened. */
export interface ConnectionOptions<Init = undefined> {
  readonly init?: Init;
  /** Aborts the connection, as `abort` does. */
  readonly signal?: AbortSignal | undefined;
  /**
   * How many inputs, and how many chunks, are held before their sender waits.
   * @default 16
   */
  readonly capacity?: number | undefined;
  /**
   * How long after an abort the action may take to come to an end before the connection ends without it.
   * @default 5000
   */
  readonly graceMs?: number | undefined;
  /** @default systemClock */
  readonly clock?: Clock | undefined;
}

/** Starts a bidirectional action and gives the caller's end. */
export function createConnection<In, Out, Chunk, Init = undefined>(
  run: (io: ConnectionIo<In, Chunk, Init>) => Promise<Out>,
  options: ConnectionOptions<Init> = {},
): Connection<In, Out, Chunk> {
  const { capacity, graceMs = 5000, clock = systemClock } = options;
  const inputs = createChannel<In>({ capacity });
  const chunks = createChannel<Chunk>({ capacity });
  const result = Promise.withResolvers<Out>();
  const done = Promise.withResolvers<void>();
  const link = linkSignals(options.signal);
  const { signal } = link;
  const grace = new AbortController();
  let finished = false;

  const finish = (settle: () => void): void => {
    if (finished) return;
    finished = true;
    link.release();
    signal.removeEventListener('abort', onAbort);
    grace.abort();
    inputs.fail(ended());
    settle();
    done.resolve();
  };
  const succeed = (output: Out): void =>
    finish(() => {
      result.resolve(output);
      chunks.close();
    });
  const fail = (error: unknown): void =>
    finish(() => {
      result.reject(error);
      chunks.fail(error);
    });
  const onAbort = (): void => {
    inputs.close();
    clock.sleep(graceMs, grace.signal).then(
      () => fail(abortError(signal)),
      () => {}, // the action came to its end
    );
  };

  const send = (chunk: Chunk): Promise<void> => {
    if (signal.aborted || chunks.trySend(chunk)) return sent;
    const waiting = chunks.send(chunk, signal).catch((error: unknown) => {
      if (!signal.aborted) throw error;
    });
    return handled(waiting);
  };

  void handled(result.promise);
  if (signal.aborted) {
    fail(abortError(signal));
  } else {
    signal.addEventListener('abort', onAbort);
    // Every caller either gives an init or has one of type undefined.
    const init = options.init as Init;
    const io = { init, inputs: untilAborted(inputs, signal), send, signal };
    const start = async (): Promise<Out> => {
      await null;
      throwIfAborted(signal);
      return run(io);
    };
    start().then(succeed, (error: unknown) =>
      fail(isAbort(error, signal) ? abortError(signal) : error),
    );
  }

  return {
    send: (input) => handled(inputs.send(input)),
    receive: () => ({ [Symbol.asyncIterator]: () => chunks[Symbol.asyncIterator]() }),
    close: () => inputs.close(),
    output() {
      inputs.close();
      chunks.unbound();
      return result.promise;
    },
    done: done.promise,
    abort(reason) {
      if (!finished) link.abort(reason);
    },
  };
}

const sent = Promise.resolve();

function ended(): WaymarkError {
  return new WaymarkError(
    'FAILED_PRECONDITION',
    'The connection has ended: open a new one to send more.',
  );
}

// What a fetch or a stream throws when it is told to stop says less than why it was told to.
function isAbort(error: unknown, signal: AbortSignal): boolean {
  return signal.aborted && (error === signal.reason || toErrorBody(error).status === 'CANCELLED');
}

// Inputs that were queued before an abort are not begun after it.
function untilAborted<T>(inputs: AsyncIterable<T>, signal: AbortSignal): AsyncIterable<T> {
  const end = Promise.resolve({ value: undefined, done: true as const });
  return {
    [Symbol.asyncIterator]() {
      const iterator = inputs[Symbol.asyncIterator]();
      return { next: () => (signal.aborted ? end : iterator.next()), return: () => end };
    },
  };
}
