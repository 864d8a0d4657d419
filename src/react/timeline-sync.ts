import type { AgentApi } from '../api/agent-api.ts';
import type { AgentTypes, SnapshotOf } from '../api/types.ts';
import { sameAs } from './session-data.ts';

/** How many snapshots are read with one request, at most. */
const maxPageSize = 200;

/** Which part of a timeline to read again: all of it, or the end, to which a turn adds. */
type What = 'all' | 'end';

/** The loaded part of a session's timeline, and the state of its refresh. */
interface Kept<Types extends AgentTypes> {
  readonly sessionId: string;
  /** By index ascending. */
  items: readonly SnapshotOf<Types>[];
  /** The cursor for the snapshots before the first one. */
  earlier?: string | undefined;
  refreshing?: Promise<void> | undefined;
  /** The part to read again after the current refresh. */
  next?: What | undefined;
  /** Whether to read the snapshots before the first one. */
  wantsEarlier?: boolean;
}

/** Keeps the timeline of the current session up to date once it has been requested. */
export class TimelineSync<Types extends AgentTypes> {
  readonly #agent: AgentApi<Types>;
  readonly #show: (kept: Kept<Types>) => void;
  /** How many are read at first, and each time when earlier ones are read. */
  readonly #portion: number;
  #wanted: boolean;
  #kept: Kept<Types> | undefined;

  constructor(agent: AgentApi<Types>, wanted: boolean | number, show: (kept: Kept<Types>) => void) {
    this.#agent = agent;
    this.#wanted = wanted !== false;
    this.#portion = typeof wanted === 'number' ? wanted : Number.POSITIVE_INFINITY;
    this.#show = show;
  }

  /** Reads the timeline and shows it from now on. Rejects where there is none to be had. */
  async want(sessionId: string | undefined): Promise<void> {
    this.#wanted = true;
    if (sessionId !== undefined) await this.#refresh(this.#keep(sessionId), 'all');
  }

  /** Brings it up to date where it is wanted. */
  update(sessionId: string | undefined, what: What): void {
    if (!this.#wanted || sessionId === undefined) return;
    // A store without a timeline reports that to the caller; a dropped connection reconnects.
    this.#refresh(this.#keep(sessionId), what).catch(() => {});
  }

  async readEarlier(sessionId: string | undefined): Promise<void> {
    if (sessionId !== undefined && this.#kept?.sessionId === sessionId) {
      await this.#refresh(this.#kept, 'earlier');
    }
  }

  /** A snapshot was changed, by a label. */
  replace({ state: _, ...snapshot }: SnapshotOf<Types>): void {
    const kept = this.#kept;
    if (kept?.sessionId !== snapshot.sessionId) return;
    kept.items = kept.items.map((item) =>
      item.snapshotId === snapshot.snapshotId ? snapshot : item,
    );
    this.#show(kept);
  }

  #keep(sessionId: string): Kept<Types> {
    if (this.#kept?.sessionId !== sessionId) this.#kept = { sessionId, items: [] };
    return this.#kept;
  }

  // One at a time, so that an older answer never overrides a newer one.
  #refresh(kept: Kept<Types>, what: What | 'earlier'): Promise<void> {
    if (what === 'earlier') kept.wantsEarlier = true;
    else kept.next = kept.next === 'all' ? 'all' : what;
    kept.refreshing ??= this.#refreshAll(kept).finally(() => {
      kept.refreshing = undefined;
    });
    return kept.refreshing;
  }

  async #refreshAll(kept: Kept<Types>): Promise<void> {
    while (kept.next || kept.wantsEarlier) {
      const what = kept.next;
      if (what) {
        kept.next = undefined;
        await this.#readAgain(kept, what);
      } else {
        kept.wantsEarlier = false;
        await this.#readBefore(kept);
      }
      this.#show(kept);
    }
  }

  /** Reads what is there again, or only the end, where a turn adds to it; what did not change stays the same object. */
  async #readAgain(kept: Kept<Types>, what: What): Promise<void> {
    const first = kept.items[0]?.index ?? Number.POSITIVE_INFINITY;
    const last = kept.items.at(-1)?.index;
    const read = await this.#read(
      kept,
      undefined,
      what === 'end' && last !== undefined
        ? { most: 1, upTo: last }
        : { most: this.#portion, upTo: first },
    );
    const start = read.items[0]?.index ?? 0;
    const before = what === 'end' ? kept.items.filter(({ index }) => index < start) : [];
    if (before.length === 0) kept.earlier = read.next;
    kept.items = [...before, ...read.items];
  }

  async #readBefore(kept: Kept<Types>): Promise<void> {
    if (kept.earlier === undefined) return;
    const want = { most: this.#portion, upTo: Number.POSITIVE_INFINITY };
    const read = await this.#read(kept, kept.earlier, want);
    const start = kept.items[0]?.index ?? Number.POSITIVE_INFINITY;
    kept.items = [...read.items.filter(({ index }) => index < start), ...kept.items];
    kept.earlier = read.next;
  }

  /** Reads back from a cursor until there are enough, and those from index `upTo` on are among them. */
  async #read(
    kept: Kept<Types>,
    start: string | undefined,
    { most, upTo }: { readonly most: number; readonly upTo: number },
  ): Promise<{ readonly items: SnapshotOf<Types>[]; readonly next: string | undefined }> {
    const known = new Map(kept.items.map((snapshot) => [snapshot.snapshotId, snapshot]));
    const items: SnapshotOf<Types>[] = [];
    let cursor = start;
    let limit = Math.min(maxPageSize, this.#portion);
    let isOldestFirst = false;
    do {
      const page = await this.#agent.listSnapshots(kept.sessionId, {
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
      if (isOldestFirst) limit = maxPageSize;
      else if (missing <= 0) break;
      else limit = Math.min(maxPageSize, missing);
    } while (cursor !== undefined);
    return { items: isOldestFirst ? items : items.reverse(), next: cursor };
  }
}
