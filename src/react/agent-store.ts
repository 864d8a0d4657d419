import type { AgentApi, RestoreOptions } from '../api/agent-api.ts';
import type { CallerTool, SnapshotRef } from '../api/turn-values.ts';
import type { AgentTypes, IfHead, OutputOf, SessionOf, StateOf, WireTypes } from '../api/types.ts';
import type { Clock } from '../core/time.ts';
import type { Input } from '../protocol/turn.ts';
import type { UndoPlan } from '../protocol/undo.ts';
import type { GivenAnswers } from './interrupts.ts';
import type { AgentView } from './view.ts';

/** Options of `createAgentStore`. */
export interface AgentStoreOptions<Types extends AgentTypes = WireTypes> {
  /** The agent to talk to. */
  readonly agent: AgentApi<Types>;
  /** The session to continue; without it, the first message starts a session. */
  readonly sessionId?: string | undefined;
  /** The session as read by the server, for server rendering. */
  readonly initial?: SessionOf<Types> | undefined;
  /** The state to continue from, for an agent whose state the client holds. */
  readonly state?: StateOf<Types> | undefined;
  /** How many messages are loaded at first, and with each `loadEarlier`, up to 1,000. @default all */
  readonly messages?: number;
  /** Keeps `timeline` up to date; a number limits how many snapshots are loaded at first, and with each `loadEarlierSnapshots`. @default false */
  readonly timeline?: boolean | number;
  /** Minimum number of milliseconds between two updates while an answer streams. @default 16 */
  readonly throttle?: number;
  /** @default systemClock */
  readonly clock?: Clock;
}

/** How a turn is sent. */
interface SendOptions {
  /** Continues from this snapshot instead of the head, on a new branch; with `null`, from the beginning of the session. */
  readonly from?: SnapshotRef | null;
  /** Compare and set: `ABORTED` unless this snapshot is the head of the session. */
  readonly ifHead?: SnapshotRef;
  /** Runs the turn in the background: it continues, and can be watched, after the page is closed. @default false */
  readonly detach?: boolean;
  /** Tools that the page executes, for this turn only. When the model calls one, the call is in `interrupts`: answer it with `respond`. */
  readonly tools?: readonly CallerTool[];
}

/** The actions on a conversation. They never reject; check the view's `error`. */
export interface AgentActions<Types extends AgentTypes = WireTypes> {
  /** Runs a turn; resolves to its output, or to `undefined` if there is none. */
  send(input: string | Input, options?: SendOptions): Promise<OutputOf<Types> | undefined>;
  /** Sends the last input again, after it failed. */
  retry(): Promise<OutputOf<Types> | undefined>;
  /** Sends an input in place of an earlier user message, given by its `index`. This creates a branch; the message itself is kept. */
  resend(messageIndex: number, input: string | Input): Promise<OutputOf<Types> | undefined>;
  /**
   * Answers interrupts: `resume(interrupt.approve())`. The answers are sent once all interrupts have one. Pass a function to answer
   * each pending interrupt.
   */
  resume(
    answers: GivenAnswers,
    options?: Pick<SendOptions, 'tools'>,
  ): Promise<OutputOf<Types> | undefined>;
  /**
   * Adds a message to the running turn. Resolves to whether the turn accepted it; `steering` has it until the turn takes it.
   */
  steer(input: string | Input): Promise<boolean>;
  /** Stops the running turn; the partial answer is kept. */
  stop(): Promise<void>;
  /** Stops following the running turn. It continues on the server; `refresh`, `load` or a new page follows it again. */
  detach(): void;
  /** Opens another session, given as its id, an output or a snapshot, or with `undefined` a new one. */
  load(session: string | { readonly sessionId: string } | undefined): Promise<void>;
  /** Loads earlier messages, if there are any that were not loaded. */
  loadEarlier(): Promise<void>;
  /** Reads the session again, because other clients may have continued it. */
  refresh(): Promise<void>;
  /**
   * Moves the head of the session to this snapshot, and restores the files of a workspace unless `workspace` is `false`; with `partial`, to a
   * copy of the partial state of an aborted background run; with `undo`, after undoing effects in other systems.
   */
  restore(snapshot: SnapshotRef, options?: IfHead & RestoreOptions): Promise<boolean>;
  /** The effects in other systems that a restore with `undo` undoes, to be shown before it; `undefined` if the plan cannot be read. */
  planUndo(snapshot: SnapshotRef): Promise<UndoPlan | undefined>;
  /** Opens a new session that continues from this snapshot, and resolves to its id. */
  fork(snapshot: SnapshotRef, options?: IfHead): Promise<string | undefined>;
  /** Labels a snapshot; `null` removes the label. Resolves to whether it worked. */
  label(snapshot: SnapshotRef, label: string | null, options?: IfHead): Promise<boolean>;
  /** Shows an older snapshot as `past`; with `undefined`, the present again. Changes nothing. */
  view(snapshot: SnapshotRef | undefined): Promise<void>;
  /** Fills `timeline`, and keeps it filled. */
  loadTimeline(): Promise<void>;
  /** Loads snapshots before those of `timeline`, if there are any that were not loaded. */
  loadEarlierSnapshots(): Promise<void>;
}

/** A conversation with an agent, to be shown: a view that changes, and what can be done. Knows nothing of React. */
export interface AgentStore<Types extends AgentTypes = WireTypes> {
  /** The agent of the conversation. */
  readonly agent: AgentApi<Types>;
  /** The actions on the conversation. */
  readonly actions: AgentActions<Types>;
  /** The current view: a new object after each change. */
  getView(): AgentView<Types>;
  /** The view before anything was loaded, which is what a server renders. */
  readonly initialView: AgentView<Types>;
  /** Calls the listener after each change; returns a function that unsubscribes. */
  subscribe(listener: () => void): () => void;
  /** Begins to load and to follow; the returned function ends that. May be done again. */
  open(): () => void;
}
