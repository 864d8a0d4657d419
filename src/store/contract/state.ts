import type { JsonPatch } from '../../core/json/patch.ts';
import type { Snapshot } from '../../protocol/snapshot.ts';
import type { Usage } from '../../protocol/turn.ts';
import type { Totals } from '../../protocol/usage.ts';
import type { SessionState } from '../../session/session-state.ts';

/** A state as it was loaded or saved, with what its store needs to save the next one as a difference to it. */
export interface StateBase {
  /** The id of the snapshot. */
  readonly snapshotId: string;
  /** Its state. */
  readonly state: SessionState;
  /** The store's own note of where the state lies. */
  readonly ref: unknown;
}

/** The state that a checkpoint has saved. */
export interface Checkpointed extends StateBase {
  /** How many messages the run's own inbox has. A store that has no inboxes leaves it out. */
  readonly inbox?: number;
}

/** A loaded state together with its snapshot's metadata. */
export interface LoadedState extends StateBase {
  /** The snapshot, without its state. */
  readonly snapshot: Snapshot;
}

/** A state to be written, as it grew from the one before. */
export interface StateWrite {
  /** The state that `state` grew from; absent when the session was empty. */
  readonly base?: StateBase;
  /** The state to write. */
  readonly state: SessionState;
  /** The change from the base's custom state to this one; absent: not known or unchanged, the store compares. */
  readonly customPatch?: JsonPatch;
}

/** The partial result of an aborted run. */
export interface PartialWrite extends StateWrite {
  /** The hash of the state. */
  readonly stateHash: string;
  /** Tokens and cost so far. */
  readonly usage?: Usage;
  /** The usage of the session so far. */
  readonly totals?: Totals;
}

/** The usage of one turn. */
export interface Spent {
  /** Tokens and cost. */
  readonly usage: Usage;
  /** Number of tool calls. */
  readonly toolCalls: number;
}

/** The usage of a run up to a checkpoint, so that a takeover continues the count. */
export interface RunUsage {
  /** The turn that the checkpoint lies in. */
  readonly turn: Spent;
  /** All turns of the invocation before it. */
  readonly before: Usage;
  /** The session's totals without the turn, where an agent limits them. */
  readonly totals?: Totals;
}
