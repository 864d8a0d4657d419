import type { MemorySpan, MemorySupport, MemoryVersion } from '../../store/contract/store.ts';
import { isOnMemoryPath } from '../../store/rules/memory.ts';
import type { ScopeIndex } from './scope-index.ts';

/** From where a reader looks at memory. */
export interface Viewpoint {
  /** The path of the reader's session, whose family is read on this path only. */
  readonly path?: readonly MemorySpan[];
  readonly family?: string | undefined;
  /** Versions after this time are not visible, unless they are on the path. */
  readonly until?: number;
  /** Versions that the turn has written and not saved. */
  readonly pending?: readonly MemoryVersion[];
}

/** An entry as a reader sees it. */
export interface SeenEntry {
  /** Its newest visible version. */
  readonly version: MemoryVersion;
  readonly score: number;
}

/** Entries of one pass, so that the heads of their sessions are read at once. */
const batch = 64;

/** The visible versions of a scope. It reads the head of each family once. */
export class MemoryView {
  readonly #support: MemorySupport;
  readonly #index: ScopeIndex;
  readonly #viewpoint: Viewpoint;
  readonly #heads = new Map<string, readonly (readonly MemorySpan[])[]>();

  constructor(support: MemorySupport, index: ScopeIndex, viewpoint: Viewpoint) {
    this.#support = support;
    this.#index = index;
    this.#viewpoint = viewpoint;
  }

  /** The visible versions of an entry, oldest first. */
  async versions(entry: string): Promise<readonly MemoryVersion[]> {
    await this.#readHeads([entry]);
    return this.#visible(entry);
  }

  /** Visible entries among ranked versions, in their order, at most `limit`. A version counts only if it is the newest of its entry. */
  async entries(
    ranked: Iterable<{ readonly version: MemoryVersion; readonly score: number }>,
    limit: number,
  ): Promise<readonly SeenEntry[]> {
    const found: SeenEntry[] = [];
    const seen = new Set<string>();
    let some: SeenEntry[] = [];
    const take = async (): Promise<void> => {
      await this.#readHeads(some.map(({ version }) => version.entry));
      for (const each of some) {
        const { version } = each;
        const newest = this.#visible(version.entry).at(-1);
        if (newest?.id !== version.id || seen.has(version.entry)) continue;
        seen.add(version.entry);
        if (newest.value !== undefined && found.length < limit) found.push(each);
      }
      some = [];
    };
    for (const each of ranked) {
      if (found.length >= limit) break;
      if (!seen.has(each.version.entry)) some.push(each);
      if (some.length >= batch) await take();
    }
    await take();
    return found;
  }

  #visible(entry: string): readonly MemoryVersion[] {
    const pending = (this.#viewpoint.pending ?? []).filter((version) => version.entry === entry);
    const own = new Set(pending.map(({ id }) => id));
    const stored = this.#index.entry(entry).filter((each) => !own.has(each.id));
    return [...stored.filter((version) => this.#sees(version)), ...pending];
  }

  #sees({ source, createdAt }: MemoryVersion): boolean {
    const { path, family, until } = this.#viewpoint;
    const isEarly = until === undefined || createdAt <= until;
    if (source === undefined) return isEarly;
    if (path !== undefined && isOnMemoryPath(path, source)) return true;
    if (!isEarly || (path !== undefined && source.family === family)) return false;
    return (this.#heads.get(source.family) ?? []).some((head) => isOnMemoryPath(head, source));
  }

  /** Reads the heads of the families that have written versions of entries, where the reader's own path does not decide. */
  async #readHeads(entries: readonly string[]): Promise<void> {
    const families = new Set<string>();
    for (const entry of entries) {
      for (const { source } of this.#index.entry(entry)) {
        if (source !== undefined && !this.#heads.has(source.family)) families.add(source.family);
      }
    }
    const { path, family } = this.#viewpoint;
    if (path !== undefined && family !== undefined) families.delete(family);
    if (families.size === 0) return;
    const read = await this.#support.heads([...families]);
    for (const each of families) this.#heads.set(each, read.get(each) ?? []);
  }
}

/** Ranked versions of an index, and of a turn that has not saved its own. */
export function* newestFirst(
  index: ScopeIndex,
  pending: readonly MemoryVersion[] = [],
): Generator<{ readonly version: MemoryVersion; readonly score: number }> {
  for (const version of pending.toReversed()) yield { version, score: 0 };
  for (const version of index.versions.toReversed()) yield { version, score: 0 };
}
