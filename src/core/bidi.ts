import { createChannel } from './channel.ts';
import { type Clock, systemClock } from './clock.ts';
import { toWaymarkError, WaymarkError } from './error.ts';
import { abortError, linkSignals } from './signal.ts';

/** The caller's end of a running bidirectional action. */
export interface Connection<In, Out, Chunk> {
  /** Sends an input, waiting while too many are queued; FAILED_PRECONDITION once closed or finished. */
  send(input: In): Promise<void>;
  /** The chunks as they come; may be left and taken up again. It throws what the action failed with. */
  receive(): AsyncIterable<Chunk>;
  /** Says that no more inputs come; those already sent are still worked on. */
  close(): void;
  /** Closes the input and gives the result; the action no longer waits for chunks to be read. */
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
  readonly signal?: AbortSignal | undefined;
  /**
   * How many inputs, and how many chunks, are held before the sender waits.
   * @default 16
   */
  readonly capacity?: number | undefined;
  /**
   * How long after an abort the action may take to come to an end before `output` rejects without it.
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
  const link = linkSignals(options.signal);
  const { signal } = link;
  const settled = Promise.withResolvers<Out>();
  const done = Promise.withResolvers<void>();
  const graceTimer = new AbortController();
  let finished = false;

  const finish = (end: () => void): void => {
    if (finished) return;
    finished = true;
    link[Symbol.dispose]();
    signal.removeEventListener('abort', onAbort);
    graceTimer.abort();
    inputs.fail(
      new WaymarkError(
        'FAILED_PRECONDITION',
        'The connection has ended: open a new one to send more.',
      ),
    );
    end();
    done.resolve();
  };
  const succeed = (output: Out): void =>
    finish(() => {
      settled.resolve(output);
      chunks.close();
    });
  const fail = (error: unknown): void =>
    finish(() => {
      settled.reject(error);
      chunks.fail(error);
    });
  const onAbort = (): void => {
    inputs.close();
    clock.sleep(graceMs, graceTimer.signal).then(
      () => fail(abortError(signal)),
      () => {}, // the action ended by itself
    );
  };

  const send = async (chunk: Chunk): Promise<void> => {
    if (signal.aborted) return;
    try {
      await chunks.send(chunk, signal);
    } catch (error) {
      if (!signal.aborted) throw error;
    }
  };

  // Nobody has to look at a result; an unhandled rejection would end the process.
  settled.promise.catch(() => {});
  if (signal.aborted) {
    fail(abortError(signal));
  } else {
    signal.addEventListener('abort', onAbort, { once: true });
    const io = {
      init: options.init as Init,
      inputs: untilAborted(inputs, signal),
      send: (chunk: Chunk) => handled(send(chunk)),
      signal,
    };
    Promise.resolve()
      .then(() => run(io))
      .then(succeed, (error: unknown) => fail(toWaymarkError(error)));
  }

  return {
    send: (input) => handled(inputs.send(input)),
    receive: () => chunks,
    close: () => inputs.close(),
    output() {
      inputs.close();
      chunks.unbound();
      return settled.promise;
    },
    done: done.promise,
    abort: (reason) => {
      if (!finished) link.abort(reason);
    },
  };
}

function handled<T>(promise: Promise<T>): Promise<T> {
  promise.catch(() => {});
  return promise;
}

// Inputs that were queued before an abort are not begun after it.
function untilAborted<T>(inputs: AsyncIterable<T>, signal: AbortSignal): AsyncIterable<T> {
  return {
    [Symbol.asyncIterator]() {
      const iterator = inputs[Symbol.asyncIterator]();
      return {
        next: async () => (signal.aborted ? { value: undefined, done: true } : iterator.next()),
        return: async () => ({ value: undefined, done: true }),
      };
    },
  };
}
