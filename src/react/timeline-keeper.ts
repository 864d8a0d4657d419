import type { AgentTypes, SnapshotOf } from '../agent/agent.ts';
import type { StoreAgent } from './settled.ts';
import { TimelinePages } from './timeline-pages.ts';

/** Keeps the timeline of the present session, once somebody wants it. */
export class TimelineKeeper<Types extends AgentTypes> {
  readonly #agent: StoreAgent<Types>;
  readonly #show: (snapshots: readonly SnapshotOf<Types>[]) => void;
  #wanted: boolean;
  #pages: { readonly sessionId: string; readonly list: TimelinePages<Types> } | undefined;

  constructor(
    agent: StoreAgent<Types>,
    wanted: boolean,
    show: (snapshots: readonly SnapshotOf<Types>[]) => void,
  ) {
    this.#agent = agent;
    this.#wanted = wanted;
    this.#show = show;
  }

  /** Reads the timeline and shows it from now on. Rejects where there is none to be had. */
  async want(sessionId: string | undefined): Promise<void> {
    this.#wanted = true;
    if (sessionId !== undefined) await this.#refresh(sessionId, 'all');
  }

  /** Brings it up to date where it is wanted: all of it, or the end, to which a turn adds. */
  update(sessionId: string | undefined, what: 'all' | 'end'): void {
    if (!this.#wanted || sessionId === undefined) return;
    // A store without timeline says so once, to whoever asks for it; a line that is down comes back.
    this.#refresh(sessionId, what).catch(() => {});
  }

  /** A snapshot was changed, by a label. */
  replace(snapshot: SnapshotOf<Types>): void {
    if (this.#pages?.sessionId === snapshot.sessionId)
      this.#show(this.#pages.list.replace(snapshot));
  }

  async #refresh(sessionId: string, what: 'all' | 'end'): Promise<void> {
    if (this.#pages?.sessionId !== sessionId) {
      this.#pages = { sessionId, list: new TimelinePages(this.#agent, sessionId) };
    }
    const pages = this.#pages;
    const snapshots = await pages.list.refresh(what);
    // Somebody may have gone to another session meanwhile.
    if (this.#pages === pages) this.#show(snapshots);
  }
}
