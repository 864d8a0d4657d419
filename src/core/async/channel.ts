import { WaymarkError } from '../error.ts';
import { settled } from './handled.ts';
import { abortError } from './signal.ts';

/** Under which a stream gives what waits in it, without waiting for more. */
export const waiting: unique symbol = Symbol('waiting');

/** A stream that can be asked for what waits in it: reading it one by one costs more than all else that is done with it. */
export interface Waiting<T> {
  [waiting](): readonly T[];
}

/** What waits in a stream, without waiting for more; nothing of a stream that cannot say. */
export function waitingIn<T>(stream: AsyncIterable<T> & Partial<Waiting<T>>): readonly T[] {
  return stream[waiting]?.() ?? [];
}

/** A queue between producers and consumers that makes producers wait when it is full. */
export interface Channel<T> extends AsyncIterable<T>, Waiting<T> {
  /** Whether it takes no more values; what it holds can still be received. */
  readonly closed: boolean;
  /** How many values wait to be received, those of waiting sends included. */
  readonly size: number;
  /** Puts a value in line and resolves once there is room; FAILED_PRECONDITION when closed. */
  send(value: T, signal?: AbortSignal): Promise<void>;
  /** Puts a value in line if that needs no waiting, and says whether it did. */
  trySend(value: T): boolean;
  /** Puts a value in line whether there is room or not, and waits for nobody; nothing happens when closed. */
  push(value: T): void;
  /** The next value, or `done` after the last one; values go to receivers in the order they asked. */
  receive(signal?: AbortSignal): Promise<IteratorResult<T, undefined>>;
  /** All values that wait to be received, those of waiting sends included. */
  [waiting](): readonly T[];
  /** Ends the channel: no new sends; everything sent before, waiting sends included, is still delivered. */
  close(): void;
  /** Ends the channel with an error: waiting sends get it at once, receivers after the buffered values. */
  fail(error: unknown): void;
  /** Lifts the limit: no send waits any more. */
  unbound(): void;
  /** Iterates over the values; leaving the loop early leaves the channel as it is. */
  [Symbol.asyncIterator](): AsyncIterator<T, undefined>;
}

/** A new channel, first in first out for any number of senders and receivers. */
export function createChannel<T>({
  capacity = 16,
  onWait,
}: {
  /**
   * How many values are held before a send waits; 0 makes each send wait for its receiver.
   * @default 16
   */
  readonly capacity?: number | undefined;
  /** Hears of each send that has to wait. */
  readonly onWait?: ((sent: Promise<void>) => void) | undefined;
} = {}): Channel<T> {
  if (!(capacity >= 0)) {
    throw new WaymarkError('INVALID_ARGUMENT', "A channel's capacity must be 0 or more.");
  }
  return new BufferedChannel(capacity, onWait);
}

interface Sender<T> {
  readonly value: T;
  readonly accept: () => void;
  readonly reject: (error: unknown) => void;
}

interface Receiver<T> {
  readonly accept: (result: IteratorResult<T, undefined>) => void;
  readonly reject: (error: unknown) => void;
}

const nothing = (): void => {};
const done = { value: undefined, done: true } as const;

class BufferedChannel<T> implements Channel<T> {
  #capacity: number;
  readonly #onWait: ((sent: Promise<void>) => void) | undefined;
  readonly #buffer = new Queue<T>();
  // Sets keep their order and give up an aborted waiter in constant time. Never are both non-empty.
  readonly #senders = new Set<Sender<T>>();
  readonly #receivers = new Set<Receiver<T>>();
  #closed = false;
  #failure: { readonly error: unknown } | undefined;

  constructor(capacity: number, onWait: ((sent: Promise<void>) => void) | undefined) {
    this.#capacity = capacity;
    this.#onWait = onWait;
  }

  get closed(): boolean {
    return this.#closed;
  }

  get size(): number {
    return this.#buffer.size + this.#senders.size;
  }

  send(value: T, signal?: AbortSignal): Promise<void> {
    if (this.#closed) return Promise.reject(this.#refusal());
    if (signal?.aborted) return Promise.reject(abortError(signal));
    if (this.trySend(value)) return settled;
    const sent = waitIn<Sender<T>, void>(this.#senders, signal, (accept, reject) => ({
      value,
      accept,
      reject,
    }));
    this.#onWait?.(sent);
    return sent;
  }

  trySend(value: T): boolean {
    if (this.#closed) return false;
    const receiver = first(this.#receivers);
    if (receiver) {
      this.#receivers.delete(receiver);
      receiver.accept({ value, done: false });
      return true;
    }
    if (this.#buffer.size >= this.#capacity) return false;
    this.#buffer.push(value);
    return true;
  }

  push(value: T): void {
    if (this.#closed || this.trySend(value)) return;
    this.#senders.add({ value, accept: nothing, reject: nothing });
  }

  [waiting](): readonly T[] {
    const values: T[] = [];
    while (this.#buffer.size > 0) values.push(this.#buffer.shift());
    for (const { value, accept } of this.#senders) {
      values.push(value);
      accept();
    }
    this.#senders.clear();
    return values;
  }

  receive(signal?: AbortSignal): Promise<IteratorResult<T, undefined>> {
    if (signal?.aborted) return Promise.reject(abortError(signal));
    if (this.#buffer.size > 0) {
      const value = this.#buffer.shift();
      this.#admit();
      return Promise.resolve({ value, done: false });
    }
    const sender = first(this.#senders);
    if (sender) {
      this.#senders.delete(sender);
      sender.accept();
      return Promise.resolve({ value: sender.value, done: false });
    }
    if (this.#failure) return Promise.reject(this.#failure.error);
    if (this.#closed) return Promise.resolve(done);
    return waitIn(this.#receivers, signal, (accept, reject) => ({ accept, reject }));
  }

  close(): void {
    if (this.#closed) return;
    this.#closed = true;
    for (const receiver of this.#receivers) receiver.accept(done);
    this.#receivers.clear();
  }

  fail(error: unknown): void {
    if (this.#failure) return;
    this.#closed = true;
    this.#failure = { error };
    for (const sender of this.#senders) sender.reject(error);
    this.#senders.clear();
    for (const receiver of this.#receivers) receiver.reject(error);
    this.#receivers.clear();
  }

  unbound(): void {
    this.#capacity = Number.POSITIVE_INFINITY;
    this.#admit();
  }

  [Symbol.asyncIterator](): AsyncIterator<T, undefined> {
    return {
      next: () => this.receive(),
      return: () => Promise.resolve(done),
    };
  }

  // Lets waiting sends move up into the buffer as far as there is room.
  #admit(): void {
    for (const sender of this.#senders) {
      if (this.#buffer.size >= this.#capacity) return;
      this.#senders.delete(sender);
      this.#buffer.push(sender.value);
      sender.accept();
    }
  }

  #refusal(): unknown {
    return this.#failure
      ? this.#failure.error
      : new WaymarkError('FAILED_PRECONDITION', 'The channel is closed: nothing more can be sent.');
  }
}

/** An array that is emptied from the front without moving what is left each time. */
class Queue<T> {
  #items: T[] = [];
  #head = 0;

  get size(): number {
    return this.#items.length - this.#head;
  }

  push(value: T): void {
    this.#items.push(value);
  }

  /** The oldest item; only to be called when there is one. */
  shift(): T {
    const value = this.#items[this.#head] as T;
    // Do not keep alive what was handed out.
    this.#items[this.#head++] = undefined as T;
    if (this.#head === this.#items.length) {
      this.#items = [];
      this.#head = 0;
    } else if (this.#head > 1024 && this.#head * 2 > this.#items.length) {
      this.#items = this.#items.slice(this.#head);
      this.#head = 0;
    }
    return value;
  }
}

function first<W>(waiters: Set<W>): W | undefined {
  if (waiters.size === 0) return undefined;
  for (const waiter of waiters) return waiter;
  return undefined;
}

function waitIn<W, R>(
  waiters: Set<W>,
  signal: AbortSignal | undefined,
  create: (accept: (result: R) => void, reject: (error: unknown) => void) => W,
): Promise<R> {
  return new Promise<R>((resolve, reject) => {
    if (!signal) {
      waiters.add(create(resolve, reject));
      return;
    }
    const onAbort = (): void => {
      waiters.delete(waiter);
      signal.removeEventListener('abort', onAbort);
      reject(abortError(signal));
    };
    const waiter = create(
      (result) => {
        signal.removeEventListener('abort', onAbort);
        resolve(result);
      },
      (error) => {
        signal.removeEventListener('abort', onAbort);
        reject(error);
      },
    );
    waiters.add(waiter);
    signal.addEventListener('abort', onAbort);
  });
}
