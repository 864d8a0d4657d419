import { throwIfAborted } from '../core/async/signal.ts';

/** Open requests of one process: in all, for one owner, and to one host. */
const most = { all: 64, owner: 16, host: 8 };

interface Delivery {
  readonly owner: string | undefined;
  readonly host: string;
}

interface Waiting {
  readonly keys: readonly string[];
  readonly start: () => void;
}

/**
 * Bounds the requests that deliveries have open at a time, so that receivers which do not answer take neither all descriptors of
 * the process nor the deliveries of others. The rest waits, in order.
 */
export class DeliverySlots {
  readonly #open = new Map<string, number>();
  readonly #waiting = new Set<Waiting>();

  /** Runs the work as soon as there is a slot; rejects if the signal comes first. */
  async run<Value>(
    { owner, host }: Delivery,
    signal: AbortSignal,
    work: () => Promise<Value>,
  ): Promise<Value> {
    const keys = ['all', `owner ${owner ?? ''}`, `host ${host}`];
    await this.#acquire(keys, signal);
    try {
      return await work();
    } finally {
      this.#count(keys, -1);
      this.#startWaiting();
    }
  }

  async #acquire(keys: readonly string[], signal: AbortSignal): Promise<void> {
    throwIfAborted(signal);
    if (this.#fits(keys)) return this.#count(keys, 1);
    const started = Promise.withResolvers<void>();
    const waiting = { keys, start: started.resolve };
    this.#waiting.add(waiting);
    signal.addEventListener('abort', started.resolve as () => void, { once: true });
    await started.promise;
    signal.removeEventListener('abort', started.resolve as () => void);
    // Deliveries that are still in the list were not started.
    if (this.#waiting.delete(waiting)) throwIfAborted(signal);
  }

  #startWaiting(): void {
    for (const waiting of this.#waiting) {
      if (!this.#fits(waiting.keys)) continue;
      this.#waiting.delete(waiting);
      this.#count(waiting.keys, 1);
      waiting.start();
    }
  }

  #fits([all = '', owner = '', host = '']: readonly string[]): boolean {
    const open = (key: string): number => this.#open.get(key) ?? 0;
    return open(all) < most.all && open(owner) < most.owner && open(host) < most.host;
  }

  #count(keys: readonly string[], by: 1 | -1): void {
    for (const key of keys) {
      const now = (this.#open.get(key) ?? 0) + by;
      if (now === 0) this.#open.delete(key);
      else this.#open.set(key, now);
    }
  }
}
