/** Marks a promise as handled, so that its rejection does not end the process. */
export function handled<T>(promise: Promise<T>): Promise<T> {
  promise.catch(() => {});
  return promise;
}

/** Does something with the first call; every call gets its result. */
export function once<T>(work: () => Promise<T>): () => Promise<T> {
  let result: Promise<T> | undefined;
  return () => {
    result ??= work();
    return result;
  };
}

/** A promise for what needs no waiting: one for all, since a promise for each chunk would cost as much as the rest of it. */
export const settled: Promise<void> = Promise.resolve();

/**
 * Adds to the stack of an error the code that waits for the call, and returns the error. Errors that come out of a queue, a
 * timer or another turn do not have it, and of a deep one only the innermost frames are kept. Call it where the error leaves a public
 * call: in a `catch` of an async function or promise, whose callers the engine still knows. Nothing is captured before.
 */
export function withCaller(error: unknown): unknown {
  if (!(error instanceof Error) || typeof error.stack !== 'string') return error;
  const here: { stack?: string } = {};
  // Not every engine has it.
  Error.captureStackTrace?.(here, withCaller);
  const { stack } = error;
  const missing = here.stack?.split('\n').filter((line) => isFrame(line) && !stack.includes(line));
  if (missing?.length) error.stack = [stack, ...missing].join('\n');
  return error;
}

/** As {@link withCaller}, for the `catch` of a promise. */
export function rethrow(error: unknown): never {
  throw withCaller(error);
}

/**
 * A promise for one caller, whose code is in the stack of its rejection. A rejection that the caller ignores does not end the
 * process. The engine follows only promises that one function waits for, so each caller needs its own.
 */
export function forCaller<Value>(promise: Promise<Value>): Promise<Value> {
  const own = promise.catch((error: unknown) => {
    const located = withCaller(error);
    own.catch(() => {});
    throw located;
  });
  return own;
}

/** A rejection to resolve a waiting promise with. By the time it throws, the engine knows which code awaits that promise. */
export async function failLater(error: unknown): Promise<never> {
  await undefined;
  await undefined;
  throw withCaller(error);
}

function isFrame(line: string): boolean {
  return /^\s+at /.test(line) && !line.includes('node:internal');
}

/** Lets one piece of work run at a time, in the order in which they came. */
export class Mutex {
  #taken = false;
  readonly #waiting: (() => void)[] = [];

  /** Calls back when all that came before is over; at once when there is none. */
  after(callback: () => void): void | Promise<void> {
    return this.#taken ? this.run(async () => callback()) : callback();
  }

  /** Runs the work when all that came before it is over, however that ended; at once when there is none. */
  async run<Value>(work: () => Promise<Value>): Promise<Value> {
    if (this.#taken) await new Promise<void>((resolve) => this.#waiting.push(resolve));
    this.#taken = true;
    try {
      return await work();
    } finally {
      const next = this.#waiting.shift();
      if (next === undefined) this.#taken = false;
      // The lock stays taken, so that a caller who arrives now cannot overtake the queue.
      else next();
    }
  }
}
