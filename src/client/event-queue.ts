import { failLater } from '../core/async/promises.ts';

type Result<T> = IteratorResult<T, undefined>;
type Reader<T> = (result: Result<T> | Promise<Result<T>>) => void;

/**
 * A queue of events that wait to be read, without a limit: a reader that falls behind must not look to the server like
 * one that is gone. Leaving a loop over it leaves it as it is, and the next loop continues there. Not core's channel: what that
 * can do besides (room, signals, waiting senders) is 500 bytes in every browser.
 */
export class EventQueue<T> implements AsyncIterable<T> {
  #waiting: T[] = [];
  #next = 0;
  readonly #readers: Reader<T>[] = [];
  #end: { readonly error?: unknown } | undefined;

  /** Puts a value in line; nothing happens after the end. */
  push(value: T): void {
    if (this.#end) return;
    const reader = this.#readers.shift();
    if (reader) reader({ value, done: false });
    else this.#waiting.push(value);
  }

  /** Ends the queue after the waiting events. */
  close(): void {
    this.#finish({});
  }

  /** Ends the queue with an error after the waiting events. */
  fail(error: unknown): void {
    this.#finish({ error });
  }

  [Symbol.asyncIterator](): AsyncIterator<T, undefined> {
    return { next: () => this.#read(), return: async () => ({ value: undefined, done: true }) };
  }

  #read(): Promise<IteratorResult<T, undefined>> {
    return new Promise((resolve) => {
      if (this.#next < this.#waiting.length) resolve({ value: this.#take(), done: false });
      else if (this.#end) settle(resolve, this.#end);
      else this.#readers.push(resolve);
    });
  }

  // Emptied from the front without moving what is left each time.
  #take(): T {
    const value = this.#waiting[this.#next++] as T;
    if (this.#next > 1024 || this.#next === this.#waiting.length) {
      this.#waiting = this.#waiting.slice(this.#next);
      this.#next = 0;
    }
    return value;
  }

  #finish(end: { readonly error?: unknown }): void {
    if (this.#end) return;
    this.#end = end;
    for (const reader of this.#readers.splice(0)) settle(reader, end);
  }
}

function settle<T>(reader: Reader<T>, end: { readonly error?: unknown }): void {
  reader('error' in end ? failLater(end.error) : { value: undefined, done: true });
}
