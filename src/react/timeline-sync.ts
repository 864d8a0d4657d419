import type { AgentTypes, SnapshotOf } from '../api/types.ts';
import type { StoreAgent } from './session-data.ts';
import { TimelinePages } from './timeline-pages.ts';

/** Which part of a timeline to read again: all of it, or the end, to which a turn adds. */
type What = 'all' | 'end';

/** The timeline of one session, and what is being done to bring it up to date. */
interface Kept<Types extends AgentTypes> {
  readonly sessionId: string;
  readonly pages: TimelinePages<Types>;
  refreshing?: Promise<void> | undefined;
  /** What has to be read again after that. */
  next?: What | undefined;
  /** Whether the snapshots before the first one have to be read. */
  wantsEarlier?: boolean;
}

/** Keeps the timeline of the current session up to date once it has been requested. */
export class TimelineSync<Types extends AgentTypes> {
  readonly #agent: StoreAgent<Types>;
  readonly #show: (sessionId: string, pages: TimelinePages<Types>) => void;
  readonly #portion: number;
  #wanted: boolean;
  #kept: Kept<Types> | undefined;

  constructor(
    agent: StoreAgent<Types>,
    wanted: boolean | number,
    show: (sessionId: string, pages: TimelinePages<Types>) => void,
  ) {
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

  /** Reads the snapshots before those that are there. */
  async readEarlier(sessionId: string | undefined): Promise<void> {
    if (sessionId !== undefined && this.#kept?.sessionId === sessionId) {
      await this.#refresh(this.#kept, 'earlier');
    }
  }

  /** A snapshot was changed, by a label. */
  replace(snapshot: SnapshotOf<Types>): void {
    const { sessionId } = snapshot;
    if (this.#kept?.sessionId !== sessionId) return;
    this.#kept.pages.replace(snapshot);
    this.#show(sessionId, this.#kept.pages);
  }

  #keep(sessionId: string): Kept<Types> {
    if (this.#kept?.sessionId !== sessionId) {
      this.#kept = { sessionId, pages: new TimelinePages(this.#agent, sessionId, this.#portion) };
    }
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
        await kept.pages.refresh(what);
      } else {
        kept.wantsEarlier = false;
        await kept.pages.readEarlier();
      }
      this.#show(kept.sessionId, kept.pages);
    }
  }
}
