import type { AgentTypes, SnapshotOf } from '../api/types.ts';
import type { Json } from '../core/json/json.ts';
import { jsonEqual } from '../core/json/json.ts';
import type { StoreAgent } from './session-data.ts';

/** How many snapshots are read with one request, at most. */
const mostOfPage = 200;

/** The end of the timeline of a session, or all of it: read from its end in pages, and kept. */
export class TimelinePages<Types extends AgentTypes> {
  readonly #agent: StoreAgent<Types>;
  readonly #sessionId: string;
  readonly #portion: number;
  /** By index ascending. */
  #items: readonly SnapshotOf<Types>[] = [];
  /** Leads to those before the first of them. */
  #earlier: string | undefined;

  /** @param portion How many are read at first, and each time when earlier ones are read. */
  constructor(agent: StoreAgent<Types>, sessionId: string, portion: number) {
    this.#agent = agent;
    this.#sessionId = sessionId;
    this.#portion = portion;
  }

  get items(): readonly SnapshotOf<Types>[] {
    return this.#items;
  }

  get hasEarlier(): boolean {
    return this.#earlier !== undefined;
  }

  /** Reads what is there again, or only the end, where a turn adds to it; what did not change stays the same object. */
  async refresh(what: 'all' | 'end'): Promise<void> {
    const first = this.#items[0]?.index ?? Number.POSITIVE_INFINITY;
    const last = this.#items.at(-1)?.index;
    const read = await this.#read(
      undefined,
      what === 'end' && last !== undefined
        ? { most: 1, upTo: last }
        : { most: this.#portion, upTo: first },
    );
    const start = read.items[0]?.index ?? 0;
    const kept = what === 'end' ? this.#items.filter(({ index }) => index < start) : [];
    if (kept.length === 0) this.#earlier = read.next;
    this.#items = [...kept, ...read.items];
  }

  /** Reads those before the first that is there. */
  async readEarlier(): Promise<void> {
    if (this.#earlier === undefined) return;
    const want = { most: this.#portion, upTo: Number.POSITIVE_INFINITY };
    const read = await this.#read(this.#earlier, want);
    const start = this.#items[0]?.index ?? Number.POSITIVE_INFINITY;
    this.#items = [...read.items.filter(({ index }) => index < start), ...this.#items];
    this.#earlier = read.next;
  }

  /** Replaces a snapshot that has changed (its label, for example). */
  replace(changed: SnapshotOf<Types>): void {
    const { state: _, ...snapshot } = changed;
    this.#items = this.#items.map((item) =>
      item.snapshotId === snapshot.snapshotId ? snapshot : item,
    );
  }

  /** Reads back from a cursor until there are enough, and those from index `upTo` on are among them. */
  async #read(
    start: string | undefined,
    { most, upTo }: { readonly most: number; readonly upTo: number },
  ): Promise<{ readonly items: SnapshotOf<Types>[]; readonly next: string | undefined }> {
    const known = new Map(this.#items.map((snapshot) => [snapshot.snapshotId, snapshot]));
    const items: SnapshotOf<Types>[] = [];
    let cursor = start;
    let limit = Math.min(mostOfPage, this.#portion);
    let isOldestFirst = false;
    do {
      const page = await this.#agent.listSnapshots(this.#sessionId, {
        includeOrphaned: true,
        newestFirst: true,
        limit,
        ...(cursor !== undefined && { cursor }),
      });
      const [one, two] = page.items;
      // A server or store of an earlier version does not know the option: then all of it is read.
      if (cursor === start && one && two && one.index < two.index) isOldestFirst = true;
      items.push(...page.items.map((item) => sameAs(known.get(item.snapshotId), item)));
      cursor = page.next;
      // Indexes may have gaps, so this is at least as many as are missing.
      const missing = Math.max(most - items.length, (items.at(-1)?.index ?? 0) - upTo);
      if (isOldestFirst) limit = mostOfPage;
      else if (missing <= 0) break;
      else limit = Math.min(mostOfPage, missing);
    } while (cursor !== undefined);
    return { items: isOldestFirst ? items : items.reverse(), next: cursor };
  }
}

function sameAs<T>(before: T | undefined, now: T): T {
  return before !== undefined && jsonEqual(before as Json, now as Json) ? before : now;
}
