import type { AgentTypes, SnapshotOf } from '../api/types.ts';
import type { Json } from '../core/json/json.ts';
import { jsonEqual } from '../core/json/json.ts';
import type { StoreAgent } from './session-data.ts';

/** The timeline of a session, fetched page by page and kept. */
export class TimelinePages<Types extends AgentTypes> {
  readonly #agent: StoreAgent<Types>;
  readonly #sessionId: string;
  // The cursor that led to each page, and what stood there.
  #pages: { readonly cursor: string | undefined; readonly items: readonly SnapshotOf<Types>[] }[] =
    [];

  constructor(agent: StoreAgent<Types>, sessionId: string) {
    this.#agent = agent;
    this.#sessionId = sessionId;
  }

  get items(): readonly SnapshotOf<Types>[] {
    return this.#pages.flatMap(({ items }) => items);
  }

  /** Reads all of it again, or only the end, where a turn adds to it; what did not change stays the same object. */
  async refresh(what: 'all' | 'end'): Promise<readonly SnapshotOf<Types>[]> {
    const known = new Map(this.items.map((snapshot) => [snapshot.snapshotId, snapshot]));
    const kept = what === 'end' ? this.#pages.slice(0, -1) : [];
    const pages = [...kept];
    let cursor = what === 'end' ? this.#pages.at(-1)?.cursor : undefined;
    do {
      const page = await this.#agent.listSnapshots(this.#sessionId, {
        includeOrphaned: true,
        limit: 200,
        ...(cursor !== undefined && { cursor }),
      });
      const items = page.items.map((item) => sameAs(known.get(item.snapshotId), item));
      pages.push({ cursor, items });
      cursor = page.next;
    } while (cursor !== undefined);
    this.#pages = pages;
    return this.items;
  }

  /** Replaces a snapshot that has changed (its label, for example). */
  replace(changed: SnapshotOf<Types>): readonly SnapshotOf<Types>[] {
    const { state: _, ...snapshot } = changed;
    this.#pages = this.#pages.map(({ cursor, items }) => ({
      cursor,
      items: items.map((item) => (item.snapshotId === snapshot.snapshotId ? snapshot : item)),
    }));
    return this.items;
  }
}

function sameAs<T>(before: T | undefined, now: T): T {
  return before !== undefined && jsonEqual(before as Json, now as Json) ? before : now;
}
