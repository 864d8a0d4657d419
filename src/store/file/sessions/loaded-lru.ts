import type { SessionTree } from './session-tree.ts';

/** How many bytes of journals may have their states in memory. */
const limit = 64 * 1024 * 1024;

/** The families whose states are in memory, the one used last at the end. Beyond the limit the first ones let go of theirs. */
export class LoadedLru {
  readonly #families = new Map<SessionTree, number>();
  #bytes = 0;

  use(family: SessionTree): void {
    const bytes = family.journal.size;
    this.#bytes += bytes - (this.#families.get(family) ?? 0);
    this.#families.delete(family);
    this.#families.set(family, bytes);
    for (const [other, size] of this.#families) {
      if (this.#bytes <= limit || other === family) break;
      other.states.cool();
      this.#families.delete(other);
      this.#bytes -= size;
    }
  }
}
