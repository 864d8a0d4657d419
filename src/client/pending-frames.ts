import type { WaymarkError } from '../core/error.ts';

interface Waiter {
  readonly resolve: () => void;
  readonly reject: (error: WaymarkError) => void;
}

/** Frames that were sent and wait for the server's word, told apart by their ref. */
export class PendingFrames {
  readonly #waiting = new Map<number, Waiter>();
  #last = 0;

  get size(): number {
    return this.#waiting.size;
  }

  /** A new ref, and how its frame is answered. */
  expect(): { readonly ref: number; readonly answered: Promise<void> } {
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const ref = ++this.#last;
    this.#waiting.set(ref, { resolve, reject });
    return { ref, answered: promise };
  }

  accept(ref: string | number): void {
    this.#take(ref)?.resolve();
  }

  refuse(ref: string | number, error: WaymarkError): void {
    this.#take(ref)?.reject(error);
  }

  /** No word comes any more: all are refused with the error, or without one accepted. */
  end(error: WaymarkError | undefined): void {
    for (const ref of [...this.#waiting.keys()]) {
      if (error) this.refuse(ref, error);
      else this.accept(ref);
    }
  }

  #take(ref: string | number): Waiter | undefined {
    const waiter = this.#waiting.get(Number(ref));
    this.#waiting.delete(Number(ref));
    return waiter;
  }
}
