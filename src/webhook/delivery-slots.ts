import { throwIfAborted } from '../core/async/signal.ts';

/** The names under which open requests are counted, and how many each allows. */
type Limits = ReadonlyMap<string, number>;

/**
 * Bounds the requests that deliveries have open at a time, so that receivers which do not answer take neither all descriptors of
 * the process nor the deliveries of others. The rest waits, in order.
 */
export class DeliverySlots {
  readonly #open = new Map<string, number>();
  readonly #waiting = new Set<{ readonly limits: Limits; readonly start: () => void }>();

  /** Runs the work as soon as there is a slot; rejects if the signal comes first. */
  async run<Value>(
    { owner = '', host }: { readonly owner: string | undefined; readonly host: string },
    signal: AbortSignal,
    work: () => Promise<Value>,
  ): Promise<Value> {
    const limits = new Map([['all', 64]]).set(`owner ${owner}`, 16).set(`host ${host}`, 8);
    await this.#acquire(limits, signal);
    try {
      return await work();
    } finally {
      this.#count(limits, -1);
      this.#startWaiting();
    }
  }

  async #acquire(limits: Limits, signal: AbortSignal): Promise<void> {
    throwIfAborted(signal);
    if (this.#fits(limits)) return this.#count(limits, 1);
    const started = Promise.withResolvers<void>();
    const waiting = { limits, start: started.resolve };
    this.#waiting.add(waiting);
    signal.addEventListener('abort', started.resolve as () => void, { once: true });
    await started.promise;
    signal.removeEventListener('abort', started.resolve as () => void);
    // Deliveries that are still in the list were not started.
    if (this.#waiting.delete(waiting)) throwIfAborted(signal);
  }

  #startWaiting(): void {
    for (const waiting of this.#waiting) {
      if (!this.#fits(waiting.limits)) continue;
      this.#waiting.delete(waiting);
      this.#count(waiting.limits, 1);
      waiting.start();
    }
  }

  #fits(limits: Limits): boolean {
    return [...limits].every(([key, most]) => (this.#open.get(key) ?? 0) < most);
  }

  #count(limits: Limits, by: 1 | -1): void {
    for (const key of limits.keys()) {
      const now = (this.#open.get(key) ?? 0) + by;
      if (now === 0) this.#open.delete(key);
      else this.#open.set(key, now);
    }
  }
}
