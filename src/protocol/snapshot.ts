import * as v from 'valibot';
import { messageRange, state } from './state.ts';
import { errorBody, finishReason, usage } from './turn.ts';

export const snapshotEvent = v.picklist([
  'turnEnd',
  'toolIterationEnd',
  'invocationEnd',
  'detach',
  'edit',
]);

export const editNote = v.object({
  /** Who made the edit. */
  by: v.optional(v.pipe(v.string(), v.maxLength(256))),
  /** Why it was made. */
  reason: v.optional(v.pipe(v.string(), v.maxLength(1000))),
});

export const snapshotStatus = v.picklist(['pending', 'succeeded', 'failed', 'aborted', 'expired']);

export const snapshot = v.object({
  /** The id. */
  snapshotId: v.string(),
  /** The session. */
  sessionId: v.string(),
  /** The snapshot that the turn started from; absent for the first. */
  parentId: v.optional(v.string()),
  /** Counts the session's snapshots; never reused; orders lists. -1 while it is not among them. */
  index: v.number(),
  /** 0-based along the path from the root. */
  turnIndex: v.number(),
  /** The moment at which it was taken. */
  event: snapshotEvent,
  /** Whether the session can continue from it: only from a `succeeded` one. */
  status: snapshotStatus,
  /** How the turn ended. */
  finishReason: v.optional(finishReason),
  /** Why the turn failed. */
  error: v.optional(errorBody),
  /** The author and reason of an `edit`. */
  edit: v.optional(editNote),
  /** Tokens and cost of the turn. */
  usage: v.optional(usage),
  /** When it was created. */
  createdAt: v.string(),
  /** When it was last changed. */
  updatedAt: v.string(),
  /** The last heartbeat of a pending snapshot's run. */
  heartbeatAt: v.optional(v.string()),
  /** Content address of the state. */
  stateHash: v.string(),
  /** The label that `label()` set. */
  label: v.optional(v.string()),
  /** Not on the path from the session's head to the root. Computed on reading, never stored. */
  orphaned: v.boolean(),
  /** Messages, custom state and artifacts; lists leave it out. */
  state: v.optional(state),
  /** Which of the messages the state has, where a page of them was read. */
  messageRange: v.optional(messageRange),
});

/** Whether a snapshot is the end of a turn: those within a turn and edits are not. */
export function endsTurn(event: SnapshotEvent): boolean {
  return event !== 'toolIterationEnd' && event !== 'edit';
}

/** The moments at which a snapshot can be taken. */
export type SnapshotEvent = v.InferOutput<typeof snapshotEvent>;
/** The status of a snapshot. `expired` is computed on read: a pending snapshot without a recent heartbeat. */
export type SnapshotStatus = v.InferOutput<typeof snapshotStatus>;
/** Who edited a state, and why. */
export interface EditNote extends v.InferOutput<typeof editNote> {}
/** The state of a session at one moment, with its place in the session's tree. Times are ISO 8601. */
export interface Snapshot extends v.InferOutput<typeof snapshot> {}
