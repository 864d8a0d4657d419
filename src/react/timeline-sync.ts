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
}

/** Keeps the timeline of the current session up to date once it has been requested. */
export class TimelineSync<Types extends AgentTypes> {
  readonly #agent: StoreAgent<Types>;
  readonly #show: (sessionId: string, snapshots: readonly SnapshotOf<Types>[]) => void;
  #wanted: boolean;
  #kept: Kept<Types> | undefined;

  constructor(
    agent: StoreAgent<Types>,
    wanted: boolean,
    show: (sessionId: string, snapshots: readonly SnapshotOf<Types>[]) => void,
  ) {
    this.#agent = agent;
    this.#wanted = wanted;
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

  /** A snapshot was changed, by a label. */
  replace(snapshot: SnapshotOf<Types>): void {
    const { sessionId } = snapshot;
    if (this.#kept?.sessionId === sessionId)
      this.#show(sessionId, this.#kept.pages.replace(snapshot));
  }

  #keep(sessionId: string): Kept<Types> {
    if (this.#kept?.sessionId !== sessionId) {
      this.#kept = { sessionId, pages: new TimelinePages(this.#agent, sessionId) };
    }
    return this.#kept;
  }

  // One at a time, so that an older answer never overrides a newer one.
  #refresh(kept: Kept<Types>, what: What): Promise<void> {
    kept.next = kept.next === 'all' ? 'all' : what;
    kept.refreshing ??= this.#refreshAll(kept).finally(() => {
      kept.refreshing = undefined;
    });
    return kept.refreshing;
  }

  async #refreshAll(kept: Kept<Types>): Promise<void> {
    while (kept.next) {
      const what = kept.next;
      kept.next = undefined;
      this.#show(kept.sessionId, await kept.pages.refresh(what));
    }
  }
}
