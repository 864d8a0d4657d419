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
