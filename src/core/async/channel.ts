import { failLater, withCaller } from './promises.ts';

/** An unbounded queue between producers and consumers. */
export interface Channel<T> extends AsyncIterable<T> {
  /** Adds a value; does nothing when the channel is closed. */
  push(value: T): void;
  /** Takes no more values. Those already pushed can still be read. */
  close(): void;
  /** As `close`; consumers get the error after the remaining values. */
  fail(error: unknown): void;
  /** Iterates over the values. Leaving the loop early keeps the rest for the next loop. */
  [Symbol.asyncIterator](): AsyncIterator<T, undefined>;
}

/** Creates a channel. Values go to consumers in the order in which they asked. */
export function createChannel<T>(): Channel<T> {
  return new UnboundedChannel();
}

type Receiver<T> = (
  result: IteratorResult<T, undefined> | Promise<IteratorResult<T, undefined>>,
) => void;

const done = { value: undefined, done: true } as const;

class UnboundedChannel<T> implements Channel<T> {
  #values: T[] = [];
  #read = 0;
  // Receivers wait only while there are no values.
  readonly #receivers: Receiver<T>[] = [];
  #ended: { readonly error?: unknown } | undefined;

  push(value: T): void {
    if (this.#ended) return;
    const receiver = this.#receivers.shift();
    if (receiver) receiver({ value, done: false });
    else this.#values.push(value);
  }

  close(): void {
    this.#end({});
  }

  fail(error: unknown): void {
    this.#end({ error });
  }

  [Symbol.asyncIterator](): AsyncIterator<T, undefined> {
    return { next: () => this.#receive(), return: () => Promise.resolve(done) };
  }

  #receive(): Promise<IteratorResult<T, undefined>> {
    if (this.#read < this.#values.length) {
      return Promise.resolve({ value: this.#shift(), done: false });
    }
    if (!this.#ended) {
      return new Promise((accept) => this.#receivers.push(accept));
    }
    return 'error' in this.#ended
      ? Promise.reject(withCaller(this.#ended.error))
      : Promise.resolve(done);
  }

  #shift(): T {
    const value = this.#values[this.#read++] as T;
    // Removing each value from the front would move all others.
    if (this.#read === this.#values.length || this.#read > 1024) {
      this.#values = this.#values.slice(this.#read);
      this.#read = 0;
    }
    return value;
  }

  #end(ended: { readonly error?: unknown }): void {
    if (this.#ended) return;
    this.#ended = ended;
    for (const accept of this.#receivers.splice(0)) {
      accept('error' in ended ? failLater(ended.error) : done);
    }
  }
}
