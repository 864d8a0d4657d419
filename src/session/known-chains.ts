import type { Link } from './compact-history.ts';

/** One of so many messages is remembered for good. */
const every = 64;
/** How many of the others are. */
const most = 256;

/**
 * Chains of compact histories, by where they ended. It remembers the last ones, and on each path one of every 64 messages:
 * with all of them, a long session would take twice the memory, and most are needed once, right after they were computed.
 */
export class KnownChains {
  readonly #chains = new Map<Link, string>();
  /** Those that will be forgotten, the oldest at `#next`. */
  readonly #recent: (Link | undefined)[] = [];
  #next = 0;

  /** The chain of the history that ended here, where it is remembered. */
  get(link: Link): string | undefined {
    return this.#chains.get(link);
  }

  /** Adds the chain of a history that was computed from one with `from` messages. */
  add(link: Link, chain: string, { length, from }: { length: number; from: number }): void {
    this.#chains.set(link, chain);
    if (Math.floor(length / every) > Math.floor(from / every)) return;
    const oldest = this.#recent[this.#next];
    if (oldest !== undefined) this.#chains.delete(oldest);
    this.#recent[this.#next] = link;
    this.#next = (this.#next + 1) % most;
  }

  /** Forgets everything. */
  clear(): void {
    this.#chains.clear();
    this.#recent.length = 0;
    this.#next = 0;
  }
}
