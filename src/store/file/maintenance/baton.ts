/** Is held by the one that uses the thread, so that of many at work only one does something in a step. */
export class Baton {
  #isFree = true;
  readonly #waiting: (() => void)[] = [];

  async take(): Promise<void> {
    if (this.#isFree) this.#isFree = false;
    else await new Promise<void>((resolve) => this.#waiting.push(resolve));
  }

  give(): void {
    const next = this.#waiting.shift();
    if (next === undefined) this.#isFree = true;
    else next();
  }
}
