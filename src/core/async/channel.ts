import { failLater } from './promises.ts';

type Receiver<T> = (
  result: IteratorResult<T, undefined> | Promise<IteratorResult<T, undefined>>,
) => void;

const done = { value: undefined, done: true } as const;

/**
 * A queue between producers and consumers, without a limit: a consumer that falls behind must not look to a producer like one that
 * is gone. Values go to consumers in the order in which they asked. Leaving a loop over it early keeps the rest for the next loop.
 */
export class Channel<T> implements AsyncIterable<T> {
  #values: T[] = [];
  #read = 0;
  // Receivers wait only while there are no values.
  readonly #receivers: Receiver<T>[] = [];
  #ended: { readonly error?: unknown } | undefined;

  /** Adds a value; does nothing when the channel is closed. */
  push(value: T): void {
    if (this.#ended) return;
    const receiver = this.#receivers.shift();
    if (receiver) receiver({ value, done: false });
    else this.#values.push(value);
  }

  /** Takes no more values. Those already pushed can still be read. */
  close(): void {
    this.#end({});
  }

  /** As `close`; consumers get the error after the remaining values. */
  fail(error: unknown): void {
    this.#end({ error });
  }

  [Symbol.asyncIterator](): AsyncIterator<T, undefined> {
    return { next: () => this.#receive(), return: () => Promise.resolve(done) };
  }

  #receive(): Promise<IteratorResult<T, undefined>> {
    return new Promise((accept) => {
      if (this.#read < this.#values.length) accept({ value: this.#shift(), done: false });
      else if (this.#ended) end(accept, this.#ended);
      else this.#receivers.push(accept);
    });
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
    for (const accept of this.#receivers.splice(0)) end(accept, ended);
  }
}

function end<T>(accept: Receiver<T>, ended: { readonly error?: unknown }): void {
  accept('error' in ended ? failLater(ended.error) : done);
}
