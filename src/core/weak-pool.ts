/** Objects by the hash of their content, so that equal ones are held once, for as long as something else holds them. */
export class WeakPool<Item extends WeakKey> {
  readonly #items = new Map<string, WeakRef<Item>>();
  readonly #released = new FinalizationRegistry<string>((hash) => {
    if (this.#items.get(hash)?.deref() === undefined) this.#items.delete(hash);
  });

  /** The object with this hash: the one that is held, or a new one. */
  get(hash: string, make: () => Item): Item {
    const found = this.#items.get(hash)?.deref();
    if (found !== undefined) return found;
    const item = make();
    this.#items.set(hash, new WeakRef(item));
    this.#released.register(item, hash);
    return item;
  }
}
