/** A service outside, such as a bank: what it did is in its ledger, whatever the agent's store says. It does nothing twice under one key. */
export class Ledger {
  /** By idempotency key of the call: what was done, and how often it was asked for. */
  readonly done = new Map<string, { readonly id: string; readonly what: string; asked: number }>();
  /** By id: the keys under which it was undone. */
  readonly undone = new Map<string, Set<string>>();
  #fault: Error | undefined;

  do(what: string, key: string): { readonly id: string } {
    const known = this.done.get(key);
    if (known !== undefined) {
      known.asked++;
      return { id: known.id };
    }
    const id = `${what}-${this.done.size + 1}`;
    this.done.set(key, { id, what, asked: 1 });
    return { id };
  }

  undo(id: string, key: string): void {
    if (this.#fault !== undefined) throw this.#fault;
    const keys = this.undone.get(id) ?? new Set();
    this.undone.set(id, keys.add(key));
  }

  /** Refuses to undo from now on; without an error, it works again. */
  fail(error: Error | undefined): void {
    this.#fault = error;
  }

  /** What has been done and not undone. */
  get standing(): readonly string[] {
    return [...this.done.values()].map(({ id }) => id).filter((id) => !this.undone.has(id));
  }
}
