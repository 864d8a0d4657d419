import type { JsonObject } from '../../core/json/json.ts';
import type { MessageOptions } from '../../protocol/message-page.ts';
import type { Page, SessionInfo } from '../../protocol/session.ts';
import type { Snapshot } from '../../protocol/snapshot.ts';
import type { MemoryPlace } from './memory-support.ts';
import type { RunRef } from './run.ts';
import type { Scope } from './snapshot-store.ts';

/** Which page of a list to read. */
export interface ListOptions {
  /** @default 50; in lists of runs, all */
  readonly limit?: number;
  /** `next` of the previous page. */
  readonly cursor?: string;
}

/** Which snapshots of a session are listed, and in which order. */
export interface SnapshotListing {
  /** Also those of other branches. @default false */
  readonly includeOrphaned?: boolean;
  /** From the end of the session back. @default false */
  readonly newestFirst?: boolean;
}

/** Narrows a list of sessions. A session must pass all that is given. */
export interface SessionFilter {
  /**
   * Sessions whose id, title or metadata contain this text, or in whose messages (those of the head) each of its words, or
   * a word that begins with it, occurs. At most 1,000 characters.
   */
  readonly query?: string;
  /** Sessions whose last turn failed. @default false */
  readonly failed?: boolean;
  /** Sessions in which a tool call waits for the answer of a person. @default false */
  readonly waiting?: boolean;
  /** Sessions with a labelled snapshot. @default false */
  readonly labelled?: boolean;
}

/** A change of a session. */
export interface SessionChange {
  /** `null` removes the title. */
  readonly title?: string | null;
  /** The new metadata; `null` removes it. */
  readonly metadata?: JsonObject | null;
  /** The title of a session that has none; does not count as a change of the session: `updatedAt` stays. */
  readonly defaultTitle?: string;
}

/** Compare and set: a caller that has read an older head changes nothing. */
export interface ExpectHead {
  /** When present, the head of the snapshot's session must still be this one, else `ABORTED` with `details.headId`. */
  readonly expectHead?: string;
}

/** Where a fork is put. */
export interface ForkTarget extends ExpectHead {
  /** The new session. */
  readonly sessionId: string;
  /** Its first snapshot. */
  readonly snapshotId: string;
  /** The fork has the memory of the snapshot: the ids of a family and a lane, which are used where the session has none. */
  readonly memory?: MemoryPlace;
}

/** Sessions and their trees: heads, branches, labels. */
export interface TimelineSupport {
  /** With its latest state when `state` is asked for, and with a page of its messages as `getSnapshot` gives it. */
  getSession(
    scope: Scope,
    sessionId: string,
    options?: MessageOptions & { readonly state?: boolean },
  ): Promise<SessionInfo | undefined>;
  /** Newest first. A store whose content is encrypted need not look at the text of messages. */
  listSessions(scope: Scope, options?: ListOptions & SessionFilter): Promise<Page<SessionInfo>>;
  /**
   * The owners that have sessions, of all agents, ascending; sessions without an owner do not count. For the person who
   * operates the store: a server never shows them to its clients. Optional.
   */
  listOwners?(options?: ListOptions): Promise<Page<string>>;
  /** `NOT_FOUND` when there is no such session. */
  updateSession(scope: Scope, sessionId: string, change: SessionChange): Promise<SessionInfo>;
  /**
   * Erases the session with its snapshots, runs, events, steps and its sub-agents' sessions; what a fork shares stays.
   * `ABORTED` when it is being worked on. `false` when there is no such session.
   */
  deleteSession(scope: Scope, sessionId: string): Promise<boolean>;
  /** Metadata only, by index ascending unless `newestFirst`, pending ones included; one query. */
  listSnapshots(
    scope: Scope,
    sessionId: string,
    options?: ListOptions & SnapshotListing,
  ): Promise<Page<Snapshot>>;
  /**
   * Moves the head. Checked in this order: `NOT_FOUND` for an unknown id; `FAILED_PRECONDITION` unless it succeeded;
   * `ABORTED` while the session is being worked on, or when the head is not the expected one. An expired attached run
   * gives way, as to a claim, so that it cannot move the head back later. With `run`, that run holds the session and ends in the same
   * step; a stale attempt is `ABORTED`. A store with `effects` supports it.
   */
  restore(
    scope: Scope,
    snapshotId: string,
    options?: ExpectHead & { readonly run?: RunRef },
  ): Promise<Snapshot>;
  /** A new session under `sessionId` whose first snapshot shares the state of this one without copying it. */
  fork(scope: Scope, snapshotId: string, target: ForkTarget): Promise<Snapshot>;
  /** `null` removes the label. */
  label(
    scope: Scope,
    snapshotId: string,
    label: string | null,
    options?: ExpectHead,
  ): Promise<Snapshot>;
}
