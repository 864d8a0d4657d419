import { WaymarkError } from '../../core/error.ts';
import type { Input } from '../../protocol/turn.ts';

/** The longest queue of a connection. */
const maxQueued = 1_000;

/** An input that waits for its turn. */
export interface QueuedInput {
  readonly input: Input;
  /** Tells the sender whether it was accepted; absent if the sender does not wait. */
  readonly answer?: {
    readonly accept: () => void;
    readonly refuse: (error: unknown) => void;
  };
}

/** The inputs of an invocation that have not been worked on yet. */
export class Inbox {
  readonly #queue: QueuedInput[] = [];
  #closed = false;
  #held = false;
  #waiting: (() => void) | undefined;

  get closed(): boolean {
    return this.#closed;
  }

  /** What is queued, oldest first. */
  get queued(): readonly Input[] {
    return this.#queue.map(({ input }) => input);
  }

  push(input: Input): void {
    this.#push({ input });
  }

  /** Queues an input. Resolves when its turn has started or it was dropped; rejects when it was refused. */
  offer(input: Input): Promise<void> {
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    this.#push({ input, answer: { accept: resolve, refuse: reject } });
    return promise;
  }

  #push(queued: QueuedInput): void {
    if (this.#closed || this.#held) throw closedError();
    if (this.#queue.length >= maxQueued) {
      throw new WaymarkError(
        'RESOURCE_EXHAUSTED',
        `${maxQueued} inputs are queued already. Wait for a turn to end before sending more.`,
      );
    }
    this.#queue.push(queued);
    this.#wake();
  }

  /** Refuses new inputs until the returned function is called. Throws if it would have refused these inputs, too. */
  hold(inputs: number): () => void {
    if (this.#held || (this.#closed && inputs > 0)) throw closedError();
    this.#held = true;
    return () => {
      this.#held = false;
    };
  }

  /** Queues these inputs, which have been accepted already, and closes. */
  end(inputs: readonly Input[]): void {
    // The run has accepted all queued inputs.
    for (const { answer } of this.#queue) answer?.accept();
    this.#queue.push(...inputs.map((input) => ({ input })));
    this.close();
  }

  /** Takes no more inputs. Queued inputs are still run. */
  close(): void {
    this.#closed = true;
    this.#wake();
  }

  /** Closes when the signal aborts; the returned function ends that. */
  closeWith(signal: AbortSignal): () => void {
    const close = (): void => this.close();
    signal.addEventListener('abort', close);
    return () => signal.removeEventListener('abort', close);
  }

  /** Puts an input back, to be run next. */
  putBack(input: Input): void {
    this.#queue.unshift({ input });
    this.#wake();
  }

  /** Closes and drops the queued inputs. */
  clear(): void {
    for (const { answer } of this.#queue.splice(0)) answer?.accept();
    this.close();
  }

  /** Whether an input waits to be taken. */
  get hasNext(): boolean {
    return this.#queue.length > 0;
  }

  /** Resolves when an input may have come, or no more inputs come. */
  changed(): Promise<void> {
    return new Promise((resolve) => {
      this.#waiting = resolve;
    });
  }

  /** Takes the next input. */
  take(): QueuedInput | undefined {
    return this.#queue.shift();
  }

  #wake(): void {
    this.#waiting?.();
    this.#waiting = undefined;
  }
}

/** The error of using a connection that has ended. */
export function closedError(): WaymarkError {
  return new WaymarkError(
    'FAILED_PRECONDITION',
    'The connection is closed and takes no more inputs. Open a new one.',
  );
}
