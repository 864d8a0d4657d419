import type { InterruptAnswer } from '../api/interrupts.ts';
import type { SnapshotRef } from '../api/snapshot-ref.ts';
import type { AgentTypes, IfHead, OutputOf, SessionOf, StateOf, WireTypes } from '../api/types.ts';
import type { Clock } from '../core/time/clock.ts';
import type { Input } from '../protocol/turn.ts';
import type { StoreAgent } from './session-data.ts';
import type { AgentView } from './view.ts';

export interface AgentStoreOptions<Types extends AgentTypes = WireTypes> {
  readonly agent: StoreAgent<Types>;
  /** The session to continue; without it, the first message starts a session. */
  readonly sessionId?: string | undefined;
  /** The session as read by the server, for server rendering. */
  readonly initial?: SessionOf<Types> | undefined;
  /** The state to continue from, for an agent whose state the client holds. */
  readonly state?: StateOf<Types> | undefined;
  /** Keeps `timeline` up to date. @default false */
  readonly timeline?: boolean;
  /** Minimum number of milliseconds between two updates while an answer streams. @default 16 */
  readonly throttle?: number;
  /** @default systemClock */
  readonly clock?: Clock;
}

/** How a turn is sent. */
export interface SendOptions {
  /** Continues from this snapshot instead of the head, on a new branch. */
  readonly from?: SnapshotRef;
  /** Compare and set: `ABORTED` unless this snapshot is the head of the session. */
  readonly ifHead?: SnapshotRef;
  /** Runs the turn in the background: it continues, and can be watched, after the page is closed. @default false */
  readonly detach?: boolean;
}

/** What can be done with a conversation. Actions never reject; check the view's `error`. */
export interface AgentActions<Types extends AgentTypes = WireTypes> {
  /** Runs a turn; resolves to its output, or `undefined` when it came to none. */
  send(input: string | Input, options?: SendOptions): Promise<OutputOf<Types> | undefined>;
  /** Sends the last input again, after it failed. */
  retry(): Promise<OutputOf<Types> | undefined>;
  /** Sends something else in place of an earlier user message, given by its `index`: a branch from before it, never an overwrite. */
  resend(messageIndex: number, input: string | Input): Promise<OutputOf<Types> | undefined>;
  /** Answers interrupts: `resume(interrupt.approve())`. The answers are sent once all interrupts have one. */
  resume(
    answers: InterruptAnswer | readonly InterruptAnswer[],
  ): Promise<OutputOf<Types> | undefined>;
  /** Stops what runs; the partial answer is kept. */
  stop(): Promise<void>;
  /** Stops following the running turn. It continues on the server, and `load` or a new page finds it there. */
  detach(): void;
  /** Goes to another session, or with `undefined` to a new one. */
  load(sessionId: string | undefined): Promise<void>;
  /** Reads the session again, because other clients may have continued it. */
  refresh(): Promise<void>;
  /** Moves the head of the session back (or forth) to this snapshot. */
  restore(snapshot: SnapshotRef, options?: IfHead): Promise<boolean>;
  /** Opens a new session that continues from this snapshot, and resolves to its id. */
  fork(snapshot: SnapshotRef, options?: IfHead): Promise<string | undefined>;
  label(snapshot: SnapshotRef, label: string | null, options?: IfHead): Promise<boolean>;
  /** Shows an older snapshot as `past`; with `undefined`, the present again. Changes nothing. */
  view(snapshot: SnapshotRef | undefined): Promise<void>;
  /** Fills `timeline`, and keeps it filled. */
  loadTimeline(): Promise<void>;
}

/** A conversation with an agent, to be shown: a view that changes, and what can be done. Knows nothing of React. */
export interface AgentStore<Types extends AgentTypes = WireTypes> {
  readonly agent: StoreAgent<Types>;
  readonly actions: AgentActions<Types>;
  getView(): AgentView<Types>;
  /** The view before anything was loaded, which is what a server renders. */
  readonly initialView: AgentView<Types>;
  subscribe(listener: () => void): () => void;
  /** Begins to load and to follow; the returned function ends that. May be done again. */
  open(): () => void;
}
