import type { SessionTree } from './session-tree.ts';

/** How many bytes of journals may have their states in memory. */
const limit = 64 * 1024 * 1024;

/** The families whose states are in memory, the one used last at the end. Beyond the limit the first ones are unloaded. */
export class LoadedLru {
  readonly #trees = new Map<SessionTree, number>();
  #bytes = 0;

  use(tree: SessionTree): void {
    const bytes = tree.journal.size;
    this.#bytes += bytes - (this.#trees.get(tree) ?? 0);
    this.#trees.delete(tree);
    this.#trees.set(tree, bytes);
    for (const [other, size] of this.#trees) {
      if (this.#bytes <= limit || other === tree) break;
      other.states.cool();
      this.#trees.delete(other);
      this.#bytes -= size;
    }
  }
}
